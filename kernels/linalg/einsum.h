/// Einsum, for every type of device: what it takes and refuses, and how labels become sums and
/// products of matrices. Those are the engine's. A type of devices with a memory of its own has
/// its own definitions of them, which enqueue, and compiles einsum.cc against them.
#ifndef TROUPE_KERNELS_LINALG_EINSUM_H_
#define TROUPE_KERNELS_LINALG_EINSUM_H_

#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace troupe::einsum {

/// The kernel.
absl::StatusOr<std::unique_ptr<Kernel>> Make(KernelConstruction& construction);

// ---- The engine. Tensors are of one type, which the kernel is registered for.

/// Element r of `sums` is the sum of `terms` elements of `from`, from element r * terms on.
absl::Status SumRows(KernelContext& ctx, int64_t rows, int64_t terms, const Tensor& from,
                     Tensor* sums);

/// z[i] = x[i] * y[i] for i < n.
absl::Status MultiplyElements(KernelContext& ctx, int64_t n, const Tensor& x, const Tensor& y,
                              Tensor* z);

/// Matrices along a dimension of a batch, and how far they are apart, in elements.
struct BatchDim {
  int64_t size, a, b, c;
};
/// Products c = a b of m x k and k x n elements, none of these 0. Strides of rows and columns are
/// in elements; one of the two is 1. Columns of c lie side by side.
struct Products {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0, c_row = 0;
  absl::InlinedVector<BatchDim, 8> batch;
};
absl::Status Multiply(KernelContext& ctx, const Products& products, const Tensor& a,
                      const Tensor& b, Tensor* c);

}  // namespace troupe::einsum

#endif  // TROUPE_KERNELS_LINALG_EINSUM_H_
