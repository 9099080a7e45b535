/// Which dimensions a reduction reduces, and what is left of the shape.
#ifndef TROUPE_KERNELS_REDUCE_REDUCE_DIMS_H_
#define TROUPE_KERNELS_REDUCE_REDUCE_DIMS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

/// Wraps around: sizes beside one that is 0 may have any product.
inline int64_t Multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// Dimensions of the input with their fate. `Add` joins neighbours of the same fate and drops sizes
/// of 1.
class ReduceDims {
 public:
  struct Dim {
    int64_t size;
    bool reduced;
  };
  /// From the outermost dimension to the innermost.
  void Add(int64_t size, bool reduced);
  const absl::InlinedVector<Dim, 8>& dims() const { return dims_; }
  int64_t num_kept() const { return kept_; }        ///< Elements of the output.
  int64_t num_reduced() const { return reduced_; }  ///< Elements that make one of the output.

 private:
  absl::InlinedVector<Dim, 8> dims_;
  int64_t kept_ = 1, reduced_ = 1;
};

/// What a reduction does with an input's dimensions.
struct ReducedShape {
  ReduceDims dims;
  Shape output;
};

/// Of an input of `shape` reduced along `axes`: int32 or int64 on the host, a scalar or a list;
/// negative ones count from the back. Reduced dimensions become 1 if `keep_dims`, else disappear.
/// InvalidArgument for an axis out of range or named twice.
absl::StatusOr<ReducedShape> ReduceAlong(const Shape& shape, const Tensor& axes, bool keep_dims);

/// Of an input of `shape` that is multiples[d] tiles in each dimension: the tiles are reduced to
/// one. `multiples` is a vector on the host. InvalidArgument if it does not fit.
absl::StatusOr<ReducedShape> ReduceTiles(const Shape& shape, const Tensor& multiples);

}  // namespace troupe

#endif  // TROUPE_KERNELS_REDUCE_REDUCE_DIMS_H_
