/// Common parts of the kernels that apply gradients to variables.
#ifndef TROUPE_KERNELS_TRAINING_APPLY_H_
#define TROUPE_KERNELS_TRAINING_APPLY_H_

#include <cmath>
#include <complex>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/kernel_registry.h"
#include "kernels/state/variable_kernel.h"
#include "kernels/type_switch.h"

namespace troupe {

/// Checks the inputs of a dense update: variables that have a value, of the type and shape of input
/// `grad`; scalars. Its sub-classes compute.
class ApplyKernel : public VariableKernel {
 protected:
  /// `variables`, then `scalars` and `grad` name the inputs for messages.
  ApplyKernel(KernelConstruction& construction, std::vector<const char*> names, int num_variables,
              int grad)
      : VariableKernel(construction, num_variables),
        names_(std::move(names)),
        num_variables_(num_variables),
        grad_(grad),
        type_(construction.input_type(grad)) {}

  absl::Status Apply(KernelContext& ctx, Leases& leases) final;
  /// `variables` may be written to, element by element (one given twice is the same tensor).
  virtual absl::Status Update(KernelContext& ctx, absl::Span<Tensor* const> variables) = 0;

  const Tensor& grad(KernelContext& ctx) const { return ctx.input(grad_); }
  ElementType type() const { return type_; }

 private:
  std::vector<const char*> names_;
  int num_variables_;
  int grad_;
  ElementType type_;
};

/// Calls f.operator()<T>() for the element types of updates.
template <typename F>
absl::Status SwitchUpdateType(ElementType type, F&& f) {
  return SwitchType<float, double, half, bfloat16, complex64, complex128>(type, f);
}

/// Arithmetic of updates rounds to the element type after every operation, as it does in
/// TensorFlow.
template <typename T>
T Multiply(T a, T b) {
  return T(a * b);
}
template <typename T>
T Plus(T a, T b) {
  return T(a + b);
}
template <typename T>
T Minus(T a, T b) {
  return T(a - b);
}
template <typename T>
T Divide(T a, T b) {
  return T(a / b);
}
template <typename T>
T Root(T a) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return T(std::sqrt(static_cast<float>(a)));
  } else {
    return std::sqrt(a);
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_TRAINING_APPLY_H_
