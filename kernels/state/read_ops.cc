// Asking variables: ReadVariableOp, VariableShape, VarIsInitializedOp, IsVariableInitialized.
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_registry.h"
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
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, Shape({value.rank()})));
    for (int i = 0; i < value.rank(); ++i) {
      if (type_ == ElementType::kInt64) {
        out->mutable_data<int64_t>()[i] = value.dim(i);
      } else if (value.dim(i) > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("dimension ", i, " of shape ", value.shape().ToString(),
                               " does not fit int32: ask for out_type int64");
      } else {
        out->mutable_data<int32_t>()[i] = static_cast<int32_t>(value.dim(i));
      }
    }
    return absl::OkStatus();
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
    return Answer(ctx, leases[0].value().valid());
  }
  absl::Status OnMissing(KernelContext& ctx, const absl::Status&) override {
    return Answer(ctx, false);
  }

 private:
  static absl::Status Answer(KernelContext& ctx, bool answer) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kBool, Shape()));
    *out->mutable_data<bool>() = answer;
    return absl::OkStatus();
  }
};

KernelSpec Cheap(const char* op) { return KernelSpec(op).Cost(KernelCost::kCheap); }

REGISTER_KERNEL(Cheap("ReadVariableOp").HostMemory("resource"), MakeKernel<ReadVariable>);
REGISTER_KERNEL(Cheap("VariableShape")
                    .Types("out_type", {ElementType::kInt32, ElementType::kInt64})
                    .HostMemory("input")
                    .HostMemory("output"),
                MakeKernel<VariableShape>);
REGISTER_KERNEL(Cheap("VarIsInitializedOp").HostMemory("resource").HostMemory("is_initialized"),
                MakeKernel<IsInitialized>);
REGISTER_KERNEL(Cheap("IsVariableInitialized").HostMemory("is_initialized"),
                MakeKernel<IsInitialized>);

}  // namespace
}  // namespace troupe
