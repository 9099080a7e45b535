// Random changes of recorded cases.
#include <algorithm>

#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/random_ops/drawn_case.h"
#include "tests/random_ops/random_values.h"

namespace troupe::random_ops {
namespace {

/// Copies of this tensor with other values, or none if it is no tensor.
bool MutateBytes(RandomSource* random, std::string* bytes) {
  TensorProto proto;
  if (!proto.ParseFromString(*bytes)) return false;
  const absl::StatusOr<Tensor> tensor = TensorFromProto(proto);
  if (!tensor.ok() || !HasValues(tensor->type())) return false;
  proto.Clear();
  TensorToProto(Mutated(random, *tensor), &proto);
  *bytes = proto.SerializeAsString();
  return true;
}

class CaseChanger {
 public:
  CaseChanger(std::string op, const golden::Case& recorded, RandomSource* random)
      : op_(std::move(op)), random_(random), case_(recorded) {
    graph_.ParseFromString(recorded.graph());
    case_.clear_build_error();
    case_.clear_shape();
    for (golden::Step& step : *case_.mutable_step()) {
      step.clear_expected();
      step.clear_error();
    }
    for (golden::GradientCheck& gradient : *case_.mutable_gradient()) {
      gradient.clear_expected();
      gradient.clear_error();
    }
    for (NodeDef& node : *graph_.mutable_node()) nodes_.push_back(&node);
    for (FunctionDef& function : *graph_.mutable_library()->mutable_function()) {
      for (NodeDef& node : *function.mutable_node_def()) nodes_.push_back(&node);
    }
    for (NodeDef* node : nodes_) {
      if (node->op() == op_) tested_.push_back(node);
    }
  }

  golden::Case Change() {
    // What shape inference knows it refuses: kernels see the rest.
    if (random_->Chance(60)) HideShapes();
    for (int64_t changes = 1 + random_->Below(4); changes > 0; --changes) ChangeOnce();
    if (random_->Chance(70)) case_.clear_gradient();
    case_.set_graph(graph_.SerializeAsString());
    return std::move(case_);
  }

 private:
  void ChangeOnce() {
    const int64_t draw = random_->Below(100);
    if (draw < 30) {
      ChangeAttr();
    } else if (draw < 55) {
      ChangeFeed();
    } else if (draw < 80) {
      ChangeConst();
    } else if (draw < 90) {
      ChangeEdge();
    } else {
      ChangeType();
    }
  }

  NodeDef* Tested() {
    if (nodes_.empty()) return nullptr;
    return tested_.empty() || random_->Chance(15) ? random_->Pick(nodes_) : random_->Pick(tested_);
  }

  /// Constants of the graph become values that are fed; placeholders forget their shapes.
  void HideShapes() {
    for (NodeDef& node : *graph_.mutable_node()) {
      auto& attrs = *node.mutable_attr();
      if (node.op() == "Placeholder") attrs.erase("shape");
      if (node.op() != "Const" || case_.step_size() == 0 || random_->Chance(30)) continue;
      golden::NamedTensor feed;
      feed.set_name(node.name());
      feed.set_tensor(attrs["value"].tensor().SerializeAsString());
      for (golden::Step& step : *case_.mutable_step()) *step.add_feed() = feed;
      for (golden::GradientCheck& gradient : *case_.mutable_gradient()) *gradient.add_feed() = feed;
      node.set_op("Placeholder");
      attrs.erase("value");
    }
  }

  void ChangeAttr() {
    NodeDef* node = Tested();
    if (node == nullptr || node->attr_size() == 0) return;
    const auto found = OpRegistry::Global()->LookUp(node->op());
    // Those of the definition, which a node may lack.
    if (found.ok() && (*found)->def->attr_size() > 0 && random_->Chance(70)) {
      const OpDef::AttrDef& definition = random_->Pick((*found)->def->attr());
      AttrValue& value = (*node->mutable_attr())[definition.name()];
      if (value.value_case() == AttrValue::VALUE_NOT_SET) value = RandomAttr(random_, definition);
      return MutateAttr(random_, &definition, &value);
    }
    std::vector<std::string> names;
    for (const auto& [name, value] : node->attr()) names.push_back(name);
    std::sort(names.begin(), names.end());  // maps are in no order
    const std::string& name = random_->Pick(names);
    if (random_->Chance(5)) {
      node->mutable_attr()->erase(name);
    } else {
      MutateAttr(random_, nullptr, &(*node->mutable_attr())[name]);
    }
  }

  void ChangeFeed() {
    if (case_.step_size() == 0) return;
    golden::Step& step = *case_.mutable_step(static_cast<int>(random_->Below(case_.step_size())));
    if (step.feed_size() == 0) return;
    golden::NamedTensor* feed =
        step.mutable_feed(static_cast<int>(random_->Below(step.feed_size())));
    MutateBytes(random_, feed->mutable_tensor());
  }

  void ChangeConst() {
    std::vector<NodeDef*> constants;
    for (NodeDef* node : nodes_) {
      if (node->op() == "Const") constants.push_back(node);
    }
    if (constants.empty()) return ChangeFeed();
    AttrValue& value = (*random_->Pick(constants)->mutable_attr())["value"];
    std::string bytes = value.tensor().SerializeAsString();
    if (MutateBytes(random_, &bytes)) value.mutable_tensor()->ParseFromString(bytes);
    if (random_->Chance(3)) {
      *value.mutable_tensor()->mutable_tensor_shape() = RandomShapeProto(random_);
    }
  }

  /// An input comes from elsewhere, is there twice, or is missing.
  void ChangeEdge() {
    NodeDef* node = Tested();
    if (node == nullptr || node->input_size() == 0) return;
    const int at = static_cast<int>(random_->Below(node->input_size()));
    switch (random_->Below(4)) {
      case 0:
        node->add_input(node->input(at));
        break;
      case 1:
        node->mutable_input()->RemoveLast();
        break;
      default:
        if (graph_.node_size() == 0) return;
        node->set_input(
            at, StrCat(random_->Pick(graph_.node()).name(), random_->Chance(80) ? "" : ":1"));
        break;
    }
  }

  /// One type of the whole graph becomes another.
  void ChangeType() {
    const NodeDef* node = Tested();
    if (node == nullptr) return;
    std::vector<DataType> used;
    for (const auto& [name, value] : node->attr()) {
      if (value.value_case() == AttrValue::kType) used.push_back(value.type());
    }
    std::sort(used.begin(), used.end());
    if (used.empty()) return;
    const DataType old = random_->Pick(used), other = RandomType(random_);
    if (!HasValues(static_cast<ElementType>(other))) return;
    const auto cast = [&](TensorProto* proto) {
      const absl::StatusOr<Tensor> tensor = TensorFromProto(*proto);
      if (!tensor.ok()) return;
      proto->Clear();
      TensorToProto(Cast(*tensor, static_cast<ElementType>(other)), proto);
    };
    for (NodeDef* changed : nodes_) {
      for (auto& [name, value] : *changed->mutable_attr()) {
        if (value.value_case() == AttrValue::kType && value.type() == old) value.set_type(other);
        if (value.value_case() == AttrValue::kTensor && value.tensor().dtype() == old) {
          cast(value.mutable_tensor());
        }
      }
    }
    for (golden::Step& step : *case_.mutable_step()) {
      for (golden::NamedTensor& feed : *step.mutable_feed()) {
        TensorProto proto;
        if (!proto.ParseFromString(feed.tensor()) || proto.dtype() != old) continue;
        cast(&proto);
        feed.set_tensor(proto.SerializeAsString());
      }
    }
    case_.clear_gradient();
  }

  /// Small numbers keep their values; others, and strings, are drawn anew.
  Tensor Cast(const Tensor& from, ElementType type) {
    Tensor to = RandomTensor(random_, type, from.shape());
    if (!IsPlain(from.type()) || !IsPlain(type)) return to;
    for (int64_t i = 0; i < from.num_elements(); ++i) {
      const double value = IsComplex(from.type()) ? 1 : testing::At(from, i);
      if (value >= 0 && value < 100) testing::Set(&to, i, value);
    }
    return to;
  }

  const std::string op_;
  RandomSource* random_;
  golden::Case case_;
  GraphDef graph_;
  std::vector<NodeDef*> nodes_, tested_;
};

}  // namespace

golden::Case CaseFromCase(const std::string& op, const golden::Case& recorded,
                          RandomSource* random) {
  return CaseChanger(op, recorded, random).Change();
}

}  // namespace troupe::random_ops
