// Cholesky, MatrixInverse, MatrixSolve, MatrixTriangularSolve: one system for each matrix of a
// batch, in parallel.
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/strided_copy.h"
#include "kernels/kernel_registry.h"
#include "kernels/linalg/batch.h"
#include "kernels/linalg/decompositions.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// Nanoseconds that one matrix takes: n^2 * columns multiplications and some.
double SystemNs(int64_t n, int64_t columns) {
  return 500 + 0.3 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(columns);
}

/// Calls `f.operator()<T>()` for the types of decompositions.
template <typename F>
absl::Status SwitchSolveType(ElementType type, F&& f) {
  return SwitchType<float, double, complex64, complex128>(type, f);
}

/// Runs `solve(i)`, which is false for a singular matrix, for the matrices of a batch. The error
/// names the first singular one.
template <typename Solve>
absl::Status SolveBatch(KernelContext& ctx, int64_t count, double ns, Solve solve) {
  const int64_t singular = FirstFailure(ctx, count, ns, solve);
  return singular < count ? SingularMatrix(singular, count) : absl::OkStatus();
}

absl::Status Cholesky(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, SquareSize(input.shape(), "input"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), input.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  return SwitchSolveType(input.type(), [&]<typename T>() -> absl::Status {
    const T* from = input.unchecked_data<T>();
    T* to = out->mutable_data<T>();
    // A matrix that is not positive definite has a factor of NaNs: no error, as in TensorFlow.
    ctx.ParallelFor(out->num_elements() / (n * n), KernelContext::GrainFor(SystemNs(n, n)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        FactorCholesky(n, from + i * n * n, to + i * n * n);
                      }
                    });
    return absl::OkStatus();
  });
}

template <typename T>
absl::Status Invert(KernelContext& ctx, int64_t n, bool adjoint, int64_t elements, const T* from,
                    T* to) {
  return SolveBatch(ctx, elements / (n * n), SystemNs(n, 3 * n), [&](int64_t i) {
    return SolveLu<T>(n, n, from + i * n * n, adjoint, nullptr, to + i * n * n);
  });
}

absl::Status MatrixInverse(KernelContext& ctx, bool adjoint) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, SquareSize(input.shape(), "input"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), input.shape()));
  const int64_t elements = out->num_elements();
  if (elements == 0) return absl::OkStatus();
  if (input.type() == ElementType::kHalf) {  // In single precision.
    const absl::Span<const half> narrow = input.unchecked_values<half>();
    const std::vector<float> from(narrow.begin(), narrow.end());
    std::vector<float> to(from.size());
    TROUPE_RETURN_IF_ERROR(Invert(ctx, n, adjoint, elements, from.data(), to.data()));
    for (size_t i = 0; i < to.size(); ++i) out->mutable_data<half>()[i] = half(to[i]);
    return absl::OkStatus();
  }
  return SwitchSolveType(input.type(), [&]<typename T>() {
    return Invert(ctx, n, adjoint, elements, input.unchecked_data<T>(), out->mutable_data<T>());
  });
}

absl::Status Solve(KernelContext& ctx, bool triangular, bool adjoint, bool lower) {
  const Tensor &matrix = ctx.input(0), &rhs = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, SquareSize(matrix.shape(), "matrix"));
  TROUPE_RETURN_IF_ERROR(CheckRightSides(matrix.shape(), rhs.shape(), n));
  const int64_t columns = rhs.dim(rhs.rank() - 1);
  TROUPE_ASSIGN_OR_RETURN(
      const MatrixBatch batch,
      PairMatrices(matrix.shape(), rhs.shape(), /*broadcast=*/triangular, n, columns));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, matrix.type(), batch.shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  return SwitchSolveType(matrix.type(), [&]<typename T>() {
    const T *a = matrix.unchecked_data<T>(), *b = rhs.unchecked_data<T>();
    T* x = out->mutable_data<T>();
    return SolveBatch(ctx, static_cast<int64_t>(batch.pairs.size()),
                      SystemNs(n, columns + (triangular ? 0 : n)), [&](int64_t i) {
                        const T* one_a = a + batch.pairs[i].first * n * n;
                        const T* one_b = b + batch.pairs[i].second * n * columns;
                        T* one_x = x + i * n * columns;
                        if (triangular) {
                          SolveTriangular(n, columns, one_a, lower, adjoint, one_b, one_x);
                          return true;
                        }
                        return SolveLu(n, columns, one_a, adjoint, one_b, one_x);
                      });
  });
}

absl::Status MatrixSolve(KernelContext& ctx, bool adjoint) {
  return Solve(ctx, false, adjoint, false);
}

absl::Status MatrixTriangularSolve(KernelContext& ctx, bool adjoint, bool lower) {
  return Solve(ctx, true, adjoint, lower);
}

std::vector<ElementType> SolveTypes() {
  return {ElementType::kFloat, ElementType::kDouble, ElementType::kComplex64,
          ElementType::kComplex128};
}

KernelSpec Spec(const char* op, std::vector<ElementType> types = SolveTypes()) {
  return KernelSpec(op).Types("T", std::move(types)).Cost(KernelCost::kExpensive);
}

std::vector<ElementType> InverseTypes() {
  std::vector<ElementType> types = SolveTypes();
  types.push_back(ElementType::kHalf);
  return types;
}

REGISTER_KERNEL(Spec("Cholesky"), MakeKernel<Cholesky>);
REGISTER_KERNEL(Spec("MatrixInverse", InverseTypes()), (MakeAttrKernel<MatrixInverse, "adjoint">));
REGISTER_KERNEL(Spec("MatrixSolve"), (MakeAttrKernel<MatrixSolve, "adjoint">));
REGISTER_KERNEL(Spec("MatrixTriangularSolve"),
                (MakeAttrKernel<MatrixTriangularSolve, "adjoint", "lower">));

}  // namespace
}  // namespace troupe
