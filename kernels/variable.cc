#include "kernels/variable.h"

#include "absl/strings/str_cat.h"

namespace troupe {

absl::StatusOr<Tensor*> Variable::Lease::mutable_value() {
  Tensor& value = variable_->value_;
  if (!value.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the variable '", variable_->name(),
                     "' is used before it has a value: run its initializer first"));
  }
  if (!value.unique()) {
    absl::StatusOr<Tensor> copy = value.Clone();
    if (!copy.ok()) {
      return absl::Status(copy.status().code(),
                          absl::StrCat("copying the variable '", variable_->name(),
                                       "' for an update: ", copy.status().message()));
    }
    value = *std::move(copy);
  }
  return &value;
}

std::string Variable::DebugString() const {
  return absl::StrCat("Variable[", ElementTypeName(type_), ",", shape_.ToString(), "]");
}

}  // namespace troupe
