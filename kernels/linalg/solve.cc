// Cholesky, MatrixInverse, MatrixSolve, MatrixTriangularSolve: one system for each matrix of a
// batch, in parallel.
#include <atomic>
#include <type_traits>
#include <vector>

#include "kernels/common/strided_copy.h"
#include "kernels/kernel_registry.h"
#include "kernels/linalg/decompositions.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// Nanoseconds that one matrix takes: n^2 * columns multiplications and some.
double SystemNs(int64_t n, int64_t columns) {
  return 500 + 0.3 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(columns);
}

/// The size of the square matrices in the last two dimensions; InvalidArgument if they are none.
absl::StatusOr<int64_t> SquareSize(const Shape& shape, std::string_view what) {
  const int rank = shape.rank();
  if (rank < 2 || shape.dim(rank - 1) != shape.dim(rank - 2)) {
    return InvalidArgument(std::string(what), " must hold square matrices in its last two ",
                           "dimensions, got shape ", shape.ToString());
  }
  return shape.dim(rank - 1);
}

absl::Status Singular(int64_t index, int64_t count) {
  return InvalidArgument("the matrix is not invertible",
                         count > 1 ? StrCat(" (number ", index, " of the batch)") : "");
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
  std::atomic<int64_t> singular{count};
  ctx.ParallelFor(count, KernelContext::GrainFor(ns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (solve(i)) continue;
      int64_t first = singular.load();
      while (i < first && !singular.compare_exchange_weak(first, i)) {
      }
      return;
    }
  });
  return singular.load() < count ? Singular(singular.load(), count) : absl::OkStatus();
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

class MatrixInverse : public Kernel {
 public:
  MatrixInverse(KernelConstruction& construction, absl::Status* status) {
    *status = construction.GetAttr("adjoint", &adjoint_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const int64_t n, SquareSize(input.shape(), "input"));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), input.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (input.type() == ElementType::kHalf) return InvertHalf(ctx, n, input, out);
    return SwitchSolveType(input.type(), [&]<typename T>() {
      return Invert(ctx, n, out->num_elements(), input.unchecked_data<T>(), out->mutable_data<T>());
    });
  }

 private:
  template <typename T>
  absl::Status Invert(KernelContext& ctx, int64_t n, int64_t elements, const T* from, T* to) {
    return SolveBatch(ctx, elements / (n * n), SystemNs(n, 3 * n), [&](int64_t i) {
      return SolveLu<T>(n, n, from + i * n * n, adjoint_, nullptr, to + i * n * n);
    });
  }

  /// In single precision.
  absl::Status InvertHalf(KernelContext& ctx, int64_t n, const Tensor& input, Tensor* out) {
    const absl::Span<const half> narrow = input.unchecked_values<half>();
    const std::vector<float> from(narrow.begin(), narrow.end());
    std::vector<float> to(from.size());
    TROUPE_RETURN_IF_ERROR(
        Invert(ctx, n, static_cast<int64_t>(from.size()), from.data(), to.data()));
    for (size_t i = 0; i < to.size(); ++i) out->mutable_data<half>()[i] = half(to[i]);
    return absl::OkStatus();
  }

  bool adjoint_ = false;
};

/// Which matrices and right-hand sides are solved for each of the results.
struct SystemBatch {
  int64_t n = 0, columns = 0;
  Shape shape;                                     ///< Of the result.
  std::vector<std::pair<int64_t, int64_t>> pairs;  ///< Matrix and right-hand side, by result.
};

/// Checks shapes; batch dimensions must be equal, or are broadcast.
absl::StatusOr<SystemBatch> BatchOf(const Shape& matrix, const Shape& rhs, bool broadcast) {
  SystemBatch batch;
  TROUPE_ASSIGN_OR_RETURN(batch.n, SquareSize(matrix, "matrix"));
  if (rhs.rank() < 2 || rhs.dim(rhs.rank() - 2) != batch.n) {
    return InvalidArgument("rhs of shape ", rhs.ToString(), " must hold matrices of ", batch.n,
                           " rows, as many as those of matrix of shape ", matrix.ToString());
  }
  batch.columns = rhs.dim(rhs.rank() - 1);
  if (!broadcast && matrix.rank() != rhs.rank()) {
    return InvalidArgument("matrix and rhs must have the same rank, got shapes ", matrix.ToString(),
                           " and ", rhs.ToString());
  }
  const int rank = std::max(matrix.rank(), rhs.rank()) - 2;
  DimVector dims(rank), matrix_stride(rank), rhs_stride(rank);
  int64_t matrices = 1, sides = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const int from_end = rank - d + 2;
    const int64_t a = from_end <= matrix.rank() ? matrix.dim(matrix.rank() - from_end) : 1;
    const int64_t b = from_end <= rhs.rank() ? rhs.dim(rhs.rank() - from_end) : 1;
    if (a != b && (!broadcast || (a != 1 && b != 1))) {
      return InvalidArgument("the batch dimensions do not fit: matrix has the shape ",
                             matrix.ToString(), ", rhs ", rhs.ToString());
    }
    dims[d] = a == 1 ? b : a;
    matrix_stride[d] = a == 1 ? 0 : matrices;
    rhs_stride[d] = b == 1 ? 0 : sides;
    matrices *= a;
    sides *= b;
  }
  DimVector all = dims;
  all.push_back(batch.n);
  all.push_back(batch.columns);
  TROUPE_ASSIGN_OR_RETURN(batch.shape, Shape::Create(all));
  if (batch.shape.num_elements() == 0) return batch;
  batch.pairs.resize(batch.shape.num_elements() / (batch.n * batch.columns));
  for (size_t i = 0; i < batch.pairs.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), a = 0, b = 0;
    for (int d = rank - 1; d >= 0; --d) {
      a += rest % dims[d] * matrix_stride[d];
      b += rest % dims[d] * rhs_stride[d];
      rest /= dims[d];
    }
    batch.pairs[i] = {a, b};
  }
  return batch;
}

class MatrixSolve : public Kernel {
 public:
  MatrixSolve(KernelConstruction& construction, absl::Status* status)
      : triangular_(construction.op() == "MatrixTriangularSolve") {
    *status = construction.GetAttr("adjoint", &adjoint_);
    if (status->ok() && triangular_) *status = construction.GetAttr("lower", &lower_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &matrix = ctx.input(0), &rhs = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const SystemBatch batch,
                            BatchOf(matrix.shape(), rhs.shape(), /*broadcast=*/triangular_));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, matrix.type(), batch.shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const int64_t n = batch.n, columns = batch.columns;
    return SwitchSolveType(matrix.type(), [&]<typename T>() {
      const T *a = matrix.unchecked_data<T>(), *b = rhs.unchecked_data<T>();
      T* x = out->mutable_data<T>();
      return SolveBatch(ctx, static_cast<int64_t>(batch.pairs.size()),
                        SystemNs(n, columns + (triangular_ ? 0 : n)), [&](int64_t i) {
                          const T* one_a = a + batch.pairs[i].first * n * n;
                          const T* one_b = b + batch.pairs[i].second * n * columns;
                          T* one_x = x + i * n * columns;
                          if (triangular_) {
                            SolveTriangular(n, columns, one_a, lower_, adjoint_, one_b, one_x);
                            return true;
                          }
                          return SolveLu(n, columns, one_a, adjoint_, one_b, one_x);
                        });
    });
  }

 private:
  const bool triangular_;
  bool adjoint_ = false, lower_ = true;
};

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
REGISTER_KERNEL(Spec("MatrixInverse", InverseTypes()), MakeKernel<MatrixInverse>);
REGISTER_KERNEL(Spec("MatrixSolve"), MakeKernel<MatrixSolve>);
REGISTER_KERNEL(Spec("MatrixTriangularSolve"), MakeKernel<MatrixSolve>);

}  // namespace
}  // namespace troupe
