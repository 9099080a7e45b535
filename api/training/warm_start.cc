#include "api/training/warm_start.h"

#include <map>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "api/ops.h"
#include "api/training/checkpoint_files.h"
#include "api/training/saveable.h"
#include "api/training/saver.h"
#include "devices/status_macros.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/object_names.h"
#include "devices/storage/tensor_slice.h"

namespace troupe {
namespace {

using Tensors = CheckpointReader::Tensors;

struct OpenedCheckpoint {
  std::string prefix;
  std::unique_ptr<CheckpointReader> reader;
  ObjectNames names;
};

absl::StatusOr<OpenedCheckpoint> Open(const std::string& checkpoint) {
  OpenedCheckpoint opened;
  TROUPE_ASSIGN_OR_RETURN(opened.prefix, FindCheckpoint(checkpoint));
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(opened.prefix));
  TROUPE_ASSIGN_OR_RETURN(opened.reader, OpenCheckpoint(files, opened.prefix));
  TROUPE_ASSIGN_OR_RETURN(opened.names, ObjectNames::Of(*opened.reader));
  return opened;
}

// --- initializers --------------------------------------------------------------------------------

/// The node that sets a variable's initial value.
absl::StatusOr<Node*> InitializerOf(const Node& variable) {
  const ModelVariable model = ModelVariable::FromHandle(*variable.graph(), variable.name());
  if (model.valid() && model.handle().node == &variable) return model.initializer();
  const std::string name = variable.name() + "/Assign";
  if (Node* initializer = variable.graph()->FindNode(name)) return initializer;
  return InvalidArgument("variable '", variable.name(), "' has no initializer '", name, "'");
}

/// A variable, and the tensor that it begins with.
struct Assignment {
  std::string tensor;
  const Saveable* variable = nullptr;
  Node* initializer = nullptr;
};

class WarmStart {
 public:
  explicit WarmStart(const OpenedCheckpoint& checkpoint) : checkpoint_(checkpoint) {}

  absl::Status Plan(const Graph& graph, const AssignmentMap& assignments) {
    TROUPE_ASSIGN_OR_RETURN(saveables_, SaveablesOfGraph(graph));
    for (const Saveable& saveable : saveables_) {
      TROUPE_RETURN_IF_ERROR(saveable.status());
      by_name_[saveable.name()].push_back(&saveable);
      const ModelVariable model = ModelVariable::FromHandle(graph, saveable.node()->name());
      const std::string own = model.valid() ? model.name() : saveable.node()->name();
      if (own != saveable.name()) parts_[own].push_back(&saveable);
    }
    for (const auto& [tensor, target] : assignments) {
      TROUPE_ASSIGN_OR_RETURN(const std::vector<const Saveable*> variables, VariablesOf(target));
      if (!variables.empty()) {
        TROUPE_RETURN_IF_ERROR(Add(tensor, variables));
      } else {
        TROUPE_RETURN_IF_ERROR(AddScope(tensor, target.name()));
      }
    }
    return absl::OkStatus();
  }

  void Apply(const Scope& scope) const {
    for (const Assignment& assignment : planned_) {
      const SavedTensor& saved = assignment.variable->tensors()[0];
      const std::string& device = assignment.variable->device();
      const Scope there = device.empty() ? scope : scope.WithDevice(device);
      const Output value =
          ops::RestoreV2(there.WithDevice("/device:CPU:0").WithOpName("checkpoint_initializer"),
                         checkpoint_.prefix, Tensor::Vector<std::string>({assignment.tensor}),
                         Tensor::Vector<std::string>({saved.shape_and_slice}), {saved.type})[0];
      if (!scope.ok()) return;
      scope.UpdateStatus(scope.graph()->RefineShape(value, saved.shape));
      Node* const set = assignment.variable->AddRestore(there, {value});
      if (!scope.ok()) return;
      scope.UpdateStatus(scope.graph()->Replace(assignment.initializer, set));
    }
  }

 private:
  /// None: the target is the name of a scope.
  absl::StatusOr<std::vector<const Saveable*>> VariablesOf(const AssignmentTarget& target) const {
    std::vector<const Saveable*> variables;
    if (!target.name().empty()) {
      for (const auto* names : {&by_name_, &parts_}) {
        if (const auto found = names->find(target.name()); found != names->end()) {
          return found->second;
        }
      }
      return variables;
    }
    if (target.variables().empty()) return InvalidArgument("a tensor is assigned to nothing");
    for (const ModelVariable& variable : target.variables()) {
      const auto found =
          std::find_if(saveables_.begin(), saveables_.end(), [&](const Saveable& saveable) {
            return variable.valid() && saveable.node() == variable.handle().node;
          });
      if (found == saveables_.end()) {
        return InvalidArgument("'", variable.name(), "' is no global variable of this graph");
      }
      if (!variables.empty() && variables[0]->name() != found->name()) {
        return InvalidArgument("'", variables[0]->name(), "' and '", found->name(),
                               "' are not parts of one variable");
      }
      variables.push_back(&*found);
    }
    return variables;
  }

  absl::Status Add(const std::string& name, const std::vector<const Saveable*>& variables) {
    TROUPE_ASSIGN_OR_RETURN(const std::string tensor,
                            checkpoint_.names.Key(*checkpoint_.reader, name));
    TROUPE_ASSIGN_OR_RETURN(const CheckpointTensor* const found, checkpoint_.reader->Find(tensor));
    for (const Saveable* variable : variables) {
      const SavedTensor& saved = variable->tensors()[0];
      bool fits = saved.type == found->type;
      if (fits && saved.shape_and_slice.empty()) {
        fits = saved.shape.IsCompatibleWith(found->shape);
      } else if (fits) {
        TROUPE_ASSIGN_OR_RETURN(const ShapeAndSlice part,
                                ParseShapeAndSlice(saved.shape_and_slice));
        fits = part.full == found->shape;
      }
      if (!fits) {
        return InvalidArgument(
            "variable '", variable->node()->name(), "' of type ", ElementTypeName(saved.type),
            ", shape ", saved.shape.ToString(), saved.shape_and_slice.empty() ? "" : ", part ",
            saved.shape_and_slice, " cannot begin with tensor '", tensor, "' of checkpoint ",
            checkpoint_.prefix, ", which is of type ", ElementTypeName(found->type), " and shape ",
            found->shape.ToString());
      }
      TROUPE_ASSIGN_OR_RETURN(Node* const initializer, InitializerOf(*variable->node()));
      planned_.push_back({tensor, variable, initializer});
    }
    return absl::OkStatus();
  }

  /// All variables of a scope, from a scope of the checkpoint.
  absl::Status AddScope(const std::string& from, const std::string& to) {
    if (!from.ends_with('/') || !to.ends_with('/')) {
      return InvalidArgument("there is no variable '", to, "' for tensor '", from,
                             "'; scopes are assigned to one another as 'from/' to 'to/'");
    }
    const std::string inside = to == "/" ? "" : to, source = from == "/" ? "" : from;
    bool any = false;
    for (const auto& [name, variables] : by_name_) {
      if (!name.starts_with(inside)) continue;
      any = true;
      TROUPE_RETURN_IF_ERROR(Add(source + name.substr(inside.size()), variables));
    }
    if (any) return absl::OkStatus();
    return InvalidArgument("there is no variable in the scope '", to, "'");
  }

  const OpenedCheckpoint& checkpoint_;
  std::vector<Saveable> saveables_;
  std::map<std::string, std::vector<const Saveable*>> by_name_, parts_;
  std::vector<Assignment> planned_;
};

// --- restoring by name ---------------------------------------------------------------------------

/// A variable that may be a part of another one: "table" and 3 for "table/part_3".
struct PartName {
  std::string whole;
  int part = 0;
};
std::optional<PartName> ParsePart(const std::string& name) {
  constexpr std::string_view kPart = "/part_";
  const size_t at = name.rfind(kPart);
  PartName part;
  if (at == std::string::npos || !absl::SimpleAtoi(name.substr(at + kPart.size()), &part.part) ||
      part.part < 0) {
    return std::nullopt;
  }
  part.whole = name.substr(0, at);
  return part;
}

/// The parts of a variable of shape `whole`, in order, if they are blocks along one axis.
std::optional<std::vector<SaveSliceInfo>> PartsOf(const std::string& name, const Shape& whole,
                                                  const std::map<int, Saveable>& parts) {
  std::vector<SaveSliceInfo> slices;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    SaveSliceInfo slice{
        name, whole, std::vector<int64_t>(static_cast<size_t>(whole.rank()), 0), {}};
    slices.clear();
    for (const auto& [number, part] : parts) {
      const absl::StatusOr<Shape> shape = part.tensors()[0].shape.ToShape();
      if (number != static_cast<int>(slices.size()) || !shape.ok() ||
          shape->rank() != whole.rank()) {
        return std::nullopt;
      }
      slice.extent.assign(shape->dims().begin(), shape->dims().end());
      slices.push_back(slice);
      slice.offset[axis] += shape->dim(axis);
    }
    bool fits = slice.offset[axis] == whole.dim(axis);
    for (const SaveSliceInfo& one : slices) {
      for (int i = 0; i < whole.rank(); ++i) fits &= i == axis || one.extent[i] == whole.dim(i);
      fits &= one.Check().ok();
    }
    if (fits) return slices;
  }
  return std::nullopt;
}

}  // namespace

absl::Status InitFromCheckpoint(const Scope& scope, const std::string& checkpoint,
                                const AssignmentMap& assignments) {
  TROUPE_RETURN_IF_ERROR(scope.status());
  TROUPE_ASSIGN_OR_RETURN(const OpenedCheckpoint opened, Open(checkpoint));
  WarmStart warm_start(opened);
  TROUPE_RETURN_IF_ERROR(warm_start.Plan(*scope.graph(), assignments));
  warm_start.Apply(scope.WithNoControlDependencies().ClearColocation());
  return scope.status();
}

absl::StatusOr<std::vector<std::string>> RestoreByName(Session& session,
                                                       const std::string& checkpoint,
                                                       const RunOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const OpenedCheckpoint opened, Open(checkpoint));
  const Tensors& tensors = opened.reader->tensors();
  std::vector<Saveable> found;
  std::map<std::string, std::map<int, Saveable>> parts;  // By the whole's name.
  for (Node* node : VariableNodes(*session.graph())) {
    Saveable variable(node);
    TROUPE_RETURN_IF_ERROR(variable.status());
    if (tensors.contains(variable.name())) {
      found.push_back(std::move(variable));
      continue;
    }
    const std::string shared = node->attrs().GetOr<std::string>("shared_name", "");
    if (variable.tensors()[0].shape_and_slice.empty()) {
      absl::StatusOr<std::string> key = opened.names.Key(*opened.reader, variable.name());
      if (absl::IsNotFound(key.status()) && !shared.empty()) {
        key = opened.names.Key(*opened.reader, shared);
      }
      if (key.ok()) {
        found.emplace_back(*key, node);
        continue;
      }
      if (!absl::IsNotFound(key.status())) return key.status();
    }
    const auto part = ParsePart(variable.name());
    if (part.has_value() && tensors.contains(part->whole)) {
      parts[part->whole].emplace(part->part, std::move(variable));
    }
  }
  for (const auto& [whole, own] : parts) {
    const Shape& shape = tensors.find(whole)->second.shape;
    const auto slices = PartsOf(whole, shape, own);
    if (!slices.has_value()) {
      return InvalidArgument("variables '", whole, "/part_0' and so on are no parts of tensor '",
                             whole, "' of checkpoint ", opened.prefix, ", which has the shape ",
                             shape.ToString());
    }
    size_t next = 0;
    for (const auto& [number, variable] : own) {
      found.emplace_back(whole, variable.node(), (*slices)[next++]);
    }
  }
  std::vector<std::string> names;
  if (found.empty()) return names;
  for (const Saveable& variable : found) names.push_back(variable.name());
  const Scope scope(session.graph());
  Saver saver(scope, std::move(found), {.name = "restore_by_name"});
  TROUPE_RETURN_IF_ERROR(scope.status());
  TROUPE_RETURN_IF_ERROR(saver.Restore(session, opened.prefix, options));
  return names;
}

}  // namespace troupe
