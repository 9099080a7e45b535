/// Matrix products for kernels: cut into tiles, run on the compute pool.
#ifndef TROUPE_KERNELS_LINALG_PRODUCT_H_
#define TROUPE_KERNELS_LINALG_PRODUCT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/kernel.h"
#include "kernels/simd/gemm.h"

namespace troupe {

/// Computes `count` products of the same form. `pointers(i, &problem)` sets a, b and c of the i-th
/// in a copy of `form`, from any thread. The same bits on any number of threads. T is float,
/// double or an integer of 16 to 64 bits, whose sums wrap.
template <typename T>
absl::Status RunProducts(KernelContext& ctx, const GemmProblem<T>& form, int64_t count,
                         absl::FunctionRef<void(int64_t, GemmProblem<T>*)> pointers);

/// On the calling thread alone. T is float, double or uint32_t.
template <typename T>
void RunProductHere(const GemmProblem<T>& problem);

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_PRODUCT_H_
