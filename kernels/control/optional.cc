#include "kernels/control/optional.h"

#include <utility>
#include <vector>

#include "kernels/common/registration.h"

namespace troupe {
namespace {

absl::StatusOr<const Optional*> OptionalIn(const Tensor& tensor) {
  if (tensor.rank() != 0) {
    return InvalidArgument("an optional must be a scalar tensor of DT_VARIANT, got shape ",
                           tensor.shape().ToString());
  }
  const VariantValue* value = ValueOf(tensor.unchecked_scalar<Variant>());
  if (value == nullptr || value->kind() != VariantValue::Kind::kOptional) {
    return InvalidArgument("the input is no optional, but holds ",
                           value == nullptr ? "nothing of the kind" : value->name());
  }
  return static_cast<const Optional*>(value);
}

absl::Status PutOptional(KernelContext& ctx, RefPtr<Optional> optional) {
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor,
                          MakeVariantTensor(std::move(optional), ctx.step().allocator));
  ctx.set_output(0, std::move(tensor));
  return absl::OkStatus();
}

absl::Status None(KernelContext& ctx) { return PutOptional(ctx, MakeRef<Optional>()); }

absl::Status FromValue(KernelContext& ctx) {
  auto optional = MakeRef<Optional>();
  std::vector<Tensor> components;
  components.reserve(ctx.num_inputs());
  for (int i = 0; i < ctx.num_inputs(); ++i) components.push_back(ctx.TakeInput(i));
  TROUPE_RETURN_IF_ERROR(optional->Set(std::move(components)));
  return PutOptional(ctx, std::move(optional));
}

absl::Status HasValue(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const Optional* optional, OptionalIn(ctx.input(0)));
  return PutHostScalar(ctx, 0, optional->has_value());
}

class GetValue final : public Kernel {
 public:
  GetValue(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("output_types", &types_);
    if (status->ok()) *status = c.GetAttr("output_shapes", &shapes_);
    if (status->ok() && types_.size() != shapes_.size()) {
      *status = InvalidArgument("output_types and output_shapes must be same length, got ",
                                types_.size(), " and ", shapes_.size());
    }
  }
  absl::Status Compute(KernelContext& ctx) override {
    const ElementMemory memory(&ctx, &kernels_);
    TROUPE_ASSIGN_OR_RETURN(const Optional* optional, OptionalIn(ctx.input(0)));
    if (!optional->has_value()) {
      return InvalidArgument("The given optional does not have a value.");
    }
    const std::vector<Tensor>& components = optional->components();
    if (components.size() != types_.size()) {
      return InvalidArgument("The given optional has ", components.size(), " components, expected ",
                             types_.size(), ".");
    }
    for (size_t i = 0; i < components.size(); ++i) {
      if (components[i].type() != types_[i]) {
        return InvalidArgument("The given optional does not match the expected type for component ",
                               i, ". Expected: ", ElementTypeName(types_[i]),
                               ". Actual: ", ElementTypeName(components[i].type()), ".");
      }
      if (!shapes_[i].IsCompatibleWith(components[i].shape())) {
        return InvalidArgument(
            "The given optional does not match the expected shape for component ", i,
            ". Expected: ", shapes_[i].ToString(), ". Actual: ", components[i].shape().ToString(),
            ".");
      }
      TROUPE_ASSIGN_OR_RETURN(Tensor component, memory.Fetch(components[i]));
      ctx.set_output(static_cast<int>(i), std::move(component));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<ElementType> types_;
  std::vector<PartialShape> shapes_;
  ElementKernels kernels_;
};

KernelSpec Spec(const char* op) { return Cheap(op).Device("DEFAULT"); }

REGISTER_KERNEL(Spec("OptionalNone"), MakeKernel<None>);
REGISTER_KERNEL(Spec("OptionalFromValue"), MakeKernel<FromValue>);
REGISTER_KERNEL(Spec("OptionalHasValue").HostMemory("has_value"), MakeKernel<HasValue>);
REGISTER_KERNEL(Spec("OptionalGetValue"), MakeKernel<GetValue>);

}  // namespace
}  // namespace troupe
