#include "api/internal/check_restore.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "devices/status_macros.h"
#include "devices/storage/tensor_slice.h"

namespace troupe {
namespace {

/// Messages beyond so many are counted.
constexpr size_t kMessages = 5;

/// A variable's shape, as far as the graph knows it.
PartialShape ShapeOf(const Output& variable) {
  if (variable.node->op() == "VarHandleOp") {
    return variable.node->attrs().GetOr<PartialShape>("shape", PartialShape());
  }
  return variable.shape();
}

class Checker {
 public:
  Checker(const std::string& prefix, const CheckpointReader& reader)
      : prefix_(prefix), reader_(reader) {}

  absl::Status Check(const Node* restore) {
    stack_ = {restore};
    while (!stack_.empty()) {
      const Node* const node = stack_.back();
      stack_.pop_back();
      if (!seen_.insert(node).second) continue;
      if (node->op() == "RestoreV2") CheckReads(*node);
      if (node->op() == "Assign" || node->op() == "AssignVariableOp") CheckAssign(*node);
      for (const Edge* edge : node->in_edges()) stack_.push_back(edge->src);
    }
    if (messages_.empty()) return absl::OkStatus();
    std::string text = StrCat("the checkpoint ", prefix_, " does not fit the graph");
    for (size_t i = 0; i < messages_.size() && i < kMessages; ++i) {
      text += StrCat(i == 0 ? ": " : "; ", messages_[i]);
    }
    if (messages_.size() > kMessages) {
      text += StrCat("; and ", messages_.size() - kMessages, " more");
    }
    return missing_ ? absl::NotFoundError(text) : absl::InvalidArgumentError(text);
  }

 private:
  struct Names {
    std::vector<std::string> names, slices;  ///< Empty: not constant.
  };

  const Names& NamesOf(const Node& read) {
    const auto [it, added] = names_.try_emplace(&read);
    if (!added) return it->second;
    const Tensor names = read.graph()->ConstantValue(read.input(1));
    const Tensor slices = read.graph()->ConstantValue(read.input(2));
    const auto count = static_cast<int64_t>(read.num_outputs());
    if (names.valid() && slices.valid() && names.num_elements() == count &&
        slices.num_elements() == count) {
      const auto of = [](const Tensor& tensor) {
        const auto values = tensor.unchecked_values<std::string>();
        return std::vector<std::string>(values.begin(), values.end());
      };
      it->second = {of(names), of(slices)};
    }
    return it->second;
  }

  void CheckReads(const Node& read) {
    const Names& names = NamesOf(read);
    for (size_t i = 0; i < names.names.size(); ++i) {
      const std::string& name = names.names[i];
      const auto found = reader_.tensors().find(name);
      if (found == reader_.tensors().end()) {
        missing_ = true;
        messages_.push_back(StrCat("it has no tensor '", name, "'"));
        continue;
      }
      const CheckpointTensor& tensor = found->second;
      const ElementType type = read.output_type(static_cast<int>(i));
      if (tensor.type != type) {
        messages_.push_back(StrCat("tensor '", name, "' is of type ", ElementTypeName(tensor.type),
                                   " there, not of ", ElementTypeName(type)));
        continue;
      }
      if (names.slices[i].empty()) continue;
      const absl::StatusOr<ShapeAndSlice> part = ParseShapeAndSlice(names.slices[i]);
      if (!part.ok() || part->full == tensor.shape) continue;  // The step says what is wrong.
      messages_.push_back(StrCat("tensor '", name, "' has the shape ", tensor.shape.ToString(),
                                 " there; the variable is a part of one of the shape ",
                                 part->full.ToString()));
    }
  }

  void CheckAssign(const Node& assign) {
    Output value = assign.input(1);
    bool reshaped = false;
    while (value.node->op() == "Identity" || value.node->op() == "Reshape") {
      reshaped |= value.node->op() == "Reshape";
      value = value.node->input(0);
    }
    if (value.node->op() != "RestoreV2") return;
    const Names& names = NamesOf(*value.node);
    const auto index = static_cast<size_t>(value.index);
    if (index >= names.names.size() || !names.slices[index].empty()) return;
    const auto found = reader_.tensors().find(names.names[index]);
    if (found == reader_.tensors().end()) return;
    const Shape& there = found->second.shape;
    const PartialShape here = ShapeOf(assign.input(0));
    const absl::StatusOr<Shape> full = here.ToShape();
    const bool fits = reshaped ? !full.ok() || full->num_elements() == there.num_elements()
                               : here.IsCompatibleWith(there);
    if (fits) return;
    messages_.push_back(StrCat("tensor '", names.names[index], "' has the shape ", there.ToString(),
                               " there; the variable '", assign.input(0).node->name(), "' has ",
                               here.ToString()));
  }

  const std::string& prefix_;
  const CheckpointReader& reader_;
  std::vector<const Node*> stack_;
  absl::flat_hash_set<const Node*> seen_;
  absl::flat_hash_map<const Node*, Names> names_;
  std::vector<std::string> messages_;
  bool missing_ = false;
};

}  // namespace

absl::Status CheckRestore(const Node* restore, const std::string& prefix,
                          const CheckpointReader& reader) {
  return Checker(prefix, reader).Check(restore);
}

}  // namespace troupe
