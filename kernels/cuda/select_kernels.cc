// Element-wise ops of GPUs with other operands: Select, SelectV2, ClipByValue, AddN, CheckNumerics
// (and V2), Cast.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "devices/status_macros.h"
#include "kernels/common/broadcast.h"
#include "kernels/common/registration.h"
#include "kernels/common/strided_copy.h"
#include "kernels/cuda/cast.h"
#include "kernels/cuda/check_numerics.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/fused_kernels.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/select.h"

namespace troupe::cuda {
namespace {

/// Inputs broadcast to `shape`; the condition as if it had `condition_shape`.
absl::Status Choose(KernelContext& ctx, const Shape& condition_shape, const Shape& shape) {
  const auto* condition = static_cast<const bool*>(ctx.input(0).raw_data());
  const void *x = ctx.input(1).raw_data(), *y = ctx.input(2).raw_data();
  const ElementType type = ctx.input(1).type();
  TROUPE_ASSIGN_OR_RETURN(
      const Broadcast broadcast,
      BroadcastOperands(shape, {&condition_shape, &ctx.input(1).shape(), &ctx.input(2).shape()}));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardEitherOrAllocate(1, 2, 0, type, shape));
  return CudaStatus(
      LaunchSelect(static_cast<int64_t>(ElementSize(type)), condition, x, y,
                   out->mutable_raw_data(), out->num_elements(), broadcast, StreamOf(ctx)),
      "choosing elements");
}

absl::Status Select(KernelContext& ctx) {
  const Shape condition = ctx.input(0).shape(), shape = ctx.input(1).shape();
  if (!(shape == ctx.input(2).shape())) {
    return InvalidArgument("the branches must have the same shape, got ", shape.ToString(), " and ",
                           ctx.input(2).shape().ToString());
  }
  if (condition.rank() == 0 || condition == shape) return Choose(ctx, condition, shape);
  if (condition.rank() != 1 || shape.rank() == 0 || condition.dim(0) != shape.dim(0)) {
    return InvalidArgument(
        "the condition must be a scalar, a vector with a value for each row of the branches, or of "
        "their shape; got condition ",
        condition.ToString(), " and branches ", shape.ToString());
  }
  DimVector rows(shape.rank(), 1);
  rows[0] = shape.dim(0);
  return Choose(ctx, Shape(rows), shape);
}

class SelectV2 final : public Kernel, public FusiblePart {
 public:
  SelectV2(KernelConstruction& construction, absl::Status*) {
    const ElementType type = construction.input_type(1);
    if (IsFloating(type)) Offer(FusedOp::kSelect, *NumberOf(type), *NumberOf(type));
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Shape &condition = ctx.input(0).shape(), &x = ctx.input(1).shape(),
                &y = ctx.input(2).shape();
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeFor({&condition, &x, &y}));
    return Choose(ctx, condition, shape);
  }
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    TROUPE_ASSIGN_OR_RETURN(const Shape branches, BroadcastShapes(*operands[1], *operands[2]));
    return BroadcastShapes(*operands[0], branches);
  }
};

absl::Status ClipByValue(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  for (int i = 1; i < 3; ++i) {
    const Shape& bound = ctx.input(i).shape();
    if (bound.rank() != 0 && !(bound == input.shape())) {
      return InvalidArgument(
          "clip_value_min and clip_value_max must be scalars or of the input's shape ",
          input.shape().ToString(), ", got ", ctx.input(1).shape().ToString(), " and ",
          ctx.input(2).shape().ToString());
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(input.type()));
  const void* x = input.raw_data();
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  return CudaStatus(LaunchClip(type, x, ctx.input(1).raw_data(), ctx.input(1).rank() == 0,
                               ctx.input(2).raw_data(), ctx.input(2).rank() == 0,
                               out->mutable_raw_data(), out->num_elements(), StreamOf(ctx)),
                    "clipping");
}

class AddNKernel final : public OneTypeKernel, public FusiblePart {
 public:
  AddNKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {
    if (IsFloating(construction.input_type(0))) Offer(ToFused(BinaryOp::kAdd), type_, type_);
  }
  absl::Status Compute(KernelContext& ctx) override;
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    for (size_t i = 1; i < operands.size(); ++i) {
      if (*operands[i] == *operands[0]) continue;
      return InvalidArgument("the inputs must have the same shape; input 0 has ",
                             operands[0]->ToString(), ", input ", i, " has ",
                             operands[i]->ToString());
    }
    return *operands[0];
  }
};

absl::Status AddNKernel::Compute(KernelContext& ctx) {
  const int count = ctx.num_inputs();
  const ElementType type = ctx.input(0).type();
  std::vector<const void*> inputs;
  std::vector<const Shape*> shapes;
  for (int i = 0; i < count; ++i) {
    inputs.push_back(ctx.input(i).raw_data());
    shapes.push_back(&ctx.input(i).shape());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeFor(shapes));
  if (count == 1) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  // In place in an input that the first launch has read.
  const int first_launch = std::min(count, Addends::kMost);
  int target = 0;
  while (target + 1 < first_launch && !ctx.CanForward(target)) ++target;
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(target, 0, type, shape));
  void* const out = output->mutable_raw_data();
  for (int next = 0; next < count;) {
    Addends addends;
    if (next > 0) addends.data[addends.count++] = out;
    while (next < count && addends.count < Addends::kMost) {
      addends.data[addends.count++] = inputs[next++];
    }
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchAddN(type_, addends, out, shape.num_elements(), StreamOf(ctx)), "a sum"));
  }
  return absl::OkStatus();
}

/// `kSigns`: the message says which infinities there are.
template <bool kSigns>
class CheckNumerics final : public Kernel {
 public:
  CheckNumerics(KernelConstruction& construction, absl::Status* status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    *status = type.status();
    if (type.ok()) type_ = *type;
    if (status->ok()) *status = construction.GetAttr("message", &message_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, Explain));
    TROUPE_ASSIGN_OR_RETURN(Tensor found, ctx.AllocateTemp(ElementType::kUint32, Shape()));
    // The kernel, and with it the message, lives as long as its plan: past any error of a step.
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchCheckNumerics(type_, x.raw_data(), x.num_elements(),
                                       static_cast<unsigned*>(found.mutable_raw_data()), check,
                                       reinterpret_cast<int64_t>(message_.c_str()), StreamOf(ctx)),
                   "a check of numbers"));
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }

 private:
  static absl::Status Explain(const int64_t* values) {
    const bool minus = (values[0] & kHasMinusInfinity) != 0;
    const bool plus = (values[0] & kHasPlusInfinity) != 0;
    std::vector<const char*> found;
    if (kSigns && minus) found.push_back("-Inf");
    if (kSigns && plus) found.push_back("+Inf");
    if (!kSigns && (minus || plus)) found.push_back("Inf");
    if ((values[0] & kHasNan) != 0) found.push_back("NaN");
    return InvalidArgument(reinterpret_cast<const char*>(values[1]), " : Tensor had ",
                           absl::StrJoin(found, " and "), " values");
  }

  Number type_ = Number::kFloat;
  std::string message_;
};

class CastKernel final : public Kernel, public FusiblePart {
 public:
  CastKernel(KernelConstruction& construction, absl::Status* status)
      : to_type_(construction.output_type(0)),
        same_(construction.input_type(0) == to_type_),
        truncate_(construction.Attr<bool>("Truncate")) {
    const absl::StatusOr<Number> from = NumberOf(construction.input_type(0)),
                                 to = NumberOf(to_type_);
    *status = from.ok() ? to.status() : from.status();
    if (!status->ok()) return;
    from_ = *from;
    to_ = *to;
    if (!truncate_) Offer(FusedOp::kRound, from_, to_);
  }
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    return *operands[0];
  }
  absl::Status Compute(KernelContext& ctx) override {
    if (same_) {
      ctx.PassThrough(0, 0);
      return absl::OkStatus();
    }
    const void* x = ctx.input(0).raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * y,
                            ctx.ForwardOrAllocate(0, 0, to_type_, ctx.input(0).shape()));
    return CudaStatus(LaunchCast(from_, to_, truncate_, x, y->mutable_raw_data(), y->num_elements(),
                                 StreamOf(ctx)),
                      "a conversion");
  }

 private:
  const ElementType to_type_;
  const bool same_, truncate_;
  Number from_ = Number::kFloat, to_ = Number::kFloat;
};

}  // namespace

void RegisterSelect(Extension& extension) {
  using enum ElementType;
  const std::vector<ElementType> clipped = {kHalf,  kBfloat16, kFloat, kDouble, kInt8,
                                            kInt16, kInt64,    kUint8, kUint16};
  const auto add = [&extension](const char* op, std::vector<ElementType> types,
                                KernelFactory factory) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", std::move(types)), factory);
  };
  std::vector<ElementType> numbers = MovedTypes();
  std::erase(numbers, kBool);
  add("AddN", numbers, MakeKernel<AddNKernel>);
  add("CheckNumerics", FloatTypes(), MakeKernel<CheckNumerics<false>>);
  add("CheckNumericsV2", FloatTypes(), MakeKernel<CheckNumerics<true>>);
  add("ClipByValue", clipped, MakeKernel<ClipByValue>);
  add("Select", MovedTypes(), MakeKernel<Select>);
  add("SelectV2", MovedTypes(), MakeKernel<SelectV2>);
  extension.Kernel(
      KernelSpec("Cast").Device("GPU").Types("SrcT", PlainTypes()).Types("DstT", PlainTypes()),
      MakeKernel<CastKernel>);
}

}  // namespace troupe::cuda
