/// Optimizers: from a loss to a training op. The kinds that there are: api/training/optimizers.h.
#ifndef TROUPE_API_TRAINING_OPTIMIZER_H_
#define TROUPE_API_TRAINING_OPTIMIZER_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/scope.h"
#include "api/training/variables.h"
#include "devices/export.h"
#include "graph/gradients/add_gradients.h"
#include "graph/gradients/gradient.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A gradient (invalid if the loss does not depend on the variable; dense, or the rows that were
/// used) and its variable.
using GradientAndVariable = std::pair<Gradient, ModelVariable>;

/// When updates may start. In any case a variable with a dense gradient is updated after
/// `ModelVariable::value()` has been read for the step.
enum class GateGradients {
  kNone,  ///< Each as soon as its own gradient is there: the most parallelism, the least memory.
  kOp,    ///< Like kNone, and the gradients of one op's inputs are used when all of them are there.
  kGraph,  ///< All when all gradients are there. For losses that are linear in rows looked up more
           ///< than once, whose gradients may be there before the last look-up.
};

/// Base of the optimizers. Each kind says which slots it keeps per variable and how one variable is
/// updated. Slots are variables of the same shape, named as TensorFlow 1.x names them: the first of
/// a variable "w" by an optimizer "Adam" is "w/Adam", the next "w/Adam_1". Errors go to the scope.
/// Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Gradients of `loss` by `variables`; empty: all trainable variables of the graph. A variable of
  /// which only rows were looked up (`EmbeddingLookup`) has a sparse gradient.
  std::vector<GradientAndVariable> ComputeGradients(const Scope& scope, const Output& loss,
                                                    std::vector<ModelVariable> variables = {},
                                                    GateGradients gate = GateGradients::kNone,
                                                    GradientOptions options = {}) const;
  /// A node that updates the variables and then, if it is given, adds one to `global_step`.
  /// InvalidArgument if no variable has a gradient. Rows that occur more than once in a sparse
  /// gradient are added up before the update.
  virtual Node* ApplyGradients(const Scope& scope,
                               const std::vector<GradientAndVariable>& gradients,
                               const ModelVariable& global_step = {});
  /// Makes the slots and other variables that `ApplyGradients` needs, unless they are there; it
  /// does so itself. Called before, it decides under which scope's names they are.
  void CreateSlots(const Scope& scope, const std::vector<GradientAndVariable>& gradients);
  /// `ComputeGradients` and `ApplyGradients`.
  Node* Minimize(const Scope& scope, const Output& loss, const ModelVariable& global_step = {},
                 std::vector<ModelVariable> variables = {});

  const std::string& name() const { return name_; }
  /// The slot called `slot` of a variable; invalid if there is none.
  virtual ModelVariable GetSlot(const ModelVariable& variable, const std::string& slot) const;
  /// What `GetSlot` knows, in the order in which the slots are made.
  virtual std::vector<std::string> SlotNames() const;

 protected:
  explicit Optimizer(std::string name) : name_(std::move(name)) {}

  /// A slot and the value that fills it at the start.
  struct Slot {
    std::string name;
    double initial_value = 0.0;
  };

  /// One variable's update while it is written down.
  class Update {
   public:
    Update(const Optimizer& optimizer, const Scope& scope, const ModelVariable& variable,
           const Gradient& gradient)
        : optimizer_(optimizer), scope_(scope), variable_(variable), gradient_(gradient) {}

    const Scope& scope() const { return scope_; }
    const ModelVariable& variable() const { return variable_; }
    bool sparse() const { return gradient_.sparse(); }
    /// The gradient, or the rows of a sparse one.
    Output gradient() const { return gradient_.values; }
    /// Which rows; no row twice, unless the optimizer `TakesRepeatedRows`.
    Output indices() const { return gradient_.indices; }
    ModelVariable slot(const std::string& name) const {
      return optimizer_.GetSlot(variable_, name);
    }
    /// A hyper-parameter in the variable's type.
    Output parameter(const Input& value) const {
      return Parameter(scope_, value, variable_.type());
    }
    /// Adds "ResourceApply<rule>" or, with the indices after the gradient, its sparse form
    /// "ResourceSparseApply<rule>": on the variable, the slots, then `arguments`.
    Node* Apply(const std::string& rule, const std::vector<std::string>& slots,
                const std::vector<Output>& arguments,
                const std::vector<std::pair<std::string, bool>>& attributes = {}) const;

   private:
    const Optimizer& optimizer_;
    const Scope& scope_;
    const ModelVariable& variable_;
    const Gradient& gradient_;
  };

  virtual std::vector<Slot> Slots() const { return {}; }
  /// State besides slots, made (once) before any update is added. `scope` is the caller's.
  virtual void Prepare(const Scope& scope) { (void)scope; }
  /// A node that updates one variable.
  virtual Node* Apply(const Update& update) = 0;
  /// What is to run after all updates; the result orders it before the training op's end.
  virtual std::vector<Node*> Finish(const Scope& scope, const std::vector<Node*>& updates) {
    (void)scope;
    return updates;
  }
  /// True: a row that occurs twice may be updated twice.
  virtual bool TakesRepeatedRows() const { return false; }

  /// A slot of the variable's shape; made once.
  ModelVariable MakeSlot(const Scope& scope, const ModelVariable& variable, const Slot& slot);
  /// A variable that holds `value` (a hyper-parameter) at the start, named under the scope's
  /// prefix. It is outside of the branch or loop that the scope may be in, and waits for none of
  /// its control inputs: what initializes it is not part of a step.
  static ModelVariable MakeState(const Scope& scope, const Input& value, std::string_view name);
  /// A hyper-parameter in another type.
  static Output Parameter(const Scope& scope, const Input& value, ElementType type);

 private:
  std::string name_;
  std::map<std::pair<std::string, std::string>, ModelVariable> slots_;
};

/// The same gradient without repeated rows: rows of the same index are added up. Dense gradients
/// as they are.
Gradient SumRepeatedRows(const Scope& scope, const Gradient& gradient);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_OPTIMIZER_H_
