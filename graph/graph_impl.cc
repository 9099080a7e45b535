#include "graph/graph_impl.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "absl/strings/numbers.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/attr_check.h"
#include "graph/op_args.h"

namespace troupe {
namespace {

/// A Merge may be added before the ends of its loops' back edges exist.
bool MayMissInputs(const std::string& op) { return op == "Merge" || op == "RefMerge"; }

/// Equal but for the order of map entries.
bool SameMessage(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

// How many outputs an op that is not registered may have: a graph's word alone is taken for it.
constexpr int kMaxUnknownOutputs = 1 << 16;

std::string Signature(const NodeDef& def) {
  return StrCat("node '", def.name(), "' (op ", def.op(), ")");
}

/// How a C++ literal of the value's first element is written as one of type `wanted`; "" if there
/// is no such literal.
std::string Literal(ElementType wanted, const Tensor& value) {
  if (!value.valid() || value.num_elements() == 0) return "";
  double number;
  if (value.type() == ElementType::kDouble) {
    number = value.unchecked_values<double>()[0];
  } else if (value.type() == ElementType::kFloat) {
    number = value.unchecked_values<float>()[0];
  } else if (value.type() == ElementType::kInt32) {
    number = value.unchecked_values<int32_t>()[0];
  } else {
    return "";
  }
  const bool whole = number == std::floor(number) && std::abs(number) < 1e6;
  std::string text = StrCat(number);
  if (wanted == ElementType::kFloat) return StrCat(text, whole ? ".0f" : "f");
  if (wanted == ElementType::kDouble) return StrCat(text, whole ? ".0" : "");
  if (wanted == ElementType::kInt32 && whole) return text;
  if (wanted == ElementType::kInt64 && whole) return StrCat("int64_t{", text, "}");
  return "";
}

/// Types and numbers of a known op's inputs and outputs, after its attributes have been completed.
absl::Status Complete(const OpDef& op_def, NodeDef* def, std::vector<ElementType>* inputs,
                      std::vector<ElementType>* outputs) {
  FillDefaultAttrs(op_def, def);
  TROUPE_RETURN_IF_ERROR(CheckAttrs(op_def, *def));
  const AttrReader attrs(def);
  TROUPE_RETURN_IF_ERROR(ArgTypes(op_def, ArgSide::kInputs, attrs, inputs));
  return ArgTypes(op_def, ArgSide::kOutputs, attrs, outputs);
}

}  // namespace

bool IsNodeName(std::string_view name) {
  if (name.empty()) return false;
  bool first = true;  // of the name, or of what follows a '>'
  for (const char c : name) {
    const unsigned char u = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(u) || c == '.';
    if (!plain && (first || (c != '_' && c != '-' && c != '/' && c != '\\' && c != '>'))) {
      return false;
    }
    first = c == '>';
  }
  return !first;
}

bool ParseTensorName(std::string_view text, std::string_view* node, int* port) {
  if (!text.empty() && text.front() == '^') {
    *node = text.substr(1);
    *port = Edge::kControlSlot;
    return !node->empty() && node->find(':') == std::string_view::npos;
  }
  const size_t colon = text.rfind(':');
  *port = 0;
  *node = text.substr(0, colon);
  if (node->empty()) return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view digits = text.substr(colon + 1);
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
  }
  return absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), port);
}

absl::StatusOr<const OpRegistration*> Graph::Impl::LookUp(const std::string& op,
                                                          int graph_producer) const {
  if (auto found = functions.find(op); found != functions.end()) return found->second.get();
  TROUPE_ASSIGN_OR_RETURN(const OpRegistration* registration, ops->LookUp(op));
  const OpDeprecation& deprecation = registration->def->deprecation();
  if (registration->def->has_deprecation() && graph_producer >= deprecation.version()) {
    return absl::UnimplementedError(StrCat("op ", op, " is not available in GraphDef version ",
                                           graph_producer, "; it has been removed in version ",
                                           deprecation.version(), ". ", deprecation.explanation()));
  }
  return registration;
}

absl::StatusOr<const OpRegistration*> Graph::Impl::LookUpFor(const NodeDef& def) const {
  if (finalized) {
    return absl::FailedPreconditionError(
        StrCat("node '", def.name(), "' cannot be added: the graph is finalized"));
  }
  auto registration = LookUp(def.op(), producer);
  if (registration.ok()) return registration;
  return WithContext(StrCat("node '", def.name(), "': "), registration.status());
}

Node* Graph::Impl::FindNode(std::string_view name) const {
  auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

absl::StatusOr<Output> Graph::Impl::FindOutput(std::string_view tensor_name) const {
  std::string_view name;
  int port;
  if (!ParseTensorName(tensor_name, &name, &port) || port == Edge::kControlSlot) {
    return InvalidArgument("'", tensor_name, "' is no name of a tensor; expected 'node:port'");
  }
  Node* node = FindNode(name);
  if (node == nullptr) {
    return absl::NotFoundError(
        StrCat("tensor '", tensor_name, "': the graph has no node '", name, "'"));
  }
  const Output output(node, port);
  if (!MayHave(output)) {
    return InvalidArgument("tensor '", tensor_name, "': ", Signature(node->def()), " has ",
                           node->num_outputs(), " outputs");
  }
  return output;
}

const OpRegistration* Graph::Impl::Unknown(const std::string& op) {
  std::unique_ptr<OpRegistration>& registration = unknown_ops[op];
  if (registration == nullptr) {
    registration = std::make_unique<OpRegistration>();
    registration->def = std::make_unique<OpDef>();
    registration->def->set_name(op);
    registration->def->set_is_stateful(true);  // It may be: nothing may leave it out or run it.
  }
  return registration.get();
}

bool Graph::Impl::MayHave(const Output& output) {
  const int end = output.node->op_known_ ? output.node->num_outputs() : kMaxUnknownOutputs;
  return output.index >= 0 && output.index < end;
}

void Graph::Impl::Adopt(const Output& output, ElementType type) {
  Node* node = output.node;
  if (node->op_known_) return;
  if (output.index >= node->num_outputs()) {
    node->output_types_.resize(output.index + 1);
    node->output_shapes_.resize(output.index + 1);
    node->output_handles_.resize(output.index + 1);
  }
  ElementType& known = node->output_types_[output.index];
  if (known == ElementType::kInvalid || IsRefType(type)) known = type;
}

absl::Status Graph::Impl::CheckInput(const NodeDef& def, int i, ElementType expected,
                                     const Output& input) const {
  const ElementType got = input.index < input.node->num_outputs()
                              ? input.node->output_types_[input.index]
                              : ElementType::kInvalid;
  if (got == ElementType::kInvalid) return absl::OkStatus();  // Adopted later.
  const bool ref_fits = !IsRefType(expected) || IsRefType(got) || !input.node->op_known_;
  if (RemoveRef(expected) == RemoveRef(got) && ref_fits) return absl::OkStatus();
  return InvalidArgument(Signature(def), ": input ", i, " should be ", ElementTypeName(expected),
                         " but '", input.name(), "' is ", ElementTypeName(got));
}

Edge* Graph::Impl::AddEdge(Node* src, int src_output, Node* dst, int dst_input) {
  edges.push_back(Edge{src, src_output, dst, dst_input});
  Edge* edge = &edges.back();
  src->out_edges_.push_back(edge);
  dst->in_edges_.push_back(edge);
  if (dst_input >= 0) dst->in_data_[dst_input] = edge;
  return edge;
}

void Graph::Impl::AddControlEdge(Node* src, Node* dst) {
  if (src->IsSource() || dst->IsSink()) return;
  // Looks at the shorter of the two lists, so that a hub of control edges does not make this slow.
  const bool by_src = src->out_edges_.size() < dst->in_edges_.size();
  for (const Edge* edge : by_src ? src->out_edges_ : dst->in_edges_) {
    if (edge->control() && edge->src == src && edge->dst == dst) return;
  }
  AddEdge(src, Edge::kControlSlot, dst, Edge::kControlSlot);
}

absl::Status Graph::Impl::WithHint(const absl::Status& error, absl::Span<const Output> inputs,
                                   size_t i, ElementType expected) {
  // Either this input is a literal of the wrong type, or one before it has fixed the type.
  auto literal = [&](const Output& input, ElementType wanted) {
    const bool constant = input.valid() && input.node->op() == "Const";
    return constant ? Literal(wanted, constants.Value(input)) : std::string();
  };
  std::string hint = literal(inputs[i], expected);
  for (size_t j = 0; j < i && hint.empty(); ++j) {
    if (inputs[j].type() != expected) continue;
    hint = literal(inputs[j], inputs[i].type());
    if (!hint.empty()) hint += StrCat(" for '", inputs[j].name(), "'");
  }
  if (hint.empty()) return error;
  return WithContext("", error, StrCat("; if it is a literal, write ", hint));
}

absl::StatusOr<Node*> Graph::Impl::Add(NewNode added) {
  NodeDef& def = *added.def;
  const OpDef& op_def = *added.registration->def;
  if (!IsNodeName(def.name())) {
    return InvalidArgument("'", def.name(), "' (op ", def.op(),
                           ") is no name for a node: expected letters, digits and . _ - / \\ >");
  }
  if (by_name.count(def.name()) > 0) {
    return absl::AlreadyExistsError(StrCat("the graph has a node '", def.name(), "' already"));
  }
  // Before attributes, many of which come from inputs.
  for (size_t i = 0; i < added.inputs.size(); ++i) {
    if (added.inputs[i].valid() || (added.op_known && MayMissInputs(def.op()))) continue;
    return InvalidArgument(Signature(def), ": input ", i, " is missing");
  }
  auto node = std::unique_ptr<Node>(new Node);
  node->op_known_ = added.op_known;
  if (added.op_known) {
    TROUPE_RETURN_IF_ERROR(Complete(op_def, &def, &node->input_types_, &node->output_types_));
  } else {
    for (const Output& input : added.inputs) node->input_types_.push_back(input.type());
    node->output_types_.resize(1);  // Others show when they are taken.
  }
  if (added.inputs.size() != node->input_types_.size()) {
    return InvalidArgument(Signature(def), " takes ", node->input_types_.size(),
                           " inputs but is given ", added.inputs.size());
  }
  for (size_t i = 0; i < added.inputs.size(); ++i) {
    const Output& input = added.inputs[i];
    if (!input.valid()) continue;
    if (input.node->graph_ != graph) {
      return InvalidArgument(Signature(def), ": input ", i, " ('", input.name(),
                             "') belongs to another graph");
    }
    if (!MayHave(input)) {
      return InvalidArgument(Signature(def), ": input ", i, " is output ", input.index, " of ",
                             Signature(input.node->def()), ", which has ",
                             input.node->num_outputs(), " outputs");
    }
    const absl::Status fits = CheckInput(def, static_cast<int>(i), node->input_types_[i], input);
    if (!fits.ok()) {
      return added.producer ? fits : WithHint(fits, added.inputs, i, node->input_types_[i]);
    }
    Adopt(input, node->input_types_[i]);
  }
  InferredShapes inferred;
  TROUPE_RETURN_IF_ERROR(InferShapes(def, *added.registration, added.inputs, node->num_outputs(),
                                     added.producer.value_or(producer), &constants, &inferred));

  node->id_ = static_cast<int>(nodes.size());
  node->graph_ = graph;
  node->def_ = std::move(added.def);
  if (added.op_known) node->def_->clear_input();
  node->registration_ = added.registration;
  node->output_shapes_ = std::move(inferred.shapes);
  node->output_handles_ = std::move(inferred.handles);
  node->in_data_.resize(added.inputs.size());
  Node* result = node.get();
  nodes.push_back(std::move(node));
  by_name.emplace(result->name(), result);
  result->in_edges_.reserve(added.inputs.size() + added.control_inputs.size());
  for (size_t i = 0; i < added.inputs.size(); ++i) {
    const Output& input = added.inputs[i];
    if (input.valid()) AddEdge(input.node, input.index, result, static_cast<int>(i));
  }
  for (Node* control : added.control_inputs) AddControlEdge(control, result);
  return result;
}

absl::Status Graph::Impl::JoinBackEdge(Output src, Node* dst, int dst_input) {
  if (!src.valid() || dst == nullptr || src.node->graph_ != graph || dst->graph_ != graph) {
    return InvalidArgument("both ends of a back edge must be nodes of this graph");
  }
  if (!MayMissInputs(dst->op())) {
    return InvalidArgument(Signature(dst->def()), ": only Merge nodes can have back edges");
  }
  if (dst_input < 0 || dst_input >= dst->num_inputs()) {
    return InvalidArgument(Signature(dst->def()), " has no input ", dst_input);
  }
  if (!MayHave(src)) {
    return InvalidArgument(Signature(src.node->def()), " has no output ", src.index);
  }
  const ElementType expected = dst->input_types_[dst_input];
  TROUPE_RETURN_IF_ERROR(CheckInput(dst->def(), dst_input, expected, src));
  Adopt(src, expected);
  if (Edge* old = dst->in_data_[dst_input]; old != nullptr) {
    // The edge is turned round to its new source; its place in the order stays.
    std::erase(old->src->out_edges_, old);
    old->src = src.node;
    old->src_output = src.index;
    src.node->out_edges_.push_back(old);
  } else {
    AddEdge(src.node, src.index, dst, dst_input);
  }
  return absl::OkStatus();
}

absl::Status Graph::Impl::Refine(Output tensor, const PartialShape& shape) {
  PartialShape& known = tensor.node->output_shapes_[tensor.index];
  auto merged = known.MergeWith(shape);
  if (!merged.ok()) {
    return InvalidArgument("the shape of '", tensor.name(), "' is ", known.ToString(),
                           " and cannot be refined to ", shape.ToString());
  }
  if (*merged == known) return absl::OkStatus();
  known = *std::move(merged);
  constants.Forget();
  return absl::OkStatus();
}

absl::Status Graph::Impl::AddLibrary(const FunctionDefLibrary& added) {
  if (added.function_size() == 0 && added.gradient_size() == 0) return absl::OkStatus();
  // Everything is checked before anything is added.
  std::unordered_map<std::string_view, const FunctionDef*> known;
  for (const FunctionDef& function : library.function()) {
    known.emplace(function.signature().name(), &function);
  }
  std::vector<const FunctionDef*> fresh;
  for (const FunctionDef& function : added.function()) {
    const std::string& name = function.signature().name();
    if (name.empty()) return InvalidArgument("a function of the library has no name");
    auto [place, is_new] = known.emplace(name, &function);
    if (is_new) {
      if (ops->LookUp(name).ok()) {
        return InvalidArgument("cannot add function '", name, "': an op of that name exists");
      }
      fresh.push_back(&function);
    } else if (!SameMessage(*place->second, function)) {
      return InvalidArgument("cannot add function '", name,
                             "': a different function of that name exists");
    }
  }
  for (const FunctionDef* function : fresh) {
    auto registration = std::make_unique<OpRegistration>();
    registration->def = std::make_unique<OpDef>(function->signature());
    functions.emplace(function->signature().name(), std::move(registration));
    *library.add_function() = *function;
  }
  for (const GradientDef& gradient : added.gradient()) {
    bool known = false;
    for (const GradientDef& old : library.gradient()) {
      if (old.function_name() != gradient.function_name()) continue;
      if (old.gradient_func() != gradient.gradient_func()) {
        return InvalidArgument("function '", gradient.function_name(),
                               "' is given two gradients: '", old.gradient_func(), "' and '",
                               gradient.gradient_func(), "'");
      }
      known = true;
    }
    if (!known) *library.add_gradient() = gradient;
  }
  return absl::OkStatus();
}

void Graph::Impl::Truncate(size_t num_nodes, size_t num_edges) {
  while (edges.size() > num_edges) {
    Edge* edge = &edges.back();
    // The edges between nodes that stay and nodes that go were added last.
    if (edge->src->id_ < static_cast<int>(num_nodes)) std::erase(edge->src->out_edges_, edge);
    if (edge->dst->id_ < static_cast<int>(num_nodes)) std::erase(edge->dst->in_edges_, edge);
    edges.pop_back();
  }
  while (nodes.size() > num_nodes) {
    by_name.erase(nodes.back()->name());
    nodes.pop_back();
  }
  constants.Forget();
}

void Graph::Impl::TruncateLibrary(int num_functions, int num_gradients) {
  while (library.function_size() > num_functions) {
    functions.erase(library.function().rbegin()->signature().name());
    library.mutable_function()->RemoveLast();
  }
  while (library.gradient_size() > num_gradients) library.mutable_gradient()->RemoveLast();
}

void Graph::Impl::ConnectSourceAndSink() {
  if (connected_nodes == nodes.size() && connected_edges == edges.size()) return;
  connected_nodes = nodes.size();
  connected_edges = edges.size();
  boundary_edges.clear();
  Node* source = nodes[0].get();
  Node* sink = nodes[1].get();
  source->out_edges_.clear();
  sink->in_edges_.clear();
  auto connect = [this](Node* src, Node* dst) {
    boundary_edges.push_back(Edge{src, Edge::kControlSlot, dst, Edge::kControlSlot});
    return &boundary_edges.back();
  };
  for (size_t id = 2; id < nodes.size(); ++id) {
    Node* node = nodes[id].get();
    if (node->in_edges_.empty()) source->out_edges_.push_back(connect(source, node));
    if (node->out_edges_.empty()) sink->in_edges_.push_back(connect(node, sink));
  }
}

}  // namespace troupe
