/// Matrix products for kernels: cut into tiles, run on the compute pool.
#ifndef TROUPE_KERNELS_LINALG_PRODUCT_H_
#define TROUPE_KERNELS_LINALG_PRODUCT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/kernel.h"
#include "kernels/simd/gemm.h"

namespace troupe {

/// Computes `count` products of the same form. `pointers(i, &problem)` sets a, b and c of the i-th
/// in a copy of `form`, from any thread. The same bits on any number of threads. T is float or
/// double.
template <typename T>
absl::Status RunProducts(KernelContext& ctx, const GemmProblem<T>& form, int64_t count,
                         absl::FunctionRef<void(int64_t, GemmProblem<T>*)> pointers);
extern template absl::Status RunProducts<float>(
    KernelContext&, const GemmProblem<float>&, int64_t,
    absl::FunctionRef<void(int64_t, GemmProblem<float>*)>);
extern template absl::Status RunProducts<double>(
    KernelContext&, const GemmProblem<double>&, int64_t,
    absl::FunctionRef<void(int64_t, GemmProblem<double>*)>);

/// On the calling thread alone.
template <typename T>
void RunProductHere(const GemmProblem<T>& problem);
extern template void RunProductHere<float>(const GemmProblem<float>&);
extern template void RunProductHere<double>(const GemmProblem<double>&);

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_PRODUCT_H_
