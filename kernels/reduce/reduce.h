/// Reducing dimensions of a tensor.
#ifndef TROUPE_KERNELS_REDUCE_REDUCE_H_
#define TROUPE_KERNELS_REDUCE_REDUCE_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "kernels/reduce/reduce_loops.h"

namespace troupe {

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

/// Reduces the elements at `in`, of `type` and dimensions `dims`, into the dims.num_kept() elements
/// at `out`, of the same type. The order of additions depends on `dims` only. ResourceExhausted
/// without memory for partial results.
absl::Status Reduce(KernelContext& ctx, const ReduceLoops& loops, ElementType type, const void* in,
                    const ReduceDims& dims, void* out);

/// The same up to the accumulators: dims.num_kept() (at least one) of loops.acc_type, not finished.
absl::Status ReduceAccumulators(KernelContext& ctx, const ReduceLoops& loops, ElementType type,
                                const void* in, const ReduceDims& dims, void* acc);

}  // namespace troupe

#endif  // TROUPE_KERNELS_REDUCE_REDUCE_H_
