#include "api/internal/flow_context.h"

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

using ContextPtr = std::shared_ptr<FlowContext>;

/// The innermost loop around, `context` itself included; nullptr: none.
ContextPtr LoopOf(ContextPtr context) {
  while (context != nullptr && context->kind != FlowContext::Kind::kLoop) {
    context = context->parent;
  }
  return context;
}

/// True if code in `context` runs in the frame of `loop` or in one within it.
bool IsIn(const ContextPtr& context, const ContextPtr& loop) {
  return loop == nullptr || loop->Contains(context.get());
}

absl::Status OutOfLoop(const std::string& what, const ContextPtr& loop) {
  return InvalidArgument(what, " belongs to the loop '", loop->frame,
                         "' and cannot be used outside it: let the body return it, use what "
                         "WhileLoop returns, and add nodes of the body by the scope that the body "
                         "is given");
}

/// Adds a node of `context` as the context around it does, so that it is brought in itself.
Scope Around(const Scope& any, const FlowContext& context) {
  return any.WithFlowContext(context.parent).WithPrefix(context.prefix).WithDevice("");
}

bool IsConstantEnter(const Node& node) {
  return (node.op() == "Enter" || node.op() == "RefEnter") &&
         node.attrs().GetOr<bool>("is_constant", false);
}

/// The same value in every iteration of a loop, the constant Enter of `tensor`.
Output EnterConstant(const Scope& any, const ContextPtr& loop, Output tensor) {
  const bool ref = IsRefType(tensor.node->output_type(tensor.index));
  Node* enter = Around(any, *loop).AddNode(ref ? "RefEnter" : "Enter", [&](ScopedSpec& spec) {
    spec.Input(tensor);
    spec.Attr("frame_name", loop->frame);
    spec.Attr("is_constant", true);
    spec.Attr("parallel_iterations", loop->parallel_iterations);
  });
  if (enter != nullptr) any.SetFlowContextOf(enter, loop);
  return Output(enter);
}

Output SwitchInto(const Scope& any, FlowContext* branch, Output tensor) {
  Node*& node = (*branch->switches)[{tensor.node, tensor.index}];
  if (node == nullptr) {
    const bool ref = IsRefType(tensor.node->output_type(tensor.index));
    node = Around(any, *branch).AddNode(ref ? "RefSwitch" : "Switch", [&](ScopedSpec& spec) {
      spec.Input(tensor);
      spec.Input(branch->predicate);
    });
  }
  return node == nullptr ? Output() : Output(node, branch->branch);
}

Node* BringControl(const Scope& any, const ContextPtr& loop, Node* node) {
  const ContextPtr from = LoopOf(any.FlowContextOf(node));
  if (from == loop) return node;
  if (loop == nullptr || !IsIn(loop, from)) {
    any.UpdateStatus(OutOfLoop(StrCat("control input '", node->name(), "'"), from));
    return nullptr;
  }
  Node*& brought = loop->brought_controls[node];
  if (brought != nullptr) return brought;
  Node* outside = BringControl(any, LoopOf(loop->parent), node);
  if (outside == nullptr) return nullptr;
  // Only tensors enter loops: one that is there when the node has run.
  const Scope around = Around(any, *loop).WithOpName("Control");
  const Output token =
      ops::Identity(around.WithControlDependencies(absl::MakeConstSpan(&outside, 1)), true);
  if (!token.valid()) return nullptr;
  brought = EnterConstant(any, loop, token).node;
  return brought;
}

}  // namespace

bool FlowContext::Contains(const FlowContext* inner) const {
  while (inner != nullptr && inner != this) inner = inner->parent.get();
  return inner == this;
}

Output FlowContext::Bring(const Scope& any, const std::shared_ptr<FlowContext>& context,
                          Output tensor) {
  const ContextPtr from = any.FlowContextOf(tensor.node);
  if (from == context) return tensor;
  const ContextPtr loop = LoopOf(from);
  if (!IsIn(context, loop)) {
    any.UpdateStatus(OutOfLoop(StrCat("tensor '", tensor.name(), "'"), loop));
    return Output();
  }
  // What comes out of a branch without having been merged is dead outside if the branch is.
  if (context == nullptr || context->Contains(from.get())) return tensor;
  const std::pair<Node*, int> key(tensor.node, tensor.index);
  if (auto found = context->brought.find(key); found != context->brought.end()) {
    return found->second;
  }
  const Output outside = Bring(any, context->parent, tensor);
  if (!outside.valid()) return Output();
  const Output inside = context->kind == Kind::kBranch ? SwitchInto(any, context.get(), outside)
                                                       : EnterConstant(any, context, outside);
  if (!inside.valid()) return Output();
  context->brought[key] = inside;
  context->brought[{inside.node, inside.index}] = inside;
  return inside;
}

void FlowContext::BringControls(const Scope& scope, absl::Span<const Output> inputs,
                                std::vector<Node*>* controls) {
  const ContextPtr& context = scope.flow_context();
  const ContextPtr loop = LoopOf(context);
  bool gated = false;  // by a node that runs only when the inside does
  for (Node*& control : *controls) {
    if (control == nullptr || control->graph() != scope.graph().get()) return;  // Graph refuses it
    const ContextPtr from = scope.FlowContextOf(control);
    gated = gated || (context != nullptr && context->Contains(from.get()) &&
                      control->id() >= context->body_begin && !IsConstantEnter(*control));
    control = BringControl(scope, loop, control);
    if (control == nullptr) return;
  }
  if (context == nullptr || gated) return;
  for (const Output& input : inputs) {
    if (!input.valid()) continue;
    if (context->kind == Kind::kBranch) return;
    const ContextPtr from = scope.FlowContextOf(input.node);
    const bool every_iteration =
        IsConstantEnter(*input.node) || input.node->id() < context->body_begin;
    if (from != context || !every_iteration) return;
  }
  if (context->pivot != nullptr) controls->push_back(context->pivot);
}

void FlowContext::Adopt(const Scope& scope, int num_nodes, const std::string& prefix) {
  const ContextPtr& context = scope.flow_context();
  if (context == nullptr) return;
  const std::vector<Node*> nodes = scope.graph()->nodes();
  for (size_t id = num_nodes; id < nodes.size(); ++id) {
    Node* node = nodes[id];
    if (node->name().compare(0, prefix.size(), prefix) != 0) continue;
    bool waits = false;  // for something that does not run always
    for (const Edge* edge : node->in_edges()) waits = waits || !IsConstantEnter(*edge->src);
    if (!waits) {
      scope.UpdateStatus(scope.graph()->AddControlEdge(context->pivot, node));
    }
    scope.SetFlowContextOf(node, context);
  }
}

Scope OwnScope(const Scope& scope, std::string_view name) {
  return scope.NewSubScope(scope.op_name().empty() ? name : std::string_view(scope.op_name()));
}

std::string NameOf(const Scope& own) {
  std::string name = own.prefix();
  if (!name.empty()) name.pop_back();
  return name;
}

}  // namespace troupe
