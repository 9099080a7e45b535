// The kernels of the accumulator ops, with references to strings or resources as handles.
#include <algorithm>
#include <utility>

#include "kernels/common/registration.h"
#include "kernels/queues/accumulator.h"

namespace troupe {
namespace {

template <bool sparse>
class MakeAccumulator final : public ResourceMaker {
 public:
  MakeAccumulator(KernelConstruction& c, absl::Status* status)
      : ResourceMaker(c, sparse ? "SparseConditionalAccumulator" : "ConditionalAccumulator",
                      status) {
    if (status->ok()) *status = c.GetAttr("dtype", &options_.type);
    if (status->ok()) *status = c.GetAttr("shape", &options_.shape);
    options_.mean = c.Attr<std::string>("reduction_type") == "MEAN";
    options_.sparse = sparse;
  }

 private:
  absl::StatusOr<RefPtr<Resource>> Make(KernelContext& ctx, const std::string& name) override {
    return ctx.resources()->MakeAccumulator(name, options_);
  }
  absl::Status Check(const WaitingResource& resource) override {
    const auto* accumulator = dynamic_cast<const Accumulator*>(&resource);
    if (accumulator != nullptr && accumulator->options() == options_) return absl::OkStatus();
    return InvalidArgument("the shared resource is a ", resource.DebugString(),
                           ", which has another kind, type, shape or reduction than is asked for: ",
                           ElementTypeName(options_.type), " ", options_.shape.ToString());
  }

  AccumulatorOptions options_;
};

/// The scalar that is input `i`.
template <typename T>
absl::StatusOr<int64_t> ScalarInput(const KernelContext& ctx, int i, const char* what) {
  if (ctx.input(i).rank() != 0) {
    return InvalidArgument(what, " must be a scalar, got shape ", ctx.input(i).shape().ToString());
  }
  return ctx.input(i).unchecked_scalar<T>();
}

class ApplyGradient final : public WaitingKernel<Accumulator, Accumulator::ApplyCall> {
 public:
  ApplyGradient(KernelConstruction& c, absl::Status*)
      : has_shape_(c.attrs().GetOr<bool>("has_known_shape", false)) {}

 private:
  absl::Status Ask(const Accumulator&, KernelContext& ctx, Accumulator::ApplyCall* call) override {
    TROUPE_ASSIGN_OR_RETURN(call->local_step, ScalarInput<int64_t>(ctx, 1, "local_step"));
    call->has_shape = has_shape_;
    for (int i = 2; i < ctx.num_inputs(); ++i) call->gradient.push_back(&ctx.input(i));
    return absl::OkStatus();
  }

  bool has_shape_;
};

absl::Status SetGlobalStep(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Accumulator> accumulator, FindWaiting<Accumulator>(ctx));
  TROUPE_ASSIGN_OR_RETURN(const int64_t step, ScalarInput<int64_t>(ctx, 1, "new_global_step"));
  accumulator->SetGlobalStep(step);
  return absl::OkStatus();
}

absl::Status NumAccumulated(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Accumulator> accumulator, FindWaiting<Accumulator>(ctx));
  return ctx.SetScalar(
      0, static_cast<int32_t>(std::min<int64_t>(accumulator->NumAccumulated(), INT32_MAX)));
}

class TakeGradient final : public WaitingKernel<Accumulator, Accumulator::TakeCall> {
 public:
  TakeGradient(KernelConstruction& c, absl::Status*)
      : sparse_(c.num_outputs() == 3), type_(c.output_type(sparse_ ? 1 : 0)) {}

 private:
  absl::Status Ask(const Accumulator& accumulator, KernelContext& ctx,
                   Accumulator::TakeCall* call) override {
    TROUPE_ASSIGN_OR_RETURN(call->required, ScalarInput<int32_t>(ctx, 1, "num_required"));
    if (accumulator.options().type != type_ || accumulator.options().sparse != sparse_) {
      return InvalidArgument("the handle refers to a ", accumulator.DebugString(),
                             ", but what is taken is ", sparse_ ? "sparse" : "dense",
                             " and of type ", ElementTypeName(type_));
    }
    return absl::OkStatus();
  }

  bool sparse_;
  ElementType type_;
};

KernelSpec Makes(const char* op) {
  return KernelSpec(op).Types("dtype",
                              {ElementType::kHalf, ElementType::kFloat, ElementType::kDouble});
}

REGISTER_KERNELS(Makes("ConditionalAccumulator"), MakeKernel<MakeAccumulator<false>>,
                 "ResourceConditionalAccumulator");
REGISTER_KERNEL(Makes("SparseConditionalAccumulator"), MakeKernel<MakeAccumulator<true>>);
REGISTER_KERNELS(KernelSpec("AccumulatorApplyGradient"), MakeKernel<ApplyGradient>,
                 "ResourceAccumulatorApplyGradient", "SparseAccumulatorApplyGradient");
REGISTER_KERNELS(KernelSpec("AccumulatorNumAccumulated"), MakeKernel<NumAccumulated>,
                 "ResourceAccumulatorNumAccumulated");
REGISTER_KERNELS(KernelSpec("AccumulatorSetGlobalStep"), MakeKernel<SetGlobalStep>,
                 "ResourceAccumulatorSetGlobalStep");
REGISTER_KERNELS(KernelSpec("AccumulatorTakeGradient"), MakeKernel<TakeGradient>,
                 "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient");

}  // namespace
}  // namespace troupe
