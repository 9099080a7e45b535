// Asking variables: ReadVariableOp, VariableShape, VarIsInitializedOp, IsVariableInitialized.
#include "absl/strings/str_cat.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {
namespace {

class ReadVariable : public VariableKernel {
 public:
  ReadVariable(KernelConstruction& construction, absl::Status*)
      : VariableKernel(construction, 1), type_(construction.output_type(0)) {}

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    const Variable* variable = leases[0].variable();
    if (variable->type() != type_) {
      return InvalidArgument("the variable '", variable->name(), "' is of type ",
                             ElementTypeName(variable->type()), ", it is read as ",
                             ElementTypeName(type_));
    }
    const Tensor& value = leases[0].value();
    if (!value.valid()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the variable '", variable->name(),
                       "' is read before it has a value: run its initializer first"));
    }
    ctx.output(0) = value;
    return absl::OkStatus();
  }
  absl::Status OnMissing(KernelContext&, const absl::Status& not_found) override {
    return absl::FailedPreconditionError(
        absl::StrCat("error while reading a resource variable: ", not_found.message()));
  }

 private:
  ElementType type_;
};

class VariableShape : public VariableKernel {
 public:
  VariableShape(KernelConstruction& construction, absl::Status*)
      : VariableKernel(construction, 1), type_(construction.output_type(0)) {}

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    const Tensor& value = leases[0].value();
    if (!value.valid()) {
      return absl::NotFoundError(absl::StrCat("the variable '", leases[0].variable()->name(),
                                              "' has no value: run its initializer first"));
    }
    return PutIntegers(ctx, 0, type_, value.shape().dims());
  }

 private:
  ElementType type_;
};

class IsInitialized : public VariableKernel {
 public:
  IsInitialized(KernelConstruction& construction, absl::Status*)
      : VariableKernel(construction, 1) {}

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    return ctx.SetScalar(0, leases[0].value().valid());
  }
  absl::Status OnMissing(KernelContext& ctx, const absl::Status&) override {
    return ctx.SetScalar(0, false);
  }
};

KernelSpec OnHost(const char* op) { return Cheap(op).Device("DEFAULT").HostMemory("*"); }

REGISTER_KERNEL(Cheap("ReadVariableOp").Device("DEFAULT"), MakeKernel<ReadVariable>);
REGISTER_KERNEL(OnHost("VariableShape").Types("out_type", IndexTypes()), MakeKernel<VariableShape>);
REGISTER_KERNELS(OnHost("VarIsInitializedOp"), MakeKernel<IsInitialized>, "IsVariableInitialized");

}  // namespace
}  // namespace troupe
