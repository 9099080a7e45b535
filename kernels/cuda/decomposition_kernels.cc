// Determinants, decompositions and eigenvalues of GPUs.
#include <algorithm>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/array/layout_engine.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/cast.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/decompositions.h"
#include "kernels/linalg/batch.h"

namespace troupe::cuda {
namespace {

/// Room for the first matrix that a launch refuses.
absl::StatusOr<Tensor> RoomForFirst(KernelContext& ctx) {
  return ctx.AllocateTemp(ElementType::kUint64, Shape());
}
unsigned long long* FirstIn(Tensor& room) {
  return static_cast<unsigned long long*>(room.mutable_raw_data());
}

absl::Status Determinant(KernelContext& ctx, bool as_logarithm) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(input.shape()));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(input.type()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * first, AllocateBelow(ctx, 0, input.type(), sizes, {}));
  Tensor* second = nullptr;
  if (as_logarithm) {
    TROUPE_ASSIGN_OR_RETURN(second, AllocateBelow(ctx, 1, input.type(), sizes, {}));
  }
  if (sizes.count == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(Tensor work, ctx.AllocateTemp(input.type(), input.shape()));
  return CudaStatus(
      LaunchDeterminant(type, sizes.count, sizes.rows, input.raw_data(), work.mutable_raw_data(),
                        first->mutable_raw_data(),
                        second != nullptr ? second->mutable_raw_data() : nullptr, StreamOf(ctx)),
      "a determinant");
}

absl::Status MatrixDeterminant(KernelContext& ctx) { return Determinant(ctx, false); }
absl::Status LogMatrixDeterminant(KernelContext& ctx) { return Determinant(ctx, true); }

absl::Status NotInvertible(const int64_t* values) {
  return FailedMatrix(values[0], values[1], kNotInvertible);
}

absl::Status Lu(KernelContext& ctx, ElementType index_type) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(input.shape()));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(input.type()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * lu, ctx.AllocateOutput(0, input.type(), input.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * p, AllocateBelow(ctx, 1, index_type, sizes, {sizes.rows}));
  if (lu->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, NotInvertible));
  TROUPE_ASSIGN_OR_RETURN(Tensor first, RoomForFirst(ctx));
  const LuCall call{type,
                    sizes.count,
                    sizes.rows,
                    input.raw_data(),
                    lu->mutable_raw_data(),
                    p->mutable_raw_data(),
                    index_type == ElementType::kInt64};
  return CudaStatus(LaunchLu(call, FirstIn(first), check, StreamOf(ctx)), "an LU decomposition");
}

/// The decomposition of `a` into q and r, of its type.
absl::Status EnqueueQr(KernelContext& ctx, const MatrixSizes& sizes, bool full, const Tensor& a,
                       Tensor* q, Tensor* r) {
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(a.type()));
  const int64_t m = sizes.rows, n = sizes.columns;
  TROUPE_ASSIGN_OR_RETURN(Tensor work,
                          ctx.AllocateTemp(a.type(), Shape({sizes.count, m * n + std::min(m, n)})));
  const QrCall call{type,
                    sizes.count,
                    m,
                    n,
                    full,
                    a.raw_data(),
                    q->mutable_raw_data(),
                    r->mutable_raw_data(),
                    work.mutable_raw_data()};
  return CudaStatus(LaunchQr(call, StreamOf(ctx)), "a QR decomposition");
}

absl::Status Convert(KernelContext& ctx, const Tensor& from, Tensor* to) {
  TROUPE_ASSIGN_OR_RETURN(const Number from_type, NumberOf(from.type()));
  TROUPE_ASSIGN_OR_RETURN(const Number to_type, NumberOf(to->type()));
  return CudaStatus(LaunchCast(from_type, to_type, /*truncate=*/false, from.raw_data(),
                               to->mutable_raw_data(), from.num_elements(), StreamOf(ctx)),
                    "a cast");
}

absl::Status Qr(KernelContext& ctx, bool full) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(input.shape()));
  const int64_t m = sizes.rows, n = sizes.columns, p = full ? m : std::min(m, n);
  TROUPE_ASSIGN_OR_RETURN(Tensor * q, AllocateBelow(ctx, 0, input.type(), sizes, {m, p}));
  TROUPE_ASSIGN_OR_RETURN(Tensor * r, AllocateBelow(ctx, 1, input.type(), sizes, {p, n}));
  if (q->num_elements() == 0) return absl::OkStatus();
  if (input.type() != ElementType::kHalf) return EnqueueQr(ctx, sizes, full, input, q, r);
  // In single precision.
  TROUPE_ASSIGN_OR_RETURN(Tensor a, ctx.AllocateTemp(ElementType::kFloat, input.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor wide_q, ctx.AllocateTemp(ElementType::kFloat, q->shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor wide_r, ctx.AllocateTemp(ElementType::kFloat, r->shape()));
  TROUPE_RETURN_IF_ERROR(Convert(ctx, input, &a));
  TROUPE_RETURN_IF_ERROR(EnqueueQr(ctx, sizes, full, a, &wide_q, &wide_r));
  TROUPE_RETURN_IF_ERROR(Convert(ctx, wide_q, q));
  return Convert(ctx, wide_r, r);
}

/// Makes square matrices of n rows the identity.
absl::Status SetIdentity(KernelContext& ctx, const MatrixSizes& sizes, int64_t n, Tensor* out) {
  if (out->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(out->type()));
  // What is left of no columns is the identity.
  const QrCall call{type, sizes.count, n, 0, /*full=*/true, nullptr, out->mutable_raw_data()};
  return CudaStatus(LaunchQr(call, StreamOf(ctx)), "an identity");
}

absl::Status Svd(KernelContext& ctx, bool compute_uv, bool full) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(input.shape()));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(input.type()));
  const int64_t m = sizes.rows, n = sizes.columns, p = std::min(m, n);
  TROUPE_ASSIGN_OR_RETURN(Tensor * s, AllocateBelow(ctx, 0, input.type(), sizes, {p}));
  if (!compute_uv) {
    TROUPE_RETURN_IF_ERROR(LeaveOut(ctx, 1, input.type()));
    TROUPE_RETURN_IF_ERROR(LeaveOut(ctx, 2, input.type()));
    if (s->num_elements() == 0) return absl::OkStatus();
  }
  SvdCall call{type, sizes.count, m, n, full, input.raw_data(), s->mutable_raw_data()};
  if (compute_uv) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * u,
                            AllocateBelow(ctx, 1, input.type(), sizes, {m, full ? m : p}));
    TROUPE_ASSIGN_OR_RETURN(Tensor * v,
                            AllocateBelow(ctx, 2, input.type(), sizes, {n, full ? n : p}));
    if (p == 0 || sizes.count == 0) {  // All vectors belong to no singular value.
      if (!full) return absl::OkStatus();
      TROUPE_RETURN_IF_ERROR(SetIdentity(ctx, sizes, m, u));
      return SetIdentity(ctx, sizes, n, v);
    }
    call.u = u->mutable_raw_data();
    call.v = v->mutable_raw_data();
  }
  TROUPE_ASSIGN_OR_RETURN(
      Tensor work, ctx.AllocateTemp(input.type(), Shape({sizes.count, SvdWork(m, n, compute_uv)})));
  call.work = work.mutable_raw_data();
  return CudaStatus(LaunchSvd(call, StreamOf(ctx)), "a singular value decomposition");
}

absl::Status NoEigenvalues(const int64_t* values) {
  return FailedMatrix(values[0], values[1], kNoEigenvalues);
}

absl::Status SelfAdjointEigV2(KernelContext& ctx, bool compute_v) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const MatrixSizes sizes, SquareSizesOf(input.shape()));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(input.type()));
  const int64_t n = sizes.rows;
  TROUPE_ASSIGN_OR_RETURN(Tensor * e, AllocateBelow(ctx, 0, input.type(), sizes, {n}));
  EigenCall call{type, sizes.count, n, input.raw_data(), e->mutable_raw_data()};
  if (compute_v) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * v, ctx.AllocateOutput(1, input.type(), input.shape()));
    call.v = v->mutable_raw_data();
  } else {
    TROUPE_RETURN_IF_ERROR(LeaveOut(ctx, 1, input.type()));
  }
  if (e->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(
      Tensor work, ctx.AllocateTemp(input.type(), Shape({sizes.count, EigenWork(n, compute_v)})));
  call.work = work.mutable_raw_data();
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, NoEigenvalues));
  TROUPE_ASSIGN_OR_RETURN(Tensor first, RoomForFirst(ctx));
  return CudaStatus(LaunchHermitianEigen(call, FirstIn(first), check, StreamOf(ctx)),
                    "eigenvalues");
}

}  // namespace

void RegisterDecompositions(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op)
        .Device("GPU")
        .Types("T", {ElementType::kFloat, ElementType::kDouble, ElementType::kComplex64,
                     ElementType::kComplex128})
        .Cost(KernelCost::kExpensive);
  };
  extension.Kernel(spec("MatrixDeterminant"), MakeKernel<MatrixDeterminant>);
  extension.Kernel(spec("LogMatrixDeterminant"), MakeKernel<LogMatrixDeterminant>);
  extension.Kernel(spec("Lu").Types("output_idx_type", IndexTypes()),
                   MakeAttrKernel<Lu, "output_idx_type">);
  extension.Kernel(spec("SelfAdjointEigV2"), MakeAttrKernel<SelfAdjointEigV2, "compute_v">);
  extension.Kernel(spec("Svd"), MakeAttrKernel<Svd, "compute_uv", "full_matrices">);
  extension.Kernel(KernelSpec("Qr")
                       .Device("GPU")
                       .Types("T", {ElementType::kHalf, ElementType::kFloat, ElementType::kDouble,
                                    ElementType::kComplex64, ElementType::kComplex128})
                       .Cost(KernelCost::kExpensive),
                   MakeAttrKernel<Qr, "full_matrices">);
}

}  // namespace troupe::cuda
