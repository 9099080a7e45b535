/// What a saver saves: variables, parts of partitioned variables, and whatever else has nodes that
/// read and set it.
#ifndef TROUPE_API_TRAINING_SAVEABLE_H_
#define TROUPE_API_TRAINING_SAVEABLE_H_

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "api/scope.h"
#include "api/training/variables.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A tensor of a checkpoint that is saved and restored with others. A value.
struct SavedTensor {
  std::string name;             ///< In the checkpoint.
  std::string shape_and_slice;  ///< "4 5 0,2:-" for a part of a [4,5] tensor; empty: the whole.
  ElementType type = ElementType::kInvalid;
  PartialShape shape;  ///< Of what is saved here, as far as it is known.
};

/// What a saver saves under one name: mostly a variable. A value that refers to nodes of a graph.
///
/// What is wrong with it is its `status`, which `Saver` passes on: InvalidArgument for a node that
/// is no variable.
class Saveable {
 public:
  /// Nodes that read the tensors, as many as there are, and a node that sets them all. They are
  /// added through the scope that is given: on the saveable's device.
  using Read = std::function<std::vector<Output>(const Scope& scope)>;
  using Restore = std::function<Node*(const Scope& scope, absl::Span<const Output> tensors)>;

  /// A variable under its own name; one with a SaveSliceInfo as a part of the whole.
  Saveable(const ModelVariable& variable);  // NOLINT: a conversion
  /// The same under another name.
  Saveable(std::string name, const ModelVariable& variable);
  /// A variable of an imported graph, by its node: VarHandleOp, VariableV2, Variable.
  Saveable(Node* variable);  // NOLINT: a conversion
  /// The same under another name, and as a part of a whole if `slice` says so.
  Saveable(std::string name, Node* variable, std::optional<SaveSliceInfo> slice = std::nullopt);
  /// Anything: `node` is what holds it, and says on which device.
  Saveable(std::string name, Node* node, std::vector<SavedTensor> tensors, Read read,
           Restore restore);

  const absl::Status& status() const { return status_; }
  const std::string& name() const { return name_; }
  /// The variable's node; each is saved once.
  Node* node() const { return node_; }
  /// The device that it asks for, in canonical form; "": none.
  const std::string& device() const { return device_; }
  const std::vector<SavedTensor>& tensors() const { return tensors_; }

  /// Adds nodes, see above.
  std::vector<Output> AddRead(const Scope& scope) const { return read_(scope); }
  Node* AddRestore(const Scope& scope, absl::Span<const Output> tensors) const {
    return restore_(scope, tensors);
  }

 private:
  void OfVariable(Node* variable, std::optional<SaveSliceInfo> slice);
  void Place();

  absl::Status status_;
  std::string name_;
  Node* node_ = nullptr;
  std::string device_;
  std::vector<SavedTensor> tensors_;
  Read read_;
  Restore restore_;
};

/// A list of what is saved: `{w, b}`, `{{"w", weights}, {"b", biases}}`, a vector or a map of
/// variables. Default constructed it stands for all variables of the graph. A value.
class SaveableList {
 public:
  SaveableList() = default;
  SaveableList(std::initializer_list<Saveable> list) : list_(std::vector<Saveable>(list)) {}
  SaveableList(std::vector<Saveable> list) : list_(std::move(list)) {}  // NOLINT
  SaveableList(const std::vector<ModelVariable>& variables);            // NOLINT
  SaveableList(const std::map<std::string, ModelVariable>& names);      // NOLINT

  /// nullopt: all of the graph.
  const std::optional<std::vector<Saveable>>& list() const { return list_; }

 private:
  std::optional<std::vector<Saveable>> list_;
};

/// The global variables of a graph: those of its collection "variables" (names of nodes). A
/// graph that was imported without collections has only its nodes to go by: all variables, local
/// ones as well. InvalidArgument if the collection names what is not there.
absl::StatusOr<std::vector<Saveable>> SaveablesOfGraph(const Graph& graph);

/// Nodes of a graph that are variables, in the order in which they were added.
std::vector<Node*> VariableNodes(const Graph& graph);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_SAVEABLE_H_
