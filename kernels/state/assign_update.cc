// AssignAdd, AssignSub and their resource forms.
#include "kernels/state/element_ops.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {
namespace {

template <bool kSubtract>
class AssignUpdate : public VariableKernel {
 public:
  AssignUpdate(KernelConstruction& construction, absl::Status*)
      : VariableKernel(construction, 1), type_(construction.input_type(1)) {}

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    Variable::Lease& lease = leases[0];
    const Tensor& update = ctx.input(1);
    const Tensor& old = lease.value();
    if (!old.valid()) return lease.mutable_value().status();
    if (old.type() != type_) {
      return InvalidArgument("the variable '", lease.variable()->name(), "' is of type ",
                             ElementTypeName(old.type()), ", the update of type ",
                             ElementTypeName(type_));
    }
    if (!(old.shape() == update.shape())) {
      return InvalidArgument("the variable '", lease.variable()->name(), "' has shape ",
                             old.shape().ToString(), ", the update ", update.shape().ToString(),
                             ": they must be the same");
    }
    // In place if nobody reads the old value, else in one pass into a new one.
    Tensor fresh;
    void* to;
    if (old.unique()) {
      TROUPE_ASSIGN_OR_RETURN(Tensor * value, lease.mutable_value());
      to = value->mutable_raw_data();
    } else {
      TROUPE_ASSIGN_OR_RETURN(fresh, ctx.AllocateTemp(type_, old.shape()));
      to = fresh.mutable_raw_data();
    }
    TROUPE_RETURN_IF_ERROR(AddElements(ctx, kSubtract, old, update, to));
    if (fresh.valid()) lease.set_value(std::move(fresh));
    return absl::OkStatus();
  }

 private:
  ElementType type_;
};

}  // namespace

void ForEachAssignUpdate(const UseKernel& use) {
  const auto each = [&](const char* op, const char* attr, KernelFactory factory) {
    use(KernelSpec(op).Types(attr, NumberTypes()), factory);
  };
  each("AssignAdd", "T", MakeKernel<AssignUpdate<false>>);
  each("AssignSub", "T", MakeKernel<AssignUpdate<true>>);
  each("AssignAddVariableOp", "dtype", MakeKernel<AssignUpdate<false>>);
  each("AssignSubVariableOp", "dtype", MakeKernel<AssignUpdate<true>>);
}

}  // namespace troupe
