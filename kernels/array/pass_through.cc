// Ops whose outputs are their inputs, and those that have no inputs.
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

absl::Status Identity(KernelContext& ctx) {
  ctx.PassThrough(0, 0);
  return absl::OkStatus();
}

absl::Status IdentityN(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) ctx.PassThrough(i, i);
  return absl::OkStatus();
}

absl::Status EnsureShape(KernelContext& ctx, const PartialShape& expected) {
  const Shape& shape = ctx.input(0).shape();
  if (!expected.IsCompatibleWith(shape)) {
    return InvalidArgument("the shape of the input, ", shape.ToString(),
                           ", is not compatible with the expected shape ", expected.ToString());
  }
  ctx.PassThrough(0, 0);
  return absl::OkStatus();
}

class Const : public Kernel {
 public:
  Const(KernelConstruction& construction, absl::Status* status) {
    *status = construction.GetAttr("value", &value_);
    if (!status->ok()) return;
    if (value_.type() != construction.output_type(0)) {
      *status = InvalidArgument("the constant's value is of type ", ElementTypeName(value_.type()),
                                ", its attribute dtype says ",
                                ElementTypeName(construction.output_type(0)));
    }
  }
  absl::Status Compute(KernelContext& ctx) override {
    ctx.output(0) = value_;
    return absl::OkStatus();
  }

 private:
  Tensor value_;
};

class Placeholder : public Kernel {
 public:
  Placeholder(KernelConstruction& construction, absl::Status*)
      : name_(construction.node_name()),
        type_(construction.output_type(0)),
        shape_(construction.Attr<PartialShape>("shape")) {}
  absl::Status Compute(KernelContext&) override {
    return InvalidArgument("You must feed a value for placeholder tensor '", name_, "' with dtype ",
                           ElementTypeName(type_), " and shape ", shape_.ToString());
  }

 private:
  std::string name_;
  ElementType type_;
  PartialShape shape_;
};

KernelSpec Spec(const char* op) { return Cheap(op).Device("DEFAULT"); }

REGISTER_KERNELS(Spec("Identity"), MakeKernel<Identity>, "Snapshot", "StopGradient",
                 "PreventGradient", "PlaceholderWithDefault");
REGISTER_KERNEL(Spec("IdentityN"), MakeKernel<IdentityN>);
REGISTER_KERNEL(Spec("EnsureShape"), (MakeAttrKernel<EnsureShape, "shape">));
REGISTER_KERNEL(Spec("Const").HostMemory("*"), MakeKernel<Const>);
REGISTER_KERNELS(Spec("Placeholder").HostMemory("*"), MakeKernel<Placeholder>, "PlaceholderV2");

}  // namespace
}  // namespace troupe
