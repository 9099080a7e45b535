// Determinants, decompositions, eigenvalues, functions and least squares: of each matrix of a
// batch, in parallel.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/strided_copy.h"
#include "kernels/common/widen.h"
#include "kernels/linalg/batch.h"
#include "kernels/linalg/factorizations.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// Nanoseconds that one matrix takes: about `factor` multiplications for each of m * n * p.
double MatrixNs(int64_t m, int64_t n, int64_t p, double factor) {
  return 500 +
         0.3 * factor * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(p);
}

template <typename F>
absl::Status SwitchFactorType(ElementType type, F&& f) {
  return SwitchType<float, double, complex64, complex128>(type, f);
}

/// The error of the first matrix that failed, of `count`.
absl::Status FailureOf(int64_t failed, int64_t count, std::string_view what) {
  if (failed == count) return absl::OkStatus();
  return FailedMatrix(failed, count, what);
}

absl::Status Determinant(KernelContext& ctx, bool as_logarithm) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(input.shape()));
  const int64_t n = sizes.rows;
  TROUPE_ASSIGN_OR_RETURN(Tensor * first, AllocateBelow(ctx, 0, input.type(), sizes, {}));
  Tensor* second = nullptr;
  if (as_logarithm) {
    TROUPE_ASSIGN_OR_RETURN(second, AllocateBelow(ctx, 1, input.type(), sizes, {}));
  }
  return SwitchFactorType(input.type(), [&]<typename T>() -> absl::Status {
    const T* from = input.unchecked_data<T>();
    T* sign = first->mutable_data<T>();
    T* logarithm = second == nullptr ? nullptr : second->mutable_data<T>();
    FirstFailure(ctx, sizes.count, MatrixNs(n, n, n, 1), [&](int64_t i) {
      typename RealPart<T>::Type log_abs = 0;
      sign[i] = SignAndLogDeterminant(n, from + i * n * n, &log_abs);
      if (as_logarithm) {
        logarithm[i] = T(log_abs);
      } else {
        sign[i] *= std::exp(log_abs);
      }
      return true;
    });
    return absl::OkStatus();
  });
}

absl::Status MatrixDeterminant(KernelContext& ctx) { return Determinant(ctx, false); }
absl::Status LogMatrixDeterminant(KernelContext& ctx) { return Determinant(ctx, true); }

template <typename T>
void QrOfBatch(KernelContext& ctx, const MatrixSizes& sizes, bool full, const T* a, T* q, T* r) {
  const int64_t m = sizes.rows, n = sizes.columns, p = full ? m : std::min(m, n);
  FirstFailure(ctx, sizes.count, MatrixNs(m, n, p, 4), [&](int64_t i) {
    FactorQr(m, n, a + i * m * n, full, q + i * m * p, r + i * p * n);
    return true;
  });
}

absl::Status Qr(KernelContext& ctx, bool full) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(input.shape()));
  const int64_t m = sizes.rows, n = sizes.columns, p = full ? m : std::min(m, n);
  TROUPE_ASSIGN_OR_RETURN(Tensor * q, AllocateBelow(ctx, 0, input.type(), sizes, {m, p}));
  TROUPE_ASSIGN_OR_RETURN(Tensor * r, AllocateBelow(ctx, 1, input.type(), sizes, {p, n}));
  if (q->num_elements() == 0) return absl::OkStatus();
  if (input.type() == ElementType::kHalf) {  // In single precision.
    TROUPE_ASSIGN_OR_RETURN(const Tensor a, Widened(ctx, input));
    TROUPE_ASSIGN_OR_RETURN(Tensor wide_q, ctx.AllocateTemp(ElementType::kFloat, q->shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor wide_r, ctx.AllocateTemp(ElementType::kFloat, r->shape()));
    QrOfBatch(ctx, sizes, full, a.unchecked_data<float>(), wide_q.mutable_data<float>(),
              wide_r.mutable_data<float>());
    NarrowTo(ctx, wide_q, q);
    NarrowTo(ctx, wide_r, r);
    return absl::OkStatus();
  }
  return SwitchFactorType(input.type(), [&]<typename T>() -> absl::Status {
    QrOfBatch(ctx, sizes, full, input.unchecked_data<T>(), q->mutable_data<T>(),
              r->mutable_data<T>());
    return absl::OkStatus();
  });
}

/// Makes square matrices the identity.
template <typename T>
void SetIdentity(Tensor* matrices, int64_t n) {
  T* data = matrices->mutable_data<T>();
  for (int64_t i = 0; i < matrices->num_elements(); ++i) {
    data[i] = T(i % (n * n) % (n + 1) == 0 ? 1 : 0);
  }
}

absl::Status Svd(KernelContext& ctx, bool compute_uv, bool full) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(input.shape()));
  const int64_t m = sizes.rows, n = sizes.columns, p = std::min(m, n);
  const int64_t u_columns = full ? m : p, v_columns = full ? n : p;
  TROUPE_ASSIGN_OR_RETURN(Tensor * s, AllocateBelow(ctx, 0, input.type(), sizes, {p}));
  Tensor *u = nullptr, *v = nullptr;
  if (compute_uv) {
    TROUPE_ASSIGN_OR_RETURN(u, AllocateBelow(ctx, 1, input.type(), sizes, {m, u_columns}));
    TROUPE_ASSIGN_OR_RETURN(v, AllocateBelow(ctx, 2, input.type(), sizes, {n, v_columns}));
  } else {
    TROUPE_RETURN_IF_ERROR(LeaveOut(ctx, 1, input.type()));
    TROUPE_RETURN_IF_ERROR(LeaveOut(ctx, 2, input.type()));
  }
  return SwitchFactorType(input.type(), [&]<typename T>() -> absl::Status {
    if (p == 0) {  // All vectors belong to no singular value.
      if (compute_uv && full) {
        SetIdentity<T>(u, m);
        SetIdentity<T>(v, n);
      }
      return absl::OkStatus();
    }
    const T* from = input.unchecked_data<T>();
    T* to_s = s->mutable_data<T>();
    T* to_u = compute_uv ? u->mutable_data<T>() : nullptr;
    T* to_v = compute_uv ? v->mutable_data<T>() : nullptr;
    FirstFailure(ctx, sizes.count, MatrixNs(m, n, p, 20), [&](int64_t i) {
      T* one_s = to_s + i * p;
      T* one_u = compute_uv ? to_u + i * m * u_columns : nullptr;
      T* one_v = compute_uv ? to_v + i * n * v_columns : nullptr;
      if (!FactorSvd(m, n, from + i * m * n, full, one_s, one_u, one_v)) {
        const T nan = T(std::numeric_limits<typename RealPart<T>::Type>::quiet_NaN());
        std::fill_n(one_s, p, nan);
        if (compute_uv) {
          std::fill_n(one_u, m * u_columns, nan);
          std::fill_n(one_v, n * v_columns, nan);
        }
      }
      return true;
    });
    return absl::OkStatus();
  });
}

absl::Status SelfAdjointEigV2(KernelContext& ctx, bool compute_v) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(input.shape()));
  const int64_t n = sizes.rows;
  TROUPE_ASSIGN_OR_RETURN(Tensor * e, AllocateBelow(ctx, 0, input.type(), sizes, {n}));
  Tensor* v = nullptr;
  if (compute_v) {
    TROUPE_ASSIGN_OR_RETURN(v, ctx.AllocateOutput(1, input.type(), input.shape()));
  } else {
    TROUPE_RETURN_IF_ERROR(LeaveOut(ctx, 1, input.type()));
  }
  if (e->num_elements() == 0) return absl::OkStatus();
  return SwitchFactorType(input.type(), [&]<typename T>() {
    const T* from = input.unchecked_data<T>();
    T* values = e->mutable_data<T>();
    T* vectors = compute_v ? v->mutable_data<T>() : nullptr;
    const int64_t failed = FirstFailure(ctx, sizes.count, MatrixNs(n, n, n, 9), [&](int64_t i) {
      return HermitianEigen(n, from + i * n * n, values + i * n,
                            compute_v ? vectors + i * n * n : nullptr);
    });
    return FailureOf(failed, sizes.count, kNoEigenvalues);
  });
}

absl::Status SelfAdjointEig(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(input.shape()));
  const int64_t n = sizes.rows;
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateBelow(ctx, 0, input.type(), sizes, {n + 1, n}));
  if (out->num_elements() == 0) return absl::OkStatus();
  return SwitchType<float, double>(input.type(), [&]<typename T>() {
    const T* from = input.unchecked_data<T>();
    T* to = out->mutable_data<T>();
    const int64_t failed = FirstFailure(ctx, sizes.count, MatrixNs(n, n, n, 9), [&](int64_t i) {
      T* values = to + i * (n + 1) * n;
      return HermitianEigen(n, from + i * n * n, values, values + n);
    });
    return FailureOf(failed, sizes.count, kNoEigenvalues);
  });
}

absl::Status Eig(KernelContext& ctx, bool compute_v) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(input.shape()));
  const int64_t n = sizes.rows;
  const bool narrow = ElementSize(input.type()) == (IsComplex(input.type()) ? 8 : 4);
  const ElementType type = narrow ? ElementType::kComplex64 : ElementType::kComplex128;
  TROUPE_ASSIGN_OR_RETURN(Tensor * e, AllocateBelow(ctx, 0, type, sizes, {n}));
  Tensor* v = nullptr;
  if (compute_v) {
    TROUPE_ASSIGN_OR_RETURN(v, ctx.AllocateOutput(1, type, input.shape()));
  } else {
    TROUPE_RETURN_IF_ERROR(LeaveOut(ctx, 1, type));
  }
  if (e->num_elements() == 0) return absl::OkStatus();
  return SwitchFactorType(input.type(), [&]<typename T>() {
    const T* from = input.unchecked_data<T>();
    auto* values = e->mutable_data<Complex<T>>();
    auto* vectors = compute_v ? v->mutable_data<Complex<T>>() : nullptr;
    const int64_t failed = FirstFailure(ctx, sizes.count, MatrixNs(n, n, n, 50), [&](int64_t i) {
      return GeneralEigen(n, from + i * n * n, values + i * n,
                          compute_v ? vectors + i * n * n : nullptr);
    });
    return FailureOf(failed, sizes.count, kNoEigenvalues);
  });
}

absl::Status Lu(KernelContext& ctx, ElementType index_type) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(input.shape()));
  const int64_t n = sizes.rows;
  TROUPE_ASSIGN_OR_RETURN(Tensor * lu, ctx.AllocateOutput(0, input.type(), input.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * p, AllocateBelow(ctx, 1, index_type, sizes, {n}));
  if (lu->num_elements() == 0) return absl::OkStatus();
  return SwitchFactorType(input.type(), [&]<typename T>() {
    const T* from = input.unchecked_data<T>();
    T* to = lu->mutable_data<T>();
    const int64_t failed = FirstFailure(ctx, sizes.count, MatrixNs(n, n, n, 1), [&](int64_t i) {
      std::vector<int64_t> rows(n);
      if (!FactorLu(n, from + i * n * n, to + i * n * n, rows.data())) return false;
      if (index_type == ElementType::kInt32) {
        std::copy(rows.begin(), rows.end(), p->mutable_data<int32_t>() + i * n);
      } else {
        std::copy(rows.begin(), rows.end(), p->mutable_data<int64_t>() + i * n);
      }
      return true;
    });
    return FailureOf(failed, sizes.count, kNotInvertible);
  });
}

absl::Status MatrixSolveLs(KernelContext& ctx, bool fast) {
  const Tensor &matrix = ctx.input(0), &rhs = ctx.input(1), &regularizer = ctx.input(2);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(matrix.shape()));
  const int64_t m = sizes.rows, n = sizes.columns;
  TROUPE_RETURN_IF_ERROR(CheckRightSides(matrix.shape(), rhs.shape(), m));
  if (regularizer.rank() != 0) {
    return InvalidArgument("l2_regularizer must be a scalar, got shape ",
                           regularizer.shape().ToString());
  }
  const double l2 = regularizer.unchecked_scalar<double>();
  if (!(l2 >= 0)) return InvalidArgument("l2_regularizer must not be negative, got ", l2);
  const int64_t columns = rhs.dim(rhs.rank() - 1);
  TROUPE_ASSIGN_OR_RETURN(
      const Shape shape, PairedShape(matrix.shape(), rhs.shape(), /*broadcast=*/false, n, columns));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, matrix.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  if (m == 0) {  // Every x fits; 0 is the smallest.
    ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
    return absl::OkStatus();
  }
  return SwitchFactorType(matrix.type(), [&]<typename T>() {
    const T *from_a = matrix.unchecked_data<T>(), *from_b = rhs.unchecked_data<T>();
    T* to = out->mutable_data<T>();
    const double ns = MatrixNs(m, n, std::min(m, n) + columns, fast ? 1 : 4);
    const int64_t failed = FirstFailure(ctx, sizes.count, ns, [&](int64_t i) {
      const T *a = from_a + i * m * n, *b = from_b + i * m * columns;
      T* x = to + i * n * columns;
      if (fast) return SolveNormalEquations(m, n, columns, a, b, l2, x);
      SolveLeastSquares(m, n, columns, a, b, x);
      return true;
    });
    return FailureOf(failed, sizes.count,
                     "the matrix lacks full rank or is ill-conditioned; fast=False or a larger "
                     "l2_regularizer may help");
  });
}

absl::Status CholeskyGrad(KernelContext& ctx) {
  const Tensor &l = ctx.input(0), &grad = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(l.shape()));
  if (l.shape() != grad.shape()) {
    return InvalidArgument("l and grad must have the same shape, got ", l.shape().ToString(),
                           " and ", grad.shape().ToString());
  }
  const int64_t n = sizes.rows;
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, l.type(), l.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  return SwitchType<float, double>(l.type(), [&]<typename T>() -> absl::Status {
    const T *factor = l.unchecked_data<T>(), *given = grad.unchecked_data<T>();
    T* to = out->mutable_data<T>();
    FirstFailure(ctx, sizes.count, MatrixNs(n, n, n, 3), [&](int64_t i) {
      const int64_t at = i * n * n;
      CholeskyGradient(n, factor + at, given + at, to + at);
      return true;
    });
    return absl::OkStatus();
  });
}

/// out = f(input), for a function f.operator()<T>(n, from, to) of one matrix.
template <typename... Types, typename F>
absl::Status MapMatrices(KernelContext& ctx, F f) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(input.shape()));
  const int64_t n = sizes.rows;
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), input.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  return SwitchType<Types...>(input.type(), [&]<typename T>() -> absl::Status {
    const T* from = input.unchecked_data<T>();
    T* to = out->mutable_data<T>();
    FirstFailure(ctx, sizes.count, MatrixNs(n, n, n, 30), [&](int64_t i) {
      f(n, from + i * n * n, to + i * n * n);
      return true;
    });
    return absl::OkStatus();
  });
}

/// f, of which complex64 has none, in complex128 for it.
template <typename F>
auto WidenComplex64(F f) {
  return [f]<typename T>(int64_t n, const T* from, T* to) {
    if constexpr (std::is_same_v<T, complex64>) {
      const std::vector<complex128> matrix(from, from + n * n);
      std::vector<complex128> result(matrix.size());
      f(n, matrix.data(), result.data());
      std::transform(result.begin(), result.end(), to,
                     [](complex128 x) { return static_cast<complex64>(x); });
    } else {
      f(n, from, to);
    }
  };
}

absl::Status MatrixExponential(KernelContext& ctx) {
  return MapMatrices<float, double, complex64, complex128>(
      ctx, []<typename T>(int64_t n, const T* from, T* to) { MatrixExp(n, from, to); });
}
absl::Status MatrixSquareRoot(KernelContext& ctx) {
  return MapMatrices<float, double, complex64, complex128>(
      ctx,
      WidenComplex64([]<typename T>(int64_t n, const T* from, T* to) { MatrixSqrt(n, from, to); }));
}
absl::Status MatrixLogarithm(KernelContext& ctx) {
  return MapMatrices<complex64, complex128>(
      ctx,
      WidenComplex64([]<typename T>(int64_t n, const T* from, T* to) { MatrixLog(n, from, to); }));
}

std::vector<ElementType> RealTypes() { return {ElementType::kFloat, ElementType::kDouble}; }
std::vector<ElementType> ComplexTypes() {
  return {ElementType::kComplex64, ElementType::kComplex128};
}
std::vector<ElementType> With(std::vector<ElementType> types, std::vector<ElementType> others) {
  types.insert(types.end(), others.begin(), others.end());
  return types;
}
KernelSpec Spec(const char* op,
                std::vector<ElementType> types = With(RealTypes(), ComplexTypes())) {
  return KernelSpec(op).Types("T", std::move(types)).Cost(KernelCost::kExpensive);
}

REGISTER_KERNEL(Spec("CholeskyGrad", RealTypes()), MakeKernel<CholeskyGrad>);
REGISTER_KERNEL(Spec("Eig", {ElementType::kFloat, ElementType::kComplex64})
                    .Types("Tout", {ElementType::kComplex64}),
                (MakeAttrKernel<Eig, "compute_v">));
REGISTER_KERNEL(Spec("Eig", {ElementType::kDouble, ElementType::kComplex128})
                    .Types("Tout", {ElementType::kComplex128}),
                (MakeAttrKernel<Eig, "compute_v">));
REGISTER_KERNEL(Spec("LogMatrixDeterminant"), MakeKernel<LogMatrixDeterminant>);
REGISTER_KERNEL(Spec("Lu").Types("output_idx_type", IndexTypes()),
                (MakeAttrKernel<Lu, "output_idx_type">));
REGISTER_KERNEL(Spec("MatrixDeterminant"), MakeKernel<MatrixDeterminant>);
REGISTER_KERNEL(Spec("MatrixExponential"), MakeKernel<MatrixExponential>);
REGISTER_KERNEL(Spec("MatrixLogarithm", ComplexTypes()), MakeKernel<MatrixLogarithm>);
REGISTER_KERNEL(Spec("MatrixSolveLs"), (MakeAttrKernel<MatrixSolveLs, "fast">));
REGISTER_KERNEL(Spec("MatrixSquareRoot"), MakeKernel<MatrixSquareRoot>);
REGISTER_KERNEL(Spec("Qr", With(RealTypes(), With(ComplexTypes(), {ElementType::kHalf}))),
                (MakeAttrKernel<Qr, "full_matrices">));
REGISTER_KERNEL(Spec("SelfAdjointEig", RealTypes()), MakeKernel<SelfAdjointEig>);
REGISTER_KERNEL(Spec("SelfAdjointEigV2"), (MakeAttrKernel<SelfAdjointEigV2, "compute_v">));
REGISTER_KERNEL(Spec("Svd"), (MakeAttrKernel<Svd, "compute_uv", "full_matrices">));

}  // namespace
}  // namespace troupe
