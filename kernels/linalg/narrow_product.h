/// Matrix products of half and bfloat16.
#ifndef TROUPE_KERNELS_LINALG_NARROW_PRODUCT_H_
#define TROUPE_KERNELS_LINALG_NARROW_PRODUCT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "devices/element_type.h"
#include "kernels/kernel.h"

namespace troupe {

/// Products of row-major matrices: m x k (or its transpose) times k x n (or its transpose).
struct NarrowProductForm {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t a_step = 0, b_step = 0, c_step = 0;  ///< Elements between rows, as they lie in memory.
};

/// Where the operands and the result of one product begin, in elements of their tensors.
struct NarrowProductPlace {
  int64_t a = 0, b = 0, c = 0;
};

/// Computes `count` products of one form, none of whose sizes is 0. The tensors are of one type,
/// half or bfloat16; sums are float and are rounded once. `place(i)` says which matrices the i-th
/// product takes, from any thread. Bfloat16 is multiplied as it is where oneDNN can; else blocks of
/// the operands are widened for each tile of the result. The same bits on any number of threads.
absl::Status RunNarrowProducts(KernelContext& ctx, const NarrowProductForm& form, const Tensor& a,
                               const Tensor& b, int64_t count,
                               absl::FunctionRef<NarrowProductPlace(int64_t)> place, Tensor* c);

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_NARROW_PRODUCT_H_
