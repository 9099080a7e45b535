#include "graph/function_body.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/gradients/add_gradients.h"
#include "graph/graph_def.h"
#include "graph/passes/inline_functions.h"

namespace troupe {
namespace {

constexpr char kGradient[] = "SymbolicGradient";

absl::Status InFunction(const std::string& name, const absl::Status& status) {
  return WithContext(StrCat("function '", name, "': "), status);
}

NodeDef ArgNode(const std::string& name, DataType type, size_t index) {
  NodeDef node;
  node.set_name(name);
  node.set_op("_Arg");
  (*node.mutable_attr())["T"].set_type(type);
  (*node.mutable_attr())["index"].set_i(static_cast<int64_t>(index));
  return node;
}

/// A name as nodes have them, that is not in `taken`; now it is.
std::string FreeName(std::string name, std::unordered_set<std::string>* taken) {
  if (name.empty() || !(std::isalnum(static_cast<unsigned char>(name[0])) || name[0] == '.')) {
    name.insert(0, "arg");
  }
  std::string free = name;
  for (int i = 0; !taken->insert(free).second; ++i) free = StrCat(name, "_", i);
  return free;
}

absl::StatusOr<FunctionBody> Instantiate(const FunctionLibrary& library,
                                         const FunctionDef& function, const AttrMap& attrs,
                                         int producer, const FunctionLibrary::Follow* lowered) {
  const OpDef& signature = function.signature();
  const AttrMap all = WithDefaults(attrs, signature);
  GraphDef def;
  def.mutable_versions()->set_producer(producer);
  std::unordered_set<std::string> taken;
  for (const NodeDef& node : function.node_def()) taken.insert(node.name());
  BindOptions options;
  options.rename = [](const std::string& name) { return name; };
  std::vector<std::string> args;
  for (int i = 0; i < signature.input_arg_size(); ++i) {
    const OpDef::ArgDef& arg = signature.input_arg(i);
    TROUPE_ASSIGN_OR_RETURN(std::vector<DataType> types, ArgumentTypes(arg, all));
    for (DataType type : types) {
      args.push_back(FreeName(arg.name(), &taken));
      NodeDef* node = def.add_node();
      *node = ArgNode(args.back(), type, args.size() - 1);
      options.arguments.push_back({args.back() + ":0", true});
      // What is known of the argument's shape, if it is one tensor.
      auto known = function.arg_attr().find(static_cast<uint32_t>(i));
      if (known == function.arg_attr().end() || types.size() != 1) continue;
      auto shapes = known->second.attr().find("_output_shapes");
      if (shapes == known->second.attr().end()) continue;
      (*node->mutable_attr())["_output_shapes"] = shapes->second;
    }
  }
  TROUPE_ASSIGN_OR_RETURN(BoundFunction bound, BindFunction(library, function, attrs, options));
  for (NodeDef& node : bound.nodes) *def.add_node() = std::move(node);
  // A chain of calls may be long: its bodies must not each hold the rest of it.
  *def.mutable_library() = lowered != nullptr
                               ? library.Reachable(def.node(), *lowered, kMaxBodyNesting)
                               : library.Reachable(def.node());

  FunctionBody body;
  body.name = signature.name();
  body.graph = std::make_shared<Graph>(&library.ops());
  TROUPE_RETURN_IF_ERROR(ImportGraphDef(def, ImportOptions(), body.graph.get()));
  for (const std::string& arg : args) body.args.emplace_back(body.graph->FindNode(arg));
  for (size_t i = 0; i < bound.results.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(Output result, body.graph->FindOutput(bound.results[i]));
    const auto type = static_cast<ElementType>(bound.result_types[i]);
    if (RemoveRef(result.type()) != RemoveRef(type)) {
      return InvalidArgument("result ", i, " should be ", ElementTypeName(type), " but '",
                             result.name(), "' is ", ElementTypeName(result.type()));
    }
    body.results.push_back(result);
  }
  std::unordered_set<const Node*> seen;
  auto effect = [&](Node* node) {
    if (node->op() != "_Arg" && seen.insert(node).second) body.effects.push_back(node);
  };
  for (const auto& [name, node] : function.control_ret()) effect(body.graph->FindNode(node));
  for (Node* node : body.graph->nodes()) {
    if (node->stateful()) effect(node);
  }
  return body;
}

/// The gradient function of a function that has none of its own.
absl::StatusOr<FunctionBody> Differentiate(FunctionBody body) {
  std::vector<Output> ys, grad_ys, xs;
  const std::vector<Output> args = body.args;
  for (const Output& result : body.results) {
    const ElementType type = RemoveRef(result.type());
    NodeDef arg = ArgNode(body.graph->UniqueName("grad_result"), static_cast<DataType>(type),
                          body.args.size());
    TROUPE_ASSIGN_OR_RETURN(Node * grad, body.graph->AddNode(arg));
    body.args.emplace_back(grad);
    if (!IsDifferentiable(type)) continue;
    ys.push_back(result);
    grad_ys.emplace_back(grad);
  }
  std::vector<Output> grads(args.size());
  if (!ys.empty() && !args.empty()) {
    TROUPE_RETURN_IF_ERROR(AddSymbolicGradients(ys, args, grad_ys, &grads, "gradients"));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (grads[i].valid()) continue;
    TROUPE_ASSIGN_OR_RETURN(
        Node * zeros,
        body.graph->AddNode(
            NodeSpec("ZerosLike", body.graph->UniqueName("gradients/zeros")).Input(args[i])));
    grads[i] = Output(zeros);
  }
  body.results = std::move(grads);
  return body;
}

}  // namespace

absl::StatusOr<FunctionBody> InstantiateFunction(const FunctionLibrary& library,
                                                 const NameAttrList& function, int producer,
                                                 const FunctionLibrary::Follow* lowered) {
  const std::string& name = function.name();
  if (name != kGradient || library.Find(name) != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const FunctionDef* def, library.Get(name));
    absl::StatusOr<FunctionBody> body =
        Instantiate(library, *def, function.attr(), producer, lowered);
    if (!body.ok()) return InFunction(name, body.status());
    return body;
  }
  auto f = function.attr().find("f");
  if (f == function.attr().end() || f->second.value_case() != AttrValue::kFunc) {
    return InvalidArgument("SymbolicGradient lacks the attribute 'f', a function");
  }
  NameAttrList of = f->second.func();
  if (const std::string& gradient = library.GradientOf(of.name()); !gradient.empty()) {
    of.set_name(gradient);
    return InstantiateFunction(library, of, producer, lowered);
  }
  // Differentiation replaces every call.
  TROUPE_ASSIGN_OR_RETURN(FunctionBody body,
                          InstantiateFunction(library, of, producer, /*lowered=*/nullptr));
  absl::StatusOr<FunctionBody> differentiated = Differentiate(std::move(body));
  if (!differentiated.ok()) {
    return WithContext(StrCat("the gradient of function '", of.name(), "': "),
                       differentiated.status());
  }
  differentiated->name = StrCat(kGradient, "(", of.name(), ")");
  return differentiated;
}

// --- from a graph ------------------------------------------------------------------------------

namespace {

/// One function made of a graph.
class FunctionMaker {
 public:
  FunctionMaker(const Graph& graph, std::string_view name, absl::Span<const Output> inputs,
                absl::Span<const Output> outputs, const FunctionDefOptions& options)
      : graph_(graph), inputs_(inputs), outputs_(outputs), options_(options) {
    def_.mutable_signature()->set_name(std::string(name));
    def_.mutable_signature()->set_description(options.description);
  }

  absl::StatusOr<FunctionDef> Run() {
    const std::string& name = def_.signature().name();
    TROUPE_RETURN_IF_ERROR(
        InFunction(name, name.empty() ? InvalidArgument("a function needs a name") : Make()));
    return std::move(def_);
  }

 private:
  absl::Status Make() {
    TROUPE_RETURN_IF_ERROR(AddArguments());
    TROUPE_RETURN_IF_ERROR(FindNodes());
    for (const Node* node : nodes_) TROUPE_RETURN_IF_ERROR(AddNode(*node));
    TROUPE_RETURN_IF_ERROR(AddResults());
    for (const Node* node : options_.control_outputs) {
      (*def_.mutable_control_ret())[node->name()] = node->name();
      def_.mutable_signature()->add_control_output(node->name());
    }
    return absl::OkStatus();
  }

  absl::Status Check(const Output& tensor, std::string_view what) const {
    if (!tensor.valid() || tensor.node->graph() != &graph_ || tensor.node->id() < 2 ||
        tensor.index < 0 || tensor.index >= tensor.node->num_outputs()) {
      return InvalidArgument("an ", what, " is no tensor of the graph");
    }
    if (IsRefType(tensor.type())) {
      return InvalidArgument(what, " '", tensor.name(), "' is a reference; use its value");
    }
    return absl::OkStatus();
  }

  static uint64_t Key(const Node* node, int port) {
    return static_cast<uint64_t>(node->id()) << 32 | static_cast<uint32_t>(port);
  }

  /// Arguments have lower-case names without separators.
  static std::string ArgumentName(std::string_view node) {
    std::string name;
    for (char c : node) {
      const auto u = static_cast<unsigned char>(c);
      name += std::isalnum(u) ? static_cast<char>(std::tolower(u)) : '_';
    }
    while (!name.empty() && !std::isalpha(static_cast<unsigned char>(name[0]))) name.erase(0, 1);
    return name.empty() ? "arg" : name;
  }

  absl::Status AddArguments() {
    for (const Output& input : inputs_) {
      TROUPE_RETURN_IF_ERROR(Check(input, "input"));
      OpDef::ArgDef* arg = def_.mutable_signature()->add_input_arg();
      arg->set_name(FreeName(ArgumentName(input.node->name()), &arg_names_));
      arg->set_type(static_cast<DataType>(input.type()));
      if (!args_.emplace(Key(input.node, input.index), arg->name()).second) {
        return InvalidArgument("tensor '", input.name(), "' is an input twice");
      }
    }
    return absl::OkStatus();
  }

  bool IsWhollyInput(const Node& node) const {
    if (node.num_outputs() == 0) return false;
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (args_.count(Key(&node, i)) == 0) return false;
    }
    return true;
  }

  absl::Status FindNodes() {
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> stack;
    auto need = [&](const Node* node) {
      if (node->id() >= 2 && !IsWhollyInput(*node) && seen.insert(node).second) {
        stack.push_back(node);
      }
    };
    for (const Output& output : outputs_) {
      TROUPE_RETURN_IF_ERROR(Check(output, "output"));
      if (args_.count(Key(output.node, output.index)) == 0) need(output.node);
    }
    for (const Node* node : options_.control_outputs) {
      if (node == nullptr || node->graph() != &graph_ || node->id() < 2 || IsWhollyInput(*node)) {
        return InvalidArgument("a control output is no node of the body");
      }
      need(node);
    }
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      nodes_.push_back(node);
      for (const Edge* edge : node->in_edges()) {
        if (!edge->control() && args_.count(Key(edge->src, edge->src_output)) > 0) continue;
        need(edge->src);
      }
    }
    std::sort(nodes_.begin(), nodes_.end(),
              [](const Node* a, const Node* b) { return a->id() < b->id(); });
    for (const Node* node : nodes_) {
      if (arg_names_.count(node->name()) == 0) continue;
      // Tensors are told apart by name only: the argument gives way.
      for (OpDef::ArgDef& arg : *def_.mutable_signature()->mutable_input_arg()) {
        if (arg.name() != node->name()) continue;
        std::unordered_set<std::string> taken = arg_names_;
        for (const Node* other : nodes_) taken.insert(other->name());
        const std::string renamed = FreeName(arg.name() + "_arg", &taken);
        for (auto& [key, name] : args_) {
          if (name == arg.name()) name = renamed;
        }
        arg_names_.insert(renamed);
        arg.set_name(renamed);
      }
    }
    return absl::OkStatus();
  }

  /// A tensor as the nodes of a body name it: "arg" or "node:output:0".
  absl::StatusOr<std::string> NameOf(const Output& tensor) const {
    if (auto arg = args_.find(Key(tensor.node, tensor.index)); arg != args_.end()) {
      return arg->second;
    }
    for (const OpDef::ArgDef& output : tensor.node->op_def().output_arg()) {
      const auto [begin, end] = tensor.node->OutputRange(output.name());
      if (tensor.index < begin || tensor.index >= end) continue;
      return StrCat(tensor.node->name(), ":", output.name(), ":", tensor.index - begin);
    }
    return absl::NotFoundError(StrCat("output ", tensor.index, " of node '", tensor.node->name(),
                                      "' has no name: its op '", tensor.node->op(),
                                      "' is not registered"));
  }

  absl::Status AddNode(const Node& node) {
    NodeDef* def = def_.add_node_def();
    *def = node.def();
    def->clear_input();
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (node.in_data_edge(i) == nullptr) {
        return InvalidArgument("input ", i, " of node '", node.name(),
                               "' was never joined: the loop has no back edge");
      }
      TROUPE_ASSIGN_OR_RETURN(std::string input, NameOf(node.input(i)));
      def->add_input(std::move(input));
    }
    for (const Node* control : node.control_inputs()) {
      if (control->id() < 2 || IsWhollyInput(*control)) continue;
      def->add_input("^" + control->name());
    }
    if (node.stateful()) def_.mutable_signature()->set_is_stateful(true);
    return absl::OkStatus();
  }

  absl::Status AddResults() {
    if (!options_.output_names.empty() && options_.output_names.size() != outputs_.size()) {
      return InvalidArgument("there are ", options_.output_names.size(), " names for ",
                             outputs_.size(), " outputs");
    }
    std::unordered_set<std::string> taken;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Output& output = outputs_[i];
      OpDef::ArgDef* result = def_.mutable_signature()->add_output_arg();
      result->set_type(static_cast<DataType>(output.type()));
      if (options_.output_names.empty()) {
        result->set_name(FreeName(ArgumentName(output.node->name()), &taken));
      } else if (!taken.insert(options_.output_names[i]).second ||
                 options_.output_names[i].empty()) {
        return InvalidArgument("'", options_.output_names[i],
                               "' is no name for an output, or another output's");
      } else {
        result->set_name(options_.output_names[i]);
      }
      TROUPE_ASSIGN_OR_RETURN((*def_.mutable_ret())[result->name()], NameOf(output));
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  absl::Span<const Output> inputs_, outputs_;
  const FunctionDefOptions& options_;
  FunctionDef def_;
  std::unordered_map<uint64_t, std::string> args_;  // by tensor: the argument's name
  std::unordered_set<std::string> arg_names_;
  std::vector<const Node*> nodes_;
};

}  // namespace

absl::StatusOr<FunctionDef> GraphToFunctionDef(const Graph& graph, std::string_view name,
                                               absl::Span<const Output> inputs,
                                               absl::Span<const Output> outputs,
                                               const FunctionDefOptions& options) {
  return FunctionMaker(graph, name, inputs, outputs, options).Run();
}

absl::StatusOr<FunctionDef> GraphToFunctionDef(const Graph& graph, std::string_view name) {
  std::vector<Output> inputs, outputs;
  FunctionDefOptions options;
  auto place = [&](const Node* node, Output tensor, std::vector<Output>* list) {
    const int64_t index = node->attrs().GetOr<int64_t>("index", -1);
    if (index < 0 || index >= graph.num_nodes()) {
      return InvalidArgument("function '", name, "': node '", node->name(), "' has the index ",
                             index);
    }
    if (list->size() <= static_cast<size_t>(index)) list->resize(static_cast<size_t>(index) + 1);
    Output& at = (*list)[static_cast<size_t>(index)];
    if (at.valid()) {
      return InvalidArgument("function '", name, "': two ", node->op(), " nodes have the index ",
                             index);
    }
    at = tensor;
    return absl::OkStatus();
  };
  for (Node* node : graph.nodes()) {
    if (node->id() < 2) continue;
    if (node->op() == "_Arg") {
      TROUPE_RETURN_IF_ERROR(place(node, Output(node), &inputs));
    } else if (node->op() == "_Retval") {
      TROUPE_RETURN_IF_ERROR(place(node, node->input(0), &outputs));
    } else if (node->stateful()) {
      options.control_outputs.push_back(node);
    }
  }
  for (const auto* list : {&inputs, &outputs}) {
    for (size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i].valid()) continue;
      return InvalidArgument("function '", name, "': no ", list == &inputs ? "_Arg" : "_Retval",
                             " has the index ", i);
    }
  }
  return GraphToFunctionDef(graph, name, inputs, outputs, options);
}

}  // namespace troupe
