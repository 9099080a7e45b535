/// Reductions of CUDA.
#ifndef TROUPE_KERNELS_CUDA_REDUCE_H_
#define TROUPE_KERNELS_CUDA_REDUCE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/cuda/reduce_plan.h"

namespace troupe::cuda {

enum class ReduceOp : uint8_t { kSum, kSumOfSquares, kNorm, kProd, kMax, kMin, kAll, kAny };

/// Bytes of what is joined for a result: of elements of `size` bytes, which are widened to 4 if
/// they are small floating-point numbers.
constexpr int64_t AccSize(Number type, int64_t size) {
  return type == Number::kHalf || type == Number::kBfloat16 ? 4 : size;
}
/// Of ArgMax and ArgMin: a value and its index.
inline constexpr int64_t kArgAccSize = 16;

struct ReduceCall {
  Number type;
  const void* in;
  void* out;
  void* scratch;        ///< plan.scratch accumulators; not used if that is 0.
  int64_t divisor = 1;  ///< What sums of floating-point numbers are divided by before rounding.
};

/// The plan is for elements of the type, with ReducePack(size, AccSize(type, size)). Complex
/// numbers are added as twice as many of their parts.
cudaError_t LaunchReduce(ReduceOp op, const ReduceCall& call, const ReducePlan& plan,
                         cudaStream_t stream);
/// The indices, of int64 or int32, of the first largest (else smallest) elements; 0 where none is
/// larger (smaller) than the lowest (highest) finite number. The plan reduces one dimension, with
/// ReducePack(size, kArgAccSize).
cudaError_t LaunchArg(bool largest, bool wide_index, const ReduceCall& call, const ReducePlan& plan,
                      cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_REDUCE_H_
