#include <algorithm>

#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/graph.h"
#include "graph/graph_impl.h"
#include "graph/op_args.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

/// Sets an attribute that follows from the inputs, unless the caller has set it.
AttrValue* Inferred(NodeDef* def, const std::string& name) {
  if (def->attr().contains(name)) return nullptr;
  return &(*def->mutable_attr())[name];
}

}  // namespace

NodeSpec::NodeSpec(std::string op, std::string name) : def_(std::make_unique<NodeDef>()) {
  def_->set_op(std::move(op));
  def_->set_name(std::move(name));
}
NodeSpec::~NodeSpec() = default;
NodeSpec::NodeSpec(NodeSpec&&) noexcept = default;
NodeSpec::NodeSpec(const NodeSpec& other)
    : def_(std::make_unique<NodeDef>(*other.def_)),
      arguments_(other.arguments_),
      control_inputs_(other.control_inputs_) {}

NodeSpec& NodeSpec::Input(Output tensor) {
  arguments_.push_back({false, {tensor}});
  return *this;
}
NodeSpec& NodeSpec::Input(absl::Span<const Output> list) {
  arguments_.push_back({true, {list.begin(), list.end()}});
  return *this;
}
NodeSpec& NodeSpec::ControlInput(Node* node) {
  control_inputs_.push_back(node);
  return *this;
}
NodeSpec& NodeSpec::Device(std::string device) {
  def_->set_device(std::move(device));
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, const AttrValue& value) {
  (*def_->mutable_attr())[std::string(name)] = value;
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, std::string_view value) {
  (*def_->mutable_attr())[std::string(name)].set_s(std::string(value));
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, int64_t value) {
  (*def_->mutable_attr())[std::string(name)].set_i(value);
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, float value) {
  (*def_->mutable_attr())[std::string(name)].set_f(value);
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, bool value) {
  (*def_->mutable_attr())[std::string(name)].set_b(value);
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, ElementType value) {
  (*def_->mutable_attr())[std::string(name)].set_type(static_cast<DataType>(value));
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, const PartialShape& value) {
  value.ToProto((*def_->mutable_attr())[std::string(name)].mutable_shape());
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, const Tensor& value) {
  TensorToProto(value, (*def_->mutable_attr())[std::string(name)].mutable_tensor());
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, absl::Span<const int64_t> value) {
  auto* list = (*def_->mutable_attr())[std::string(name)].mutable_list();
  list->Clear();
  for (int64_t v : value) list->add_i(v);
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, absl::Span<const ElementType> value) {
  auto* list = (*def_->mutable_attr())[std::string(name)].mutable_list();
  list->Clear();
  for (ElementType v : value) list->add_type(static_cast<DataType>(v));
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, absl::Span<const std::string> value) {
  auto* list = (*def_->mutable_attr())[std::string(name)].mutable_list();
  list->Clear();
  for (const std::string& v : value) list->add_s(v);
  return *this;
}
NodeSpec& NodeSpec::Attr(std::string_view name, absl::Span<const PartialShape> value) {
  auto* list = (*def_->mutable_attr())[std::string(name)].mutable_list();
  list->Clear();
  for (const PartialShape& v : value) v.ToProto(list->add_shape());
  return *this;
}

absl::StatusOr<Node*> Graph::AddNode(const NodeSpec& spec) {
  std::lock_guard lock(impl_->mutex);
  auto def = std::make_unique<NodeDef>(*spec.def_);
  TROUPE_ASSIGN_OR_RETURN(const OpRegistration* registration, impl_->LookUpFor(*def));
  const OpDef& op_def = *registration->def;
  if (static_cast<int>(spec.arguments_.size()) != op_def.input_arg_size()) {
    return InvalidArgument("node '", def->name(), "' (op ", def->op(), ") takes ",
                           op_def.input_arg_size(), " arguments but is given ",
                           spec.arguments_.size());
  }
  std::vector<Output> inputs;
  for (int i = 0; i < op_def.input_arg_size(); ++i) {
    const OpDef::ArgDef& arg = op_def.input_arg(i);
    const NodeSpec::Argument& given = spec.arguments_[i];
    const bool list = !arg.number_attr().empty() || !arg.type_list_attr().empty();
    if (list != given.list) {
      return InvalidArgument("node '", def->name(), "' (op ", def->op(), "): argument '",
                             arg.name(), "' takes ", list ? "a list of tensors" : "one tensor",
                             " but is given ", given.list ? "a list" : "one");
    }
    const Output* first = nullptr;
    for (const Output& tensor : given.tensors) {
      inputs.push_back(tensor);
      if (!tensor.valid()) continue;
      if (tensor.node->graph() != this || !Impl::MayHave(tensor)) {
        return InvalidArgument("node '", def->name(), "' (op ", def->op(), "): argument '",
                               arg.name(), "': '", tensor.name(), "' is no tensor of this graph");
      }
      if (first == nullptr) first = &tensor;
    }
    if (!arg.number_attr().empty()) {
      if (AttrValue* n = Inferred(def.get(), arg.number_attr())) {
        n->set_i(static_cast<int64_t>(given.tensors.size()));
      }
    }
    if (!arg.type_attr().empty() && first != nullptr && first->type() != ElementType::kInvalid) {
      if (AttrValue* type = Inferred(def.get(), arg.type_attr())) {
        type->set_type(static_cast<DataType>(first->type()));
      }
    }
    if (!arg.type_list_attr().empty()) {
      if (AttrValue* types = Inferred(def.get(), arg.type_list_attr())) {
        types->mutable_list();
        for (const Output& tensor : given.tensors) {
          if (tensor.valid()) {
            types->mutable_list()->add_type(static_cast<DataType>(tensor.type()));
          }
        }
      }
    }
  }
  for (const Node* control : spec.control_inputs_) {
    if (control == nullptr || control->graph() != this) {
      return InvalidArgument("node '", def->name(), "' (op ", def->op(),
                             "): a control input is no node of this graph");
    }
  }
  return impl_->Add({.def = std::move(def),
                     .registration = registration,
                     .inputs = inputs,
                     .control_inputs = spec.control_inputs_});
}

absl::StatusOr<Node*> Graph::AddNode(const NodeDef& given) {
  std::lock_guard lock(impl_->mutex);
  TROUPE_ASSIGN_OR_RETURN(const OpRegistration* registration, impl_->LookUpFor(given));
  std::vector<Output> inputs;
  std::vector<Node*> controls;
  for (const std::string& input : given.input()) {
    std::string_view name;
    int port;
    if (!ParseTensorName(input, &name, &port)) {
      return InvalidArgument("node '", given.name(), "': malformed input '", input, "'");
    }
    Node* node = impl_->FindNode(name);
    if (node == nullptr) {
      return InvalidArgument("node '", given.name(), "': input '", input,
                             "' names no node of the graph");
    }
    if (port == Edge::kControlSlot) {
      controls.push_back(node);
    } else if (!controls.empty()) {
      return InvalidArgument("node '", given.name(), "': data input '", input,
                             "' comes after control inputs");
    } else {
      inputs.emplace_back(node, port);
    }
  }
  return impl_->Add({.def = std::make_unique<NodeDef>(given),
                     .registration = registration,
                     .inputs = inputs,
                     .control_inputs = controls});
}

}  // namespace troupe
