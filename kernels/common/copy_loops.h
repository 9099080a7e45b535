/// The loops of a strided copy.
#ifndef TROUPE_KERNELS_COMMON_COPY_LOOPS_H_
#define TROUPE_KERNELS_COMMON_COPY_LOOPS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/common/strided_copy.h"

namespace troupe {

/// Dimensions of a copy, outermost first, and the strides of both sides.
struct CopyLoops {
  DimVector dims, dst, src;
  int rank() const { return static_cast<int>(dims.size()); }
};

/// What a strided copy comes down to: dimensions of one are dropped, those that lie together on
/// both sides merged; at least one is left.
inline CopyLoops MergeLoops(absl::Span<const int64_t> dims, absl::Span<const int64_t> dst,
                            absl::Span<const int64_t> src) {
  CopyLoops loops;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!loops.dims.empty() && loops.dst.back() == dst[i] * dims[i] &&
        loops.src.back() == src[i] * dims[i]) {
      loops.dims.back() *= dims[i];
      loops.dst.back() = dst[i];
      loops.src.back() = src[i];
    } else {
      loops.dims.push_back(dims[i]);
      loops.dst.push_back(dst[i]);
      loops.src.push_back(src[i]);
    }
  }
  if (loops.dims.empty()) {
    loops.dims.push_back(1);
    loops.dst.push_back(1);
    loops.src.push_back(1);
  }
  return loops;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_COPY_LOOPS_H_
