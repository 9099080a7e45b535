// A row of complex numbers in memory is a row of twice as many real ones. One operand is read so,
// where it lies; the other is rewritten as a real matrix of twice its size, so that one real
// product forms the products of all parts.
#include "kernels/linalg/complex_product.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/linalg/product.h"

namespace troupe {
namespace {

// How a product is computed.
enum class Way {
  kRightPairs,  // a as it lies; each row of b as two, of which the second is i times the first
  kRightDots,   // the same for a single column, which is written as two rows
  kLeftParts,   // b as it lies; a as its real parts and, in rows below, its imaginary ones
};

template <typename R>
class ComplexProduct {
 public:
  ComplexProduct(const ComplexGemm<R>& p, bool conjugate_a, bool conjugate_b)
      : p_(p), conjugate_a_(conjugate_a), conjugate_b_(conjugate_b) {
    if (p.m == 1 && p.n > 1 && p.b_col != 1) Transpose();
    if (p.n == 1 && p.m > 1 && p.a_col != 1 && p.ldc == 1) Transpose();
    if (ReadsB()) {
      way_ = Way::kLeftParts;
    } else if (p_.n == 1 && p_.a_col == 1) {
      way_ = Way::kRightDots;
    }
  }

  /// The numbers that `Rewrite` writes and the product of its result.
  int64_t ScratchSize() const {
    const int64_t m = p_.m, n = p_.n, k = p_.k;
    if (way_ == Way::kLeftParts) return 2 * m * k + 4 * m * n;
    if (way_ == Way::kRightDots) return 4 * k + 2 * m;
    return 4 * k * n + (CopiesA() ? 2 * m * k : 0);
  }

  GemmProblem<R> Rewrite(R* scratch) const {
    const int64_t m = p_.m, n = p_.n, k = p_.k;
    if (way_ == Way::kLeftParts) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t l = 0; l < k; ++l) {
          const std::complex<R> x = A(i, l);
          scratch[i * k + l] = x.real();
          scratch[(m + i) * k + l] = conjugate_a_ ? -x.imag() : x.imag();
        }
      }
      const R* b = reinterpret_cast<const R*>(p_.b);
      return {2 * m, 2 * n, k, scratch, k, 1, b, 2 * p_.b_row, 1, scratch + 2 * m * k, 2 * n};
    }
    // Of each b, the real and the imaginary part, and those of i b, with which the parts of a are
    // multiplied.
    const R sign_a = conjugate_a_ ? -1 : 1, sign_b = conjugate_b_ ? -1 : 1;
    const int64_t next = way_ == Way::kRightDots ? 2 * k : 1, pair = next == 1 ? 2 * n : 1;
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j) {
        const std::complex<R> y = p_.b[l * p_.b_row + j * p_.b_col];
        R* out = scratch + 2 * (l * pair + j);
        const R imag = sign_b * y.imag();
        out[0] = y.real();
        out[next] = imag;
        out[pair] = -sign_a * imag;
        out[pair + next] = sign_a * y.real();
      }
    }
    R* after = scratch + 4 * k * n;
    const R* a = reinterpret_cast<const R*>(p_.a);
    if (way_ == Way::kRightDots) {
      return {2, m, 2 * k, scratch, 2 * k, 1, a, 1, 2 * p_.a_row, after, m};
    }
    int64_t a_row = 2 * p_.a_row;
    if (CopiesA()) {
      auto* rows = reinterpret_cast<std::complex<R>*>(after);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t l = 0; l < k; ++l) rows[i * k + l] = A(i, l);
      }
      a = after;
      a_row = 2 * k;
    }
    return {m,         2 * n, 2 * k, a, a_row, 1, scratch, 2 * n, 1, reinterpret_cast<R*>(p_.c),
            2 * p_.ldc};
  }

  /// Writes the complex result, given that of the real product.
  void Finish(const R* product) const {
    const int64_t m = p_.m, n = p_.n;
    if (way_ == Way::kRightDots) {
      for (int64_t i = 0; i < m; ++i) p_.c[i * p_.ldc] = {product[i], product[m + i]};
    } else if (way_ == Way::kLeftParts) {
      const R sign = conjugate_b_ ? -1 : 1;
      for (int64_t i = 0; i < m; ++i) {
        const R* x = product + i * 2 * n;  // the real part of a times both of b
        const R* y = product + (m + i) * 2 * n;
        for (int64_t j = 0; j < n; ++j) {
          p_.c[i * p_.ldc + j] = {x[2 * j] - sign * y[2 * j + 1], sign * x[2 * j + 1] + y[2 * j]};
        }
      }
    }
  }

 private:
  std::complex<R> A(int64_t i, int64_t l) const { return p_.a[i * p_.a_row + l * p_.a_col]; }
  bool CopiesA() const { return way_ == Way::kRightPairs && p_.a_col != 1; }
  // Rewriting the other operand, and adding up parts, should cost less.
  bool ReadsB() const {
    const int64_t m = p_.m, n = p_.n, k = p_.k;
    return p_.b_col == 1 && (p_.a_col != 1 || 2 * m * k + 8 * m * n < 4 * k * n);
  }
  // c' = b' a'.
  void Transpose() {
    std::swap(p_.m, p_.n);
    std::swap(p_.a, p_.b);
    std::swap(p_.a_row, p_.b_col);
    std::swap(p_.a_col, p_.b_row);
    std::swap(conjugate_a_, conjugate_b_);
    p_.ldc = 1;
  }

  ComplexGemm<R> p_;
  bool conjugate_a_, conjugate_b_;
  Way way_ = Way::kRightPairs;
};

}  // namespace

template <typename R>
absl::Status RunComplexProducts(KernelContext& ctx, const ComplexGemm<R>& form, bool conjugate_a,
                                bool conjugate_b, int64_t count,
                                absl::FunctionRef<void(int64_t, ComplexGemm<R>*)> pointers) {
  const auto product = [&](int64_t i) {
    ComplexGemm<R> problem = form;
    pointers(i, &problem);
    return ComplexProduct<R>(problem, conjugate_a, conjugate_b);
  };
  const int64_t scratch_size = ComplexProduct<R>(form, conjugate_a, conjugate_b).ScratchSize();
  // Small products are shared out whole, large ones are cut one by one.
  constexpr double kLarge = 4e6;
  const double operations =
      8.0 * static_cast<double>(form.m) * static_cast<double>(form.n) * static_cast<double>(form.k);
  if (operations < kLarge) {
    ctx.ParallelFor(count, KernelContext::GrainFor(20 + operations / 100),
                    [&](int64_t begin, int64_t end) {
                      const auto scratch = std::make_unique_for_overwrite<R[]>(scratch_size);
                      for (int64_t i = begin; i < end; ++i) {
                        const ComplexProduct<R> each = product(i);
                        const GemmProblem<R> real = each.Rewrite(scratch.get());
                        RunProductHere(real);
                        each.Finish(real.c);
                      }
                    });
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor space, ctx.AllocateTemp(kElementType<R>, Shape({scratch_size})));
  for (int64_t i = 0; i < count; ++i) {
    const ComplexProduct<R> each = product(i);
    const GemmProblem<R> real = each.Rewrite(space.mutable_data<R>());
    TROUPE_RETURN_IF_ERROR(RunProducts<R>(ctx, real, 1, [](int64_t, GemmProblem<R>*) {}));
    each.Finish(real.c);
  }
  return absl::OkStatus();
}
template absl::Status RunComplexProducts<float>(
    KernelContext&, const ComplexGemm<float>&, bool, bool, int64_t,
    absl::FunctionRef<void(int64_t, ComplexGemm<float>*)>);
template absl::Status RunComplexProducts<double>(
    KernelContext&, const ComplexGemm<double>&, bool, bool, int64_t,
    absl::FunctionRef<void(int64_t, ComplexGemm<double>*)>);

template <typename R>
void RunComplexProductHere(const ComplexGemm<R>& problem, bool conjugate_a, bool conjugate_b) {
  const ComplexProduct<R> product(problem, conjugate_a, conjugate_b);
  const auto scratch = std::make_unique_for_overwrite<R[]>(product.ScratchSize());
  const GemmProblem<R> real = product.Rewrite(scratch.get());
  RunProductHere(real);
  product.Finish(real.c);
}
template void RunComplexProductHere<float>(const ComplexGemm<float>&, bool, bool);
template void RunComplexProductHere<double>(const ComplexGemm<double>&, bool, bool);

}  // namespace troupe
