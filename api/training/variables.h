/// Variables of a model.
#ifndef TROUPE_API_TRAINING_VARIABLES_H_
#define TROUPE_API_TRAINING_VARIABLES_H_

#include <string>
#include <string_view>
#include <vector>

#include "api/scope.h"
#include "api/training/initializers.h"
#include "api/training/save_slice_info.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Keys of graph collections.
namespace collections {
inline constexpr char kVariables[] = "variables";
inline constexpr char kTrainableVariables[] = "trainable_variables";
inline constexpr char kLocalVariables[] = "local_variables";
inline constexpr char kLocalVariableInitializers[] = "local_variable_initializers";
inline constexpr char kVariableInitializers[] = "variable_initializers";
inline constexpr char kGlobalStep[] = "global_step";
inline constexpr char kLosses[] = "losses";
inline constexpr char kTrainOp[] = "train_op";
}  // namespace collections

/// A tensor that outlives steps, held by an actor. Refers to nodes of a graph; copies refer to the
/// same variable. The value exists per session, once `initializer` has run there. Operations on it
/// are handled one at a time.
class ModelVariable {
 public:
  ModelVariable() = default;
  /// A variable called `name` (under the scope's prefix), of the type and shape of `initial_value`,
  /// which must be known. Added to the collections "variables" and, if trainable,
  /// "trainable_variables".
  ModelVariable(const Scope& scope, const Output& initial_value, std::string_view name,
                bool trainable = true);
  /// The initial value made by an initializer.
  ModelVariable(const Scope& scope, const Shape& shape, const Initializer& initializer,
                std::string_view name, bool trainable = true,
                ElementType type = ElementType::kFloat);

  /// A part of a partitioned variable, as checkpoints have it.
  static ModelVariable Slice(const Scope& scope, const Output& initial_value, std::string_view name,
                             const SaveSliceInfo& slice, bool trainable = true);

  /// A variable of one worker's own, which nobody else sees and no checkpoint has: in the
  /// collection "local_variables" only. Placed where the scope places ops that are no variables.
  static ModelVariable Local(const Scope& scope, const Output& initial_value,
                             std::string_view name);

  /// The variable of which `handle_name` is the handle's node, made here or imported, one of
  /// TensorFlow's reference variables (VariableV2) too; an invalid one if there is none, or if it
  /// has no initializer or nothing reads it.
  static ModelVariable FromHandle(const Graph& graph, const std::string& handle_name);
  /// The trainable variables of a graph, in the order in which they were made.
  static std::vector<ModelVariable> Trainable(const Graph& graph);

  bool valid() const { return handle_.valid(); }
  /// "layer/weights": the name under which steps and sessions know it.
  const std::string& name() const { return name_; }
  ElementType type() const { return type_; }
  const PartialShape& shape() const { return shape_; }

  /// The resource handle; of a reference variable, its reference.
  Output handle() const { return handle_; }
  /// False for a reference variable, which can be read and assigned to here, but which the
  /// optimizers' ops, gathers and scatters of resources do not take.
  bool is_resource() const;
  /// The device that its nodes ask for; "": none, also of an invalid variable.
  std::string device() const { return valid() ? handle_.node->requested_device() : ""; }
  /// The value as the step finds it when this is read: one read for all users, and what to
  /// differentiate by.
  Output value() const { return value_; }
  /// So that op functions take a variable as its value: `MatMul(s, x, weights)`.
  operator Input() const { return value_; }  // NOLINT: a conversion is the point
  /// A read of its own: after `scope`'s control inputs.
  Output Read(const Scope& scope) const;
  /// The node that sets the initial value.
  Node* initializer() const { return initializer_; }

  Node* Assign(const Scope& scope, const Input& value) const;
  Node* AssignAdd(const Scope& scope, const Input& value) const;
  Node* AssignSub(const Scope& scope, const Input& value) const;

 private:
  enum class Kind { kTrainable, kGlobal, kLocal };
  void Build(const Scope& scope, const Output& initial_value, Kind kind,
             const SaveSliceInfo* slice = nullptr);

  std::string name_;
  Output handle_, value_;
  Node* initializer_ = nullptr;
  ElementType type_ = ElementType::kInvalid;
  PartialShape shape_;
};

/// A variable of `shape` in `parts` variables, each with a block of rows (of slices along `axis`,
/// if another one is given): the first `size % parts` have one more. They are called `name`/part_0
/// and so on, and a checkpoint has them as one tensor `name`. Random initializers draw the numbers
/// of each part, scaled by the shape of the whole; of others' value the parts are slices: see
/// `Initializer`. InvalidArgument, in the scope, if there are more parts than rows.
std::vector<ModelVariable> PartitionedVariable(const Scope& scope, const Shape& shape, int parts,
                                               const Initializer& initializer,
                                               std::string_view name, int axis = 0,
                                               bool trainable = true,
                                               ElementType type = ElementType::kFloat);

/// A node that runs the initializers of all variables made so far in the scope's graph.
Node* GlobalVariablesInitializer(const Scope& scope);

/// The same for local variables.
Node* LocalVariablesInitializer(const Scope& scope);

/// A vector of the names of those variables that have no value; of the global ones, or of others'
/// collections, made so far in the scope's graph.
Output ReportUninitializedVariables(const Scope& scope,
                                    absl::Span<const char* const> of = {collections::kVariables});

/// The graph's int64 variable "global_step", which counts training steps; made by the first call.
ModelVariable GlobalStep(const Scope& scope);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_VARIABLES_H_
