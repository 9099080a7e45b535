#include "kernels/training/apply.h"

#include "absl/strings/str_cat.h"

namespace troupe {

absl::Status ApplyKernel::Apply(KernelContext& ctx, Leases& leases) {
  for (int i = 0; i < num_variables_; ++i) {
    const Tensor& value = leases[i].value();
    if (!value.valid()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the variable '", leases[i].variable()->name(), "' (", names_[i],
                       ") is updated before it has a value: run its initializer first"));
    }
    if (value.type() != type_) {
      return InvalidArgument("the variable '", leases[i].variable()->name(), "' is of type ",
                             ElementTypeName(value.type()), ", the gradient of type ",
                             ElementTypeName(type_));
    }
    if (!(value.shape() == grad(ctx).shape())) {
      return InvalidArgument(names_[i], " (the variable '", leases[i].variable()->name(), "') and ",
                             names_[grad_], " must have the same shape, got ",
                             value.shape().ToString(), " and ", grad(ctx).shape().ToString());
    }
  }
  for (int i = num_variables_; i < ctx.num_inputs(); ++i) {
    if (i != grad_ && ctx.input(i).rank() != 0) {
      return InvalidArgument(names_[i], " must be a scalar, got shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  absl::InlinedVector<Tensor*, 4> variables;
  for (int i = 0; i < num_variables_; ++i) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * value, leases[i].mutable_value());
    variables.push_back(value);
  }
  return Update(ctx, variables);
}

}  // namespace troupe
