/// Products of matrices by cuBLASLt, which is opened when the first one is made.
#ifndef TROUPE_KERNELS_CUDA_CUBLAS_H_
#define TROUPE_KERNELS_CUDA_CUBLAS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "devices/element_type.h"
#include "kernels/kernel.h"

namespace troupe::cuda {

/// Whether sums of products of float may be formed from factors of 10 bits (TF32), as TensorFlow
/// does it: if the environment has TROUPE_TF32=1.
bool AllowsTf32();

enum class Transposition : uint8_t { kNone, kTransposed, kAdjoint };

/// A batch of row-major matrices, dense each: what is given, before it is transposed.
struct Factor {
  const void* data = nullptr;
  int64_t stride = 0;  ///< From one matrix to the next, in elements; 0: it is always the same.
  Transposition transposition = Transposition::kNone;
};

/// c[i] = a[i] b[i], of m x k and k x n elements, none of which is 0.
struct Product {
  ElementType type = ElementType::kFloat;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Factor a, b;
  void* c = nullptr;
  int64_t c_stride = 0;
};

/// Whether cuBLAS can be used: FailedPrecondition, with the loader's words, if it is not there.
absl::Status OpenCublas();

/// Enqueues a product on the stream of `ctx`. Types: half, bfloat16 (sums of float), float, double,
/// complex64, complex128. The same bits for the same arguments. Errors: FailedPrecondition as
/// `OpenCublas`; Unimplemented if cuBLAS knows no way.
absl::Status Multiply(KernelContext& ctx, const Product& product);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CUBLAS_H_
