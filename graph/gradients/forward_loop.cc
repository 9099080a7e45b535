#include "graph/gradients/forward_loop.h"

#include "devices/status_macros.h"

namespace troupe::gradients {

Node* AddEnter(GradientBuilder& g, Output value, const LoopAttrs& loop, bool constant) {
  return g.Add("Enter", {value}, [&](NodeSpec& spec) {
    spec.Attr("frame_name", loop.frame)
        .Attr("is_constant", constant)
        .Attr("parallel_iterations", loop.parallel_iterations);
  });
}

Node* AddLoopMerge(GradientBuilder& g, Node* enter, const PartialShape& shape) {
  if (enter == nullptr || !g.status().ok()) return nullptr;
  // The second input is missing until the loop is closed, so that the shape of what enters is not
  // taken for that of what comes back.
  const Output inputs[] = {Output(enter), Output()};
  NodeSpec spec("Merge", g.NewName("Merge"));
  spec.Input(absl::MakeConstSpan(inputs));
  Node* merge = g.Add(std::move(spec));
  if (merge != nullptr) g.Fail(g.graph()->RefineShape(merge, shape));
  return merge;
}

Node* AddSwitch(GradientBuilder& g, Output value, Output pred) {
  return g.Add("Switch", {value, pred});
}

Node* AddSwitch(GradientBuilder& g, Output value, Output pred, const Branch& branch) {
  if (branch.pred.type() == ElementType::kBool) return AddSwitch(g, value, pred);
  return g.Add("_SwitchN", {value, pred},
               [&](NodeSpec& spec) { spec.Attr("num_outs", branch.count); });
}

Node* AddConst(GradientBuilder& g, int32_t value, Node* after) {
  return g.Add("Const", {}, [&](NodeSpec& spec) {
    spec.Attr("dtype", ElementType::kInt32).Attr("value", Tensor::Scalar<int32_t>(value));
    if (after != nullptr) spec.ControlInput(after);
  });
}

void AddBackEdge(GradientBuilder& g, Output value, Node* merge) {
  Node* next = g.Add("NextIteration", {value});
  if (next != nullptr) g.Fail(g.graph()->AddBackEdge(next, merge, 1));
}

absl::Status IterationCounter::Await(Graph* graph, Node* node, bool conditional) {
  if (!conditional) return graph->AddControlEdge(node, step);
  if (sync == nullptr) {
    NodeSpec spec("ControlTrigger", graph->UniqueName(prefix + "/sync"));
    spec.ControlInput(number);
    TROUPE_ASSIGN_OR_RETURN(sync, graph->AddNode(spec));
    TROUPE_RETURN_IF_ERROR(graph->AddControlEdge(sync, step));
  }
  return graph->AddControlEdge(node, sync);
}

absl::StatusOr<Output> ForwardGraph::Gate(Output value, const Path& path) {
  for (const Branch& branch : path) {
    Node*& node = switches_[{value.node, value.index, branch.pred.node, branch.pred.index}];
    if (node == nullptr) {
      GradientBuilder g(graph_, prefix_ + "/forward");
      node = AddSwitch(g, value, branch.pred, branch);
      TROUPE_RETURN_IF_ERROR(g.status());
    }
    value = Output(node, branch.index);
  }
  return value;
}

Path ForwardGraph::PathOfLoop(int id) const {
  return flow_->WithoutCondition(flow_->PathOfFrame(id), flow_->frame(id).parent);
}

absl::StatusOr<Node*> ForwardGraph::Pivot(int id) {
  if (base_ == 0) return nullptr;
  while (flow_->frame(id).parent != base_) id = flow_->frame(id).parent;
  Node*& pivot = pivots_[id];
  if (pivot != nullptr) return pivot;
  for (const Node* enter : flow_->frame(id).enters) {
    if (IsConstantEnter(enter)) continue;
    GradientBuilder g(graph_, prefix_ + "/forward");
    pivot = g.Add("Identity", {enter->input(0)});
    TROUPE_RETURN_IF_ERROR(g.status());
    return pivot;
  }
  return InvalidArgument("loop '", flow_->frame(id).name, "' has no variables");
}

absl::StatusOr<IterationCounter*> ForwardGraph::Counter(int id) {
  auto [found, added] = counters_.try_emplace(id);
  IterationCounter& counter = found->second;
  if (!added) return &counter;
  const LoopFrame& frame = flow_->frame(id);
  if (frame.loop_cond == nullptr) {
    return InvalidArgument("loop '", frame.name, "' has no LoopCond: it cannot be differentiated");
  }
  // In a loop the start must run once for each of the outer iterations, in their order.
  IterationCounter* outer = nullptr;
  TROUPE_ASSIGN_OR_RETURN(Node * after, Pivot(id));
  if (frame.parent != base_) {
    TROUPE_ASSIGN_OR_RETURN(outer, Counter(frame.parent));
    after = outer->number;
  }
  const Path path = PathOfLoop(id);
  counter.prefix = StrCat(prefix_, "/", frame.name, "_count");
  GradientBuilder g(graph_, counter.prefix);
  Output start = AddConst(g, 0, after);
  TROUPE_RETURN_IF_ERROR(g.status());
  TROUPE_ASSIGN_OR_RETURN(start, Gate(start, path));
  Node* enter = AddEnter(g, start, {frame.name, frame.parallel_iterations}, false);
  counter.merge = AddLoopMerge(g, enter, start.shape());
  counter.loop_switch = AddSwitch(g, counter.merge, frame.loop_cond);
  counter.number = g.Add("Identity", {Output(counter.loop_switch, 1)});
  TROUPE_RETURN_IF_ERROR(g.status());
  counter.step = g.Add("AddV2", {counter.number, AddConst(g, 1, counter.number)});
  AddBackEdge(g, counter.step, counter.merge);
  counter.exit = g.Add("Exit", {Output(counter.loop_switch, 0)});
  TROUPE_RETURN_IF_ERROR(g.status());
  if (outer != nullptr) {
    TROUPE_RETURN_IF_ERROR(outer->Await(graph_, counter.exit, !path.empty()));
  }
  return &counter;
}

absl::StatusOr<Output> ForwardGraph::Bring(Output tensor, int id) {
  if (id == base_) return tensor;
  Output& brought = brought_[{tensor.node, tensor.index, id}];
  if (brought.valid()) return brought;
  const LoopFrame& frame = flow_->frame(id);
  TROUPE_ASSIGN_OR_RETURN(Output outer, Bring(tensor, frame.parent));
  TROUPE_ASSIGN_OR_RETURN(outer, Gate(outer, PathOfLoop(id)));
  GradientBuilder g(graph_, prefix_ + "/forward");
  brought = AddEnter(g, outer, {frame.name, frame.parallel_iterations}, true);
  TROUPE_RETURN_IF_ERROR(g.status());
  return brought;
}

absl::StatusOr<Node*> ForwardGraph::ExitOf(int id, const LoopVariable& variable) {
  if (variable.exit != nullptr) return variable.exit;
  Node*& exit = exits_[variable.loop_switch];
  if (exit == nullptr) {
    GradientBuilder g(graph_, StrCat(prefix_, "/", flow_->frame(id).name, "_exit"));
    exit = g.Add("Exit", {Output(variable.loop_switch, 0)});
    TROUPE_RETURN_IF_ERROR(g.status());
  }
  return exit;
}

}  // namespace troupe::gradients
