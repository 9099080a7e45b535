#include "graph/gradients/lower_calls.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/function_library.h"
#include "graph/gradients/add_gradients.h"
#include "graph/gradients/gradient_registry.h"
#include "graph/graph_def.h"
#include "graph/passes/inline_functions.h"
#include "graph/passes/lower_functions.h"
#include "graph/protos/graph.pb.h"

namespace troupe::gradients {
namespace {

constexpr std::string_view kSymbolicGradient = "SymbolicGradient";

Node* Resolve(Node* node) {
  while (node->replacement() != nullptr) node = node->replacement();
  return node;
}

/// Finds the nodes to lower and lowers them.
class CallLowering {
 public:
  CallLowering(Graph* graph, const std::vector<Output>& ys, const std::vector<Output>& xs)
      : graph_(graph), library_(graph->library(), *graph->ops()), ys_(ys), xs_(xs) {}

  absl::Status Run() {
    while (true) {
      const std::vector<Node*> calls = Find();
      if (calls.empty()) return absl::OkStatus();
      for (Node* call : calls) {
        TROUPE_RETURN_IF_ERROR(
            WithContext(StrCat("cannot differentiate through node '", call->name(), "' (op ",
                               call->op(), "): "),
                        call->op() == kSymbolicGradient ? LowerGradient(call) : Lower(call)));
      }
    }
  }

 private:
  bool IsCall(const Node* node) const {
    return IsFunctionalOp(node->op()) || node->op() == kSymbolicGradient ||
           library_.Find(node->op()) != nullptr;
  }

  /// Calls between xs and ys that are not replaced yet and have no gradient function of their own.
  std::vector<Node*> Find() const {
    const std::vector<Node*> nodes = graph_->nodes();
    bool any = false;
    std::unordered_map<const Node*, std::vector<Node*>> replaced;
    for (Node* node : nodes) {
      if (node->replacement() != nullptr) {
        replaced[Resolve(node)].push_back(node);
      } else {
        any |= IsCall(node);
      }
    }
    std::vector<Node*> calls;
    if (!any) return calls;
    std::vector<char> seen(nodes.size(), 0);
    std::vector<Node*> stack;
    auto visit = [&](Node* node, char from, char to) {
      if (seen[node->id()] != from || node->replacement() != nullptr) return;
      seen[node->id()] = to;
      stack.push_back(node);
    };
    for (const Output& x : xs_) visit(Resolve(x.node), 0, 1);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      std::vector<Node*> sources = {node};
      if (auto found = replaced.find(node); found != replaced.end()) {
        sources.insert(sources.end(), found->second.begin(), found->second.end());
      }
      for (const Node* source : sources) {
        for (const Edge* edge : source->out_edges()) {
          if (edge->control() || !IsDifferentiable(node->output_type(edge->src_output))) continue;
          visit(edge->dst, 0, 1);
        }
      }
    }
    for (const Output& y : ys_) visit(Resolve(y.node), 1, 2);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (IsCall(node) && !HasOwnGradient(node)) calls.push_back(node);
      for (int i = 0; i < node->num_inputs(); ++i) {
        if (const Edge* edge = node->in_data_edge(i)) visit(Resolve(edge->src), 1, 2);
      }
    }
    return calls;
  }

  bool HasOwnGradient(const Node* node) const {
    return node->op() != kSymbolicGradient && !GradientFunctionOf(node).empty();
  }

  /// What nodes brought in must wait for so as to run where `call` does.
  absl::StatusOr<Node*> Pivot(Node* call) {
    if (call->num_inputs() == 0) return nullptr;
    NodeSpec spec("Identity", graph_->UniqueName(call->name() + "/lowered_pivot"));
    spec.Input(call->input(0));
    return graph_->AddNode(spec);
  }

  /// Imports the nodes that `call`, changed to `def`, stands for. `def` has no inputs yet.
  absl::StatusOr<Node*> Import(Node* call, NodeDef def, int num_inputs) {
    GraphDef graph_def;
    graph_def.mutable_versions()->set_producer(graph_->producer());
    ImportOptions options;
    std::unordered_set<std::string> placeholders;
    auto placeholder = [&](const std::string& name, const char* op) {
      NodeDef* node = graph_def.add_node();
      node->set_name(name);
      node->set_op(op);
      placeholders.insert(name);
      return node;
    };
    const std::string name = graph_->UniqueName(call->name() + "/lowered");
    def.set_name(name);
    for (int i = 0; i < num_inputs; ++i) {
      const std::string input = StrCat(name, "_input_", i);
      NodeDef* node = placeholder(input, "Placeholder");
      if (call->op() == "RemoteCall" && i == 0) {
        // Where the body goes must be known.
        if (call->input(0).node->op() != "Const") {
          return InvalidArgument("RemoteCall '", call->name(), "' cannot be differentiated: its ",
                                 "target is no constant");
        }
        *node = call->input(0).node->def();
        node->set_name(input);
        node->clear_input();
        options.input_map["^" + input] = call->input(0);
      } else {
        (*node->mutable_attr())["dtype"].set_type(
            static_cast<DataType>(RemoveRef(call->input_type(i))));
      }
      def.add_input(input);
      options.input_map[input + ":0"] = call->input(i);
    }
    std::vector<Node*> controls = call->control_inputs();
    TROUPE_ASSIGN_OR_RETURN(Node * pivot, Pivot(call));
    if (pivot != nullptr) controls.push_back(pivot);
    for (size_t i = 0; i < controls.size(); ++i) {
      const std::string control = StrCat(name, "_control_", i);
      placeholder(control, "NoOp");
      def.add_input("^" + control);
      options.input_map["^" + control] = Output(controls[i]);
    }
    *graph_def.add_node() = std::move(def);
    *graph_def.mutable_library() =
        library_.Reachable(graph_def.node(), FunctionLibrary::Everything, kMaxBodyNesting);
    TROUPE_ASSIGN_OR_RETURN(
        GraphDef lowered,
        LowerFunctionalOps(graph_def, *graph_->ops(), [](const NodeDef&) { return true; }));
    GraphDef body;
    *body.mutable_versions() = lowered.versions();
    for (NodeDef& node : *lowered.mutable_node()) {
      if (!placeholders.contains(node.name())) *body.add_node() = std::move(node);
    }
    TROUPE_RETURN_IF_ERROR(ImportGraphDef(body, options, graph_));
    Node* twin = graph_->FindNode(name);
    if (twin == nullptr) return absl::InternalError(StrCat("lowering gave no node '", name, "'"));
    // It would be found, and lowered, for ever.
    if (IsCall(twin)) {
      return InvalidArgument("'", call->name(), "' cannot be differentiated: nothing can take the ",
                             "place of ", call->op(), ", whose target may be no scalar");
    }
    return twin;
  }

  static void SetTypes(NodeDef* def, const char* attr, const Node* node, bool inputs, int begin,
                       int end) {
    auto* list = (*def->mutable_attr())[attr].mutable_list();
    list->Clear();
    for (int i = begin; i < end; ++i) {
      const ElementType type = inputs ? node->input_type(i) : node->output_type(i);
      list->add_type(static_cast<DataType>(RemoveRef(type)));
    }
  }

  absl::Status Lower(Node* call) {
    NodeDef def = call->def();
    def.clear_input();
    if (library_.Find(call->op()) != nullptr) {
      // A direct call is a PartitionedCall.
      NodeDef direct;
      direct.set_op("PartitionedCall");
      direct.set_device(def.device());
      auto* function = (*direct.mutable_attr())["f"].mutable_func();
      function->set_name(call->op());
      *function->mutable_attr() = def.attr();
      SetTypes(&direct, "Tin", call, true, 0, call->num_inputs());
      SetTypes(&direct, "Tout", call, false, 0, call->num_outputs());
      def = std::move(direct);
    }
    TROUPE_ASSIGN_OR_RETURN(Node * twin, Import(call, std::move(def), call->num_inputs()));
    return ReplaceBy(call, twin);
  }

  absl::Status ReplaceBy(Node* call, Node* twin) {
    for (int i = 0; i < call->num_outputs(); ++i) {
      // What was known of the call is known of what it has become.
      graph_->RefineShape(Output(twin, i), call->output_shape(i)).IgnoreError();
    }
    return graph_->Replace(call, twin);
  }

  /// The gradient of a function by its arguments: the function is brought in and differentiated.
  absl::Status LowerGradient(Node* call) {
    const NameAttrList* function = nullptr;
    TROUPE_RETURN_IF_ERROR(call->attrs().Get("f", &function));
    const int num_inputs = call->num_outputs();
    TROUPE_RETURN_IF_ERROR(library_.Get(function->name()).status());
    NodeDef def;
    def.set_op("PartitionedCall");
    *(*def.mutable_attr())["f"].mutable_func() = *function;
    SetTypes(&def, "Tin", call, true, 0, num_inputs);
    SetTypes(&def, "Tout", call, true, num_inputs, call->num_inputs());
    TROUPE_ASSIGN_OR_RETURN(Node * primal, Import(call, std::move(def), num_inputs));
    std::vector<Output> ys, xs, grad_ys, grads;
    for (int i = 0; i < num_inputs; ++i) xs.push_back(call->input(i));
    for (int i = num_inputs; i < call->num_inputs(); ++i) {
      const Output y(primal, i - num_inputs);
      if (!IsDifferentiable(y.type())) continue;
      ys.push_back(y);
      grad_ys.push_back(call->input(i));
    }
    TROUPE_RETURN_IF_ERROR(
        AddSymbolicGradients(ys, xs, grad_ys, &grads, call->name() + "/lowered_grad"));
    GradientBuilder g(graph_, call->name() + "/lowered");
    for (int i = 0; i < num_inputs; ++i) {
      if (!grads[i].valid()) grads[i] = g.ZerosLike(xs[i]);
    }
    TROUPE_RETURN_IF_ERROR(g.status());
    NodeSpec spec("IdentityN", g.NewName("grads"));
    spec.Input(absl::MakeConstSpan(grads));
    Node* twin = g.Add(std::move(spec));
    TROUPE_RETURN_IF_ERROR(g.status());
    return ReplaceBy(call, twin);
  }

  Graph* graph_;
  const FunctionLibrary library_;
  const std::vector<Output>& ys_;
  const std::vector<Output>& xs_;
};

}  // namespace

std::string GradientFunctionOf(const Node* node) {
  const auto& library = node->graph()->library();
  if (library.gradient_size() == 0) return "";
  std::string name = node->op();
  const NameAttrList* function = nullptr;
  if (IsFunctionalOp(node->op()) && node->attrs().Get("f", &function).ok()) {
    name = function->name();
  }
  for (const GradientDef& gradient : library.gradient()) {
    if (gradient.function_name() == name) return gradient.gradient_func();
  }
  return "";
}

void CallGradient(GradientContext& g) {
  // The gradient function takes the arguments and the gradients of the results.
  const Node* node = g.node();
  std::vector<Output> inputs;
  std::vector<ElementType> in_types, out_types;
  for (int i = 0; i < node->num_inputs(); ++i) inputs.push_back(g.Value(g.input(i)));
  for (int i = 0; i < node->num_outputs(); ++i) inputs.push_back(g.GradOrZeros(i));
  if (!g.status().ok()) return;
  for (const Output& input : inputs) in_types.push_back(input.type());
  for (int i = 0; i < node->num_inputs(); ++i) out_types.push_back(g.input(i).type());
  AttrValue function;
  function.mutable_func()->set_name(GradientFunctionOf(node));
  const NameAttrList* original = nullptr;
  if (node->attrs().Get("f", &original).ok()) {
    *function.mutable_func()->mutable_attr() = original->attr();
  }
  NodeSpec spec("StatefulPartitionedCall", g.NewName("call"));
  spec.Input(absl::MakeConstSpan(inputs))
      .Attr("Tin", absl::MakeConstSpan(in_types))
      .Attr("Tout", absl::MakeConstSpan(out_types))
      .Attr("f", function);
  Node* call = g.Add(std::move(spec));
  if (!g.status().ok()) return;
  for (int i = 0; i < node->num_inputs(); ++i) {
    if (g.wanted(i)) g.set(i, Output(call, i));
  }
}

absl::Status LowerCallsBetween(Graph* graph, const std::vector<Output>& ys,
                               const std::vector<Output>& xs) {
  return CallLowering(graph, ys, xs).Run();
}

}  // namespace troupe::gradients
