// How values of a forward loop are saved for the backward one: on a stack, or in a list that keeps
// only the last ones; and what follows from an iteration's number need not be.
#include <vector>

#include "devices/status_macros.h"
#include "graph/gradients/back_frame.h"
#include "graph/gradients/gradient_ops.h"
#include "graph/ops/shape_helpers.h"

namespace troupe::gradients {

absl::StatusOr<Output> BackFrame::Save(Output x) {
  const Path path = state_->PathOf(x);
  if (!state_->InBody(x)) {
    // Computed once more than the body runs: by the iteration that ends the loop.
    const Output condition(state_->flow.frame(frame_).loop_cond);
    TROUPE_ASSIGN_OR_RETURN(x, state_->forward->Gate(x, {Branch{condition, 1, 2}}));
  }
  return state_->max_back_iterations > 0 ? SaveInList(x, path) : SaveOnStack(x, path);
}

absl::StatusOr<Output> BackFrame::SaveOnStack(Output x, const Path& path) {
  Graph* graph = state_->graph;
  GradientBuilder g(graph, StrCat(state_->prefix, "/", x.node->name(), "_saved"));
  TROUPE_ASSIGN_OR_RETURN(Node * after, state_->forward->Pivot(frame_));
  // One stack, without a limit, serves all runs of a nested loop: the last values pushed are the
  // first needed.
  const Output stack = g.Op("StackV2", {AddConst(g, -1, after)}, [&](NodeSpec& spec) {
    spec.Attr("elem_type", x.type()).Attr("stack_name", x.node->name());
  });
  TROUPE_RETURN_IF_ERROR(g.status());
  TROUPE_ASSIGN_OR_RETURN(IterationCounter * counter, state_->forward->Counter(frame_));
  TROUPE_ASSIGN_OR_RETURN(Output forward_stack, state_->forward->Bring(stack, frame_));
  Node* push = g.Add("StackPushV2", {forward_stack, x},
                     [&](NodeSpec& spec) { spec.ControlInput(counter->number); });
  TROUPE_RETURN_IF_ERROR(g.status());
  state_->homes[push] = {nullptr, frame_, path};
  TROUPE_RETURN_IF_ERROR(counter->Await(graph, push, !path.empty()));

  TROUPE_ASSIGN_OR_RETURN(Output handle, Value(stack));
  TROUPE_ASSIGN_OR_RETURN(handle, Gate(handle, path));
  GradientBuilder b = Builder("saved");
  Node* pop = b.Add("StackPopV2", {handle}, [&](NodeSpec& spec) {
    spec.Attr("elem_type", x.type()).ControlInput(counter_.number);
  });
  TROUPE_RETURN_IF_ERROR(b.status());
  TROUPE_RETURN_IF_ERROR(counter_.Await(graph, pop, !path.empty()));
  return Output(pop);
}

absl::StatusOr<Output> BackFrame::ForwardNumber() {
  if (number_.valid()) return number_;
  GradientBuilder g = Builder("number");
  if (state_->max_back_iterations == 0) {
    number_ = g.Op("Sub", {counter_.number, g.Scalar<int32_t>(1)});
    TROUPE_RETURN_IF_ERROR(g.status());
    return number_;
  }
  // The forward iterations that are gone back through are numbered count - steps to count - 1.
  GradientBuilder outer(state_->graph, counter_.prefix, parent_->place());
  const Output offset =
      outer.Op("Sub", {outer.Op("Sub", {count_, steps_}), outer.Scalar<int32_t>(1)});
  number_ = g.Op("AddV2", {counter_.number, offset});
  TROUPE_RETURN_IF_ERROR(outer.status());
  TROUPE_RETURN_IF_ERROR(g.status());
  return number_;
}

absl::StatusOr<Output> BackFrame::CountedValue(Output x) {
  const LoopVariable* variable = state_->flow.VariableOf(x.node);
  if (variable == nullptr || variable->enter == nullptr || variable->next == nullptr ||
      x != Output(variable->loop_switch, 1) ||
      (x.type() != ElementType::kInt32 && x.type() != ElementType::kInt64) ||
      x.shape().rank() != 0) {
    return Output();
  }
  const Output next = state_->flow.Origin(variable->next->input(0));
  if (next.node->op() != "Add" && next.node->op() != "AddV2") return Output();
  for (int i = 0; i < 2; ++i) {
    if (state_->flow.Origin(next.node->input(i)) != x) continue;
    const Output added = next.node->input(1 - i);
    const Tensor step = state_->graph->ConstantValue(added);
    if (!step.valid() || step.rank() != 0) return Output();
    const Output start = variable->enter->input(0);
    const Tensor known = state_->graph->ConstantValue(start);
    const bool from_zero = known.valid() && known.rank() == 0 && IntegerValues(known)[0] == 0;
    TROUPE_ASSIGN_OR_RETURN(Output value, ForwardNumber());
    GradientBuilder g = Builder("counted");
    value = Cast(g, value, x.type());
    if (IntegerValues(step)[0] != 1) value = g.Op("Mul", {value, g.Const(step)});
    if (!from_zero) value = g.Op("AddV2", {value, start});
    TROUPE_RETURN_IF_ERROR(g.status());
    return value;
  }
  return Output();
}

absl::StatusOr<Output> BackFrame::ListIndex() {
  if (list_index_.valid()) return list_index_;
  TROUPE_ASSIGN_OR_RETURN(const Output number, ForwardNumber());
  GradientBuilder g = Builder("index");
  list_index_ = g.Op("FloorMod", {number, g.Scalar(state_->max_back_iterations)});
  TROUPE_RETURN_IF_ERROR(g.status());
  return list_index_;
}

absl::StatusOr<Output> BackFrame::SaveInList(Output x, const Path& path) {
  Graph* graph = state_->graph;
  const LoopFrame& loop = state_->flow.frame(frame_);
  TROUPE_ASSIGN_OR_RETURN(IterationCounter * counter, state_->forward->Counter(frame_));
  const int32_t length = state_->max_back_iterations;
  GradientBuilder g(graph, StrCat(state_->prefix, "/", x.node->name(), "_saved"));
  TROUPE_ASSIGN_OR_RETURN(Node * after, state_->forward->Pivot(frame_));
  if (after == nullptr && loop.parent != state_->base_frame) {
    TROUPE_ASSIGN_OR_RETURN(IterationCounter * outer, state_->forward->Counter(loop.parent));
    after = outer->number;
  }
  Output list = g.Op("TensorListReserve", {AddConst(g, -1, after), AddConst(g, length, after)},
                     [&](NodeSpec& spec) {
                       spec.Attr("element_dtype", x.type()).Attr("shape_type", ElementType::kInt32);
                     });
  TROUPE_RETURN_IF_ERROR(g.status());
  TROUPE_ASSIGN_OR_RETURN(list, state_->forward->Gate(list, state_->forward->PathOfLoop(frame_)));
  Node* enter = AddEnter(g, list, {loop.name, loop.parallel_iterations}, false);
  Node* merge = AddLoopMerge(g, enter, PartialShape(Shape()));
  Node* loop_switch = AddSwitch(g, merge, loop.loop_cond);
  TROUPE_RETURN_IF_ERROR(g.status());
  if (!forward_list_index_.valid()) {
    forward_list_index_ = g.Op("FloorMod", {counter->number, AddConst(g, length, counter->number)});
  }
  // In a branch that is not taken the list stays as it is.
  std::vector<Output> otherwise;
  Output kept(loop_switch, 1);
  for (const Branch& branch : path) {
    TROUPE_ASSIGN_OR_RETURN(Output inner, state_->forward->Gate(kept, {branch}));
    for (int i = 0; i < branch.count; ++i) {
      if (i != branch.index) otherwise.push_back(Output(inner.node, i));
    }
    kept = inner;
  }
  kept = g.Op("TensorListSetItem", {kept, forward_list_index_, x});
  for (size_t i = path.size(); i-- > 0;) {
    std::vector<Output> branches = {kept};
    for (int k = 1; k < path[i].count; ++k) {
      branches.push_back(otherwise.back());
      otherwise.pop_back();
    }
    kept = OfLists(g, "Merge", {branches});
  }
  AddBackEdge(g, kept, merge);
  Node* exit = g.Add("Exit", {Output(loop_switch, 0)});
  TROUPE_RETURN_IF_ERROR(g.status());
  state_->homes[exit] = {nullptr, loop.parent, state_->forward->PathOfLoop(frame_)};

  TROUPE_ASSIGN_OR_RETURN(Output outer, parent_->Value(exit));
  TROUPE_ASSIGN_OR_RETURN(Output saved, Bring(outer));
  TROUPE_ASSIGN_OR_RETURN(saved, Gate(saved, path));
  TROUPE_ASSIGN_OR_RETURN(Output index, ListIndex());
  GradientBuilder b = Builder("saved");
  const Output value = b.Op("TensorListGetItem", {saved, index, b.Scalar<int32_t>(-1)},
                            [&](NodeSpec& spec) { spec.Attr("element_dtype", x.type()); });
  TROUPE_RETURN_IF_ERROR(b.status());
  return value;
}

}  // namespace troupe::gradients
