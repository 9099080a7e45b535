// Ops whose outputs are their inputs, and those that have no inputs.
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_registry.h"

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

class EnsureShape : public Kernel {
 public:
  EnsureShape(KernelConstruction& construction, absl::Status* status) {
    *status = construction.GetAttr("shape", &shape_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    if (!shape_.IsCompatibleWith(shape)) {
      return InvalidArgument("the shape of the input, ", shape.ToString(),
                             ", is not compatible with the expected shape ", shape_.ToString());
    }
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }

 private:
  PartialShape shape_;
};

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

KernelSpec Cheap(const char* op) { return KernelSpec(op).Cost(KernelCost::kCheap); }

REGISTER_KERNEL(Cheap("Identity"), MakeKernel<Identity>);
REGISTER_KERNEL(Cheap("Snapshot"), MakeKernel<Identity>);
REGISTER_KERNEL(Cheap("StopGradient"), MakeKernel<Identity>);
REGISTER_KERNEL(Cheap("PreventGradient"), MakeKernel<Identity>);
REGISTER_KERNEL(Cheap("PlaceholderWithDefault"), MakeKernel<Identity>);
REGISTER_KERNEL(Cheap("IdentityN"), MakeKernel<IdentityN>);
REGISTER_KERNEL(Cheap("EnsureShape"), MakeKernel<EnsureShape>);
REGISTER_KERNEL(Cheap("Const"), MakeKernel<Const>);
REGISTER_KERNEL(Cheap("Placeholder"), MakeKernel<Placeholder>);
REGISTER_KERNEL(Cheap("PlaceholderV2"), MakeKernel<Placeholder>);

}  // namespace
}  // namespace troupe
