/// What layers with weights have in common. Part of `api/layers/layers.h`.
#ifndef TROUPE_API_LAYERS_WEIGHT_OPTIONS_H_
#define TROUPE_API_LAYERS_WEIGHT_OPTIONS_H_

#include <functional>
#include <string>

#include "api/scope.h"
#include "api/variable_scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::layers {

/// Of a layer's result, element by element; null: none.
using Activation = std::function<Output(const Scope& scope, const Output& x)>;
Output Relu(const Scope& scope, const Output& x);
Output Sigmoid(const Scope& scope, const Output& x);
Output Tanh(const Scope& scope, const Output& x);
Output Elu(const Scope& scope, const Output& x);
Output Softmax(const Scope& scope, const Output& x);
/// x * P(X <= x) of a normal X, by the error function. (Hendrycks and Gimpel 2016.)
Output Gelu(const Scope& scope, const Output& x);

/// Null and unset members: as `GetVariable` and the variable scope say; biases are zeros. A value.
struct WeightOptions {
  std::string name;
  Activation activation = nullptr;
  bool use_bias = true;
  Initializer kernel_initializer = nullptr;
  Initializer bias_initializer = nullptr;
  Regularizer kernel_regularizer = nullptr;
  Regularizer bias_regularizer = nullptr;
  /// Of the result; its loss is among the regularization losses.
  Regularizer activity_regularizer = nullptr;
  Constraint kernel_constraint = nullptr;
  Constraint bias_constraint = nullptr;
  bool trainable = true;
};

}  // namespace troupe::layers
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_WEIGHT_OPTIONS_H_
