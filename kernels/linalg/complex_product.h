/// Matrix products of complex numbers.
#ifndef TROUPE_KERNELS_LINALG_COMPLEX_PRODUCT_H_
#define TROUPE_KERNELS_LINALG_COMPLEX_PRODUCT_H_

#include <complex>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/kernel.h"
#include "kernels/simd/gemm.h"

namespace troupe {

template <typename R>
using ComplexGemm = GemmProblem<std::complex<R>>;

/// As RunProducts (product.h), for complex numbers. The operands of a product are conjugated where
/// it says so. Parts are multiplied as the formula says, without the standard library's treatment
/// of infinities. R is float or double.
template <typename R>
absl::Status RunComplexProducts(KernelContext& ctx, const ComplexGemm<R>& form, bool conjugate_a,
                                bool conjugate_b, int64_t count,
                                absl::FunctionRef<void(int64_t, ComplexGemm<R>*)> pointers);

/// On the calling thread alone.
template <typename R>
void RunComplexProductHere(const ComplexGemm<R>& problem, bool conjugate_a, bool conjugate_b);

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_COMPLEX_PRODUCT_H_
