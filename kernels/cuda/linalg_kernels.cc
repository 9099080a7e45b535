// Cholesky, MatrixInverse, MatrixSolve and MatrixTriangularSolve of GPUs.
#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/linalg.h"
#include "kernels/cuda/operands.h"
#include "kernels/linalg/batch.h"

namespace troupe::cuda {
namespace {

absl::Status Cholesky(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, SquareSize(input.shape(), "input"));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(input.type()));
  const void* a = input.raw_data();
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  const int64_t elements = out->num_elements();
  if (elements == 0) return absl::OkStatus();
  return CudaStatus(
      LaunchCholesky(type, a, out->mutable_raw_data(), elements / (n * n), n, StreamOf(ctx)),
      "a Cholesky decomposition");
}

absl::Status Singular(const int64_t* values) { return SingularMatrix(values[0], values[1]); }

absl::Status SolveBatch(KernelContext& ctx, SolveCall call) {
  TROUPE_ASSIGN_OR_RETURN(call.type, NumberOf(ctx.input(0).type()));
  call.a = ctx.input(0).raw_data();
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, Singular));
  TROUPE_ASSIGN_OR_RETURN(Tensor work, ctx.AllocateTemp(ctx.input(0).type(), ctx.input(0).shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor first, ctx.AllocateTemp(ElementType::kUint64, Shape()));
  return CudaStatus(
      LaunchSolve(call, work.mutable_raw_data(),
                  static_cast<unsigned long long*>(first.mutable_raw_data()), check, StreamOf(ctx)),
      "a linear system");
}

absl::Status MatrixInverse(KernelContext& ctx, bool adjoint) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, SquareSize(input.shape(), "input"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), input.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  SolveCall call{};
  call.adjoint = adjoint;
  call.x = out->mutable_raw_data();
  call.n = call.columns = n;
  call.count = out->num_elements() / (n * n);
  return SolveBatch(ctx, call);
}

/// Makes the output; a count of 0 if it is empty.
absl::StatusOr<SolveCall> CallOf(KernelContext& ctx, bool adjoint, bool broadcast) {
  const Tensor &matrix = ctx.input(0), &rhs = ctx.input(1);
  SolveCall call{};
  call.adjoint = adjoint;
  TROUPE_ASSIGN_OR_RETURN(call.n, SquareSize(matrix.shape(), "matrix"));
  TROUPE_RETURN_IF_ERROR(CheckRightSides(matrix.shape(), rhs.shape(), call.n));
  call.columns = rhs.dim(rhs.rank() - 1);
  TROUPE_ASSIGN_OR_RETURN(
      const Shape shape, PairedShape(matrix.shape(), rhs.shape(), broadcast, call.n, call.columns));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, matrix.type(), shape));
  if (out->num_elements() == 0) return call;
  call.b = rhs.raw_data();
  call.x = out->mutable_raw_data();
  call.count = out->num_elements() / (call.n * call.columns);
  return call;
}

absl::Status MatrixSolve(KernelContext& ctx, bool adjoint) {
  TROUPE_ASSIGN_OR_RETURN(const SolveCall call, CallOf(ctx, adjoint, /*broadcast=*/false));
  return call.count == 0 ? absl::OkStatus() : SolveBatch(ctx, call);
}

absl::Status MatrixTriangularSolve(KernelContext& ctx, bool adjoint, bool lower) {
  TROUPE_ASSIGN_OR_RETURN(SolveCall call, CallOf(ctx, adjoint, /*broadcast=*/true));
  if (call.count == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(call.type, NumberOf(ctx.input(0).type()));
  call.a = ctx.input(0).raw_data();
  const auto batch = [](const Shape& s) { return Shape(s.dims().subspan(0, s.rank() - 2)); };
  const Shape a = batch(ctx.input(0).shape()), b = batch(ctx.input(1).shape());
  TROUPE_ASSIGN_OR_RETURN(const Broadcast walk,
                          BroadcastOperands(batch(ctx.output(0).shape()), {&a, &b}));
  return CudaStatus(LaunchTriangularSolve(call, lower, walk, StreamOf(ctx)), "a triangular system");
}

}  // namespace

void RegisterLinalg(Extension& extension) {
  const auto add = [&extension](const char* op, KernelFactory factory) {
    extension.Kernel(KernelSpec(op)
                         .Device("GPU")
                         .Types("T", {ElementType::kFloat, ElementType::kDouble,
                                      ElementType::kComplex64, ElementType::kComplex128})
                         .Cost(KernelCost::kExpensive),
                     factory);
  };
  add("Cholesky", MakeKernel<Cholesky>);
  add("MatrixInverse", MakeAttrKernel<MatrixInverse, "adjoint">);
  add("MatrixSolve", MakeAttrKernel<MatrixSolve, "adjoint">);
  add("MatrixTriangularSolve", MakeAttrKernel<MatrixTriangularSolve, "adjoint", "lower">);
}

}  // namespace troupe::cuda
