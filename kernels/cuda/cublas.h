/// Products of matrices by cuBLASLt, which is opened when the first one is made.
#ifndef TROUPE_KERNELS_CUDA_CUBLAS_H_
#define TROUPE_KERNELS_CUDA_CUBLAS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "devices/element_type.h"
#include "kernels/kernel.h"

namespace troupe::cuda {

/// Whether sums of products of float may be formed from factors of 10 bits (TF32), as TensorFlow
/// does it: if the environment has TROUPE_TF32=1.
bool AllowsTf32();

enum class Transposition : uint8_t { kNone, kTransposed, kAdjoint };

/// A batch of row-major matrices: what is given, before it is transposed.
struct Factor {
  const void* data = nullptr;
  int64_t stride = 0;  ///< From one matrix to the next, in elements; 0: it is always the same.
  Transposition transposition = Transposition::kNone;
  int64_t row = 0;  ///< From one row to the next, in elements; 0: rows are adjacent.
};

/// c[i] = a[i] b[i], of m x k and k x n elements, none of which is 0.
struct Product {
  ElementType type = ElementType::kFloat;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Factor a, b;
  void* c = nullptr;
  int64_t c_stride = 0;
  int64_t c_row = 0;  ///< As `Factor::row`.
};

/// Whether cuBLAS can be used: FailedPrecondition, with the loader's words, if it is not there.
absl::Status OpenCublas();

/// Enqueues a product on the stream of `ctx`. Types: half, bfloat16 (sums of float), float, double,
/// complex64, complex128. The same bits for the same arguments. Errors: FailedPrecondition as
/// `OpenCublas`; Unimplemented if cuBLAS knows no way.
absl::Status Multiply(KernelContext& ctx, const Product& product);

/// Matrices along a dimension of a batch, and the steps in the factors and the result, in elements.
struct ProductDim {
  int64_t size, a, b, c;
};
/// The products of all indices of `dims`, the outermost first, none of which is empty: in one call
/// those along the longest one, after neighbours that behave alike have become one. `form` is what
/// is the same for all, and where the first one is.
absl::Status MultiplyAll(KernelContext& ctx, const Product& form,
                         const std::vector<ProductDim>& dims);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CUBLAS_H_
