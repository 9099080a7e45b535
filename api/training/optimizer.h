/// Optimizers: from a loss to a training op.
#ifndef TROUPE_API_TRAINING_OPTIMIZER_H_
#define TROUPE_API_TRAINING_OPTIMIZER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/scope.h"
#include "api/training/variables.h"

namespace troupe {

/// A gradient (invalid if the loss does not depend on the variable) and its variable.
using GradientAndVariable = std::pair<Output, ModelVariable>;

/// Base of the optimizers. Each kind says how one variable is updated; slots (momenta and so on)
/// are variables named after the variable and the optimizer. Errors go to the scope. Not
/// thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Gradients of `loss` (a scalar) by `variables`; empty: all trainable variables of the graph.
  std::vector<GradientAndVariable> ComputeGradients(
      const Scope& scope, const Output& loss, std::vector<ModelVariable> variables = {}) const;
  /// A node that updates the variables and then, if it is given, adds one to `global_step`.
  /// InvalidArgument if no variable has a gradient.
  Node* ApplyGradients(const Scope& scope, const std::vector<GradientAndVariable>& gradients,
                       const ModelVariable& global_step = {});
  /// Both in one.
  Node* Minimize(const Scope& scope, const Output& loss, const ModelVariable& global_step = {},
                 std::vector<ModelVariable> variables = {});

  const std::string& name() const { return name_; }
  /// The slot called `slot` of a variable; invalid if there is none.
  ModelVariable GetSlot(const ModelVariable& variable, const std::string& slot) const;

 protected:
  explicit Optimizer(std::string name) : name_(std::move(name)) {}

  /// Makes hyper-parameters into tensors and slots, before any update is added.
  virtual void Prepare(const Scope& scope, const std::vector<ModelVariable>& variables) = 0;
  /// A node that updates one variable.
  virtual Node* Apply(const Scope& scope, const ModelVariable& variable,
                      const Output& gradient) = 0;
  /// What is to run after all updates; the result orders it before the training op's end.
  virtual std::vector<Node*> Finish(const Scope& scope, const std::vector<Node*>& updates) {
    (void)scope;
    return updates;
  }

  /// A slot of the variable's shape, filled with `value`; made once.
  ModelVariable MakeSlot(const ModelVariable& variable, const std::string& slot,
                         double value = 0.0);
  /// A hyper-parameter in the variable's type.
  static Output Parameter(const Scope& scope, const Input& value, ElementType type);

 private:
  std::string name_;
  std::map<std::pair<std::string, std::string>, ModelVariable> slots_;
};

/// var -= learning_rate * gradient.
class GradientDescentOptimizer : public Optimizer {
 public:
  explicit GradientDescentOptimizer(Input learning_rate, std::string name = "GradientDescent")
      : Optimizer(std::move(name)), learning_rate_(std::move(learning_rate)) {}

 protected:
  void Prepare(const Scope&, const std::vector<ModelVariable>&) override {}
  Node* Apply(const Scope& scope, const ModelVariable& variable, const Output& gradient) override;

 private:
  Input learning_rate_;
};

/// accumulator = momentum * accumulator + gradient; var -= learning_rate * accumulator. With
/// Nesterov: var -= learning_rate * (gradient + momentum * accumulator). (Sutskever et al. 2013.)
class MomentumOptimizer : public Optimizer {
 public:
  MomentumOptimizer(Input learning_rate, Input momentum, bool use_nesterov = false,
                    std::string name = "Momentum")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        momentum_(std::move(momentum)),
        use_nesterov_(use_nesterov) {}

 protected:
  void Prepare(const Scope& scope, const std::vector<ModelVariable>& variables) override;
  Node* Apply(const Scope& scope, const ModelVariable& variable, const Output& gradient) override;

 private:
  Input learning_rate_, momentum_;
  bool use_nesterov_;
};

/// Adam (Kingma and Ba 2015, the form just before section 2.1, as TensorFlow's).
class AdamOptimizer : public Optimizer {
 public:
  explicit AdamOptimizer(Input learning_rate = 0.001f, Input beta1 = 0.9f, Input beta2 = 0.999f,
                         Input epsilon = 1e-8f, std::string name = "Adam")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        beta1_(std::move(beta1)),
        beta2_(std::move(beta2)),
        epsilon_(std::move(epsilon)) {}

 protected:
  void Prepare(const Scope& scope, const std::vector<ModelVariable>& variables) override;
  Node* Apply(const Scope& scope, const ModelVariable& variable, const Output& gradient) override;
  std::vector<Node*> Finish(const Scope& scope, const std::vector<Node*>& updates) override;

 private:
  Input learning_rate_, beta1_, beta2_, epsilon_;
  ModelVariable beta1_power_, beta2_power_;
};

}  // namespace troupe

#endif  // TROUPE_API_TRAINING_OPTIMIZER_H_
