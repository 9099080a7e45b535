// The gradient of a loop is a loop. It has a variable for the gradient of each variable of the
// forward loop, and one for the sum of what each invariant gets from every iteration.
#include <algorithm>

#include "devices/status_macros.h"
#include "graph/gradients/aggregate.h"
#include "graph/gradients/differentiation.h"

namespace troupe::gradients {
namespace {

/// The type of the gradient of a forward tensor: of a resource handle's, that of the variable.
ElementType GradientType(Output tensor) {
  if (tensor.type() != ElementType::kResource) return tensor.type();
  const HandleShapes& handle = tensor.node->output_handle(tensor.index);
  return handle.empty() ? ElementType::kFloat : handle[0].first;
}

/// Shapes that a gradient of this forward tensor has.
PartialShape GradientShape(Output tensor) {
  if (tensor.type() == ElementType::kVariant) return PartialShape();
  if (tensor.type() != ElementType::kResource) return tensor.shape();
  const HandleShapes& handle = tensor.node->output_handle(tensor.index);
  return handle.empty() ? PartialShape() : handle[0].second;
}

}  // namespace

/// The gradient of a loop variable, in the backward loop.
struct Differentiation::BackVariable {
  const LoopVariable* forward = nullptr;
  Gradient start;  ///< In the outer frame: of the variable's last value. May be invalid.
  Node* merge = nullptr;
  Node* loop_switch = nullptr;
};

absl::Status Differentiation::DifferentiateLoop(int frame, BackFrame* outer) {
  const LoopFrame& loop = state_->flow.frame(frame);
  Level& level = levels_[frame];
  // What leaves the loop comes first: everything else depends on it.
  bool has_gradient = false, only_exits = true;
  for (const int at : level.visits) {
    Visit& visit = visits_[at];
    // Gradients of what was saved for another loop come without an Exit.
    if (gradient_stacks_.contains(visit.node)) has_gradient = true;
    if (!IsExit(visit.node)) {
      only_exits = false;
      continue;
    }
    TROUPE_RETURN_IF_ERROR(SumReceived(visit, outer));
    has_gradient |= visit.grads[0].valid();
    ++level.num_done;
    for (Node* node : SourcesOf(visit.node)) {
      if (const Visit* source = Find(node)) Release(UnitAt(frame, source), frame);
    }
  }
  for (const auto& [push, stack] : gradient_stacks_) {
    const int at = state_->flow.LoopOf(push);
    has_gradient |= at != frame && state_->flow.CommonFrame(at, frame) == frame;
  }
  if (!has_gradient || only_exits) return absl::OkStatus();
  if (loop.loop_cond == nullptr) {
    return InvalidArgument("loop '", loop.name, "' has no LoopCond: it cannot be differentiated");
  }
  BackFrame* inner =
      back_frames_.emplace_back(std::make_unique<BackFrame>(state_.get(), outer, frame)).get();
  TROUPE_RETURN_IF_ERROR(inner->Open());
  for (const int other : level.after) {
    if (levels_[other].back == nullptr) continue;
    TROUPE_ASSIGN_OR_RETURN(Node * done, levels_[other].back->Done());
    TROUPE_RETURN_IF_ERROR(inner->StartAfter(done));
  }
  std::vector<BackVariable> variables;
  TROUPE_RETURN_IF_ERROR(OpenVariables(frame, outer, inner, &variables));
  for (const int at : level.visits) {
    const Visit& visit = visits_[at];
    if (visit.pending == 0 && !IsExit(visit.node)) level.ready.push_back({at, -1});
  }
  for (int child = 1; child < state_->flow.num_frames(); ++child) {
    if (state_->flow.frame(child).parent == frame && levels_[child].between &&
        levels_[child].pending == 0) {
      level.ready.push_back({-1, child});
    }
  }
  // Units that became ready when the Exits were dealt with are listed twice.
  std::deque<Unit> once;
  for (const Unit& unit : level.ready) {
    const bool seen = std::any_of(once.begin(), once.end(), [&](const Unit& other) {
      return other.visit == unit.visit && other.frame == unit.frame;
    });
    if (!seen) once.push_back(unit);
  }
  level.ready = std::move(once);
  TROUPE_RETURN_IF_ERROR(ProcessLevel(frame, inner));
  return CloseVariables(frame, outer, inner, variables);
}

absl::StatusOr<Differentiation::BackVariable> Differentiation::OpenVariable(
    Output start, const PartialShape& shape, BackFrame* outer, BackFrame* inner) {
  GradientBuilder g(graph_, inner->attrs().frame, outer->place());
  Node* enter = AddEnter(g, start, inner->attrs(), false);
  TROUPE_RETURN_IF_ERROR(g.status());
  state_->homes[enter] = {inner, 0, {}};
  GradientBuilder b(graph_, inner->attrs().frame, inner);
  BackVariable variable;
  variable.merge = AddLoopMerge(b, enter, shape);
  variable.loop_switch = AddSwitch(b, variable.merge, inner->condition());
  TROUPE_RETURN_IF_ERROR(b.status());
  return variable;
}

absl::StatusOr<Output> Differentiation::CloseVariable(const BackVariable& variable, Output next,
                                                      BackFrame* outer, BackFrame* inner) {
  GradientBuilder b(graph_, inner->attrs().frame, inner);
  AddBackEdge(b, next, variable.merge);
  Node* exit = b.Add("Exit", {Output(variable.loop_switch, 0)});
  TROUPE_RETURN_IF_ERROR(b.status());
  state_->homes[exit] = {outer, 0, {}};
  if (outer->parent() == nullptr) state_->homes[exit] = {nullptr, state_->base_frame, {}};
  return Output(exit);
}

absl::Status Differentiation::OpenVariables(int frame, BackFrame* outer, BackFrame* inner,
                                            std::vector<BackVariable>* variables) {
  const LoopFrame& loop = state_->flow.frame(frame);
  const Path path = state_->forward->PathOfLoop(frame);
  for (const LoopVariable& variable : loop.variables) {
    if (Find(variable.merge) == nullptr) continue;
    if (variable.enter == nullptr || variable.loop_switch == nullptr || variable.next == nullptr) {
      return InvalidArgument("loop '", loop.name, "': variable '", variable.merge->name(),
                             "' lacks its Enter, Switch or NextIteration node");
    }
    const Visit* last = variable.exit == nullptr ? nullptr : Find(variable.exit);
    const Gradient given = last == nullptr ? Gradient() : last->grads[0];
    if (variable.invariant) {
      variables->push_back({.forward = &variable, .start = given});
      continue;
    }
    GradientBuilder g(graph_, inner->attrs().frame, outer->place());
    Output start = g.Dense(given);
    TROUPE_RETURN_IF_ERROR(g.status());
    if (!start.valid()) {
      TROUPE_ASSIGN_OR_RETURN(Node * exit, state_->forward->ExitOf(frame, variable));
      if (exit->id() >= state_->num_analysed) state_->homes[exit] = {nullptr, loop.parent, path};
      const Output merge(variable.merge);
      Output like(exit);
      if (merge.shape().fully_known() && !like.shape().fully_known() &&
          merge.type() != ElementType::kResource) {
        TROUPE_RETURN_IF_ERROR(graph_->RefineShape(like, merge.shape()));
      }
      TROUPE_ASSIGN_OR_RETURN(start, ZerosFor(like, GradientType(merge), path, outer));
    }
    TROUPE_ASSIGN_OR_RETURN(
        BackVariable back,
        OpenVariable(start, GradientShape(Output(variable.merge)), outer, inner));
    back.forward = &variable;
    if (Visit* next = Find(variable.next)) {
      next->received.emplace_back(0, Gradient(Output(back.loop_switch, 1)));
    }
    variables->push_back(back);
  }
  return absl::OkStatus();
}

absl::Status Differentiation::CloseVariables(int frame, BackFrame* outer, BackFrame* inner,
                                             const std::vector<BackVariable>& variables) {
  const Path path = state_->forward->PathOfLoop(frame);
  for (const BackVariable& variable : variables) {
    const Visit* merge = Find(variable.forward->merge);
    const Gradient sum = merge->grads.empty() ? Gradient() : merge->grads[0];
    const Output entered = InputOf(variable.forward->enter, 0);
    if (variable.forward->invariant) {
      TROUPE_RETURN_IF_ERROR(CloseInvariant(entered, sum, variable.start, frame, outer, inner));
      continue;
    }
    GradientBuilder b(graph_, inner->attrs().frame, inner);
    Output next = b.Dense(sum);
    TROUPE_RETURN_IF_ERROR(b.status());
    if (!next.valid()) {
      const Output merged(variable.forward->merge);
      TROUPE_ASSIGN_OR_RETURN(next, ZerosFor(Output(variable.forward->loop_switch, 1),
                                             GradientType(merged), {}, inner));
    }
    TROUPE_ASSIGN_OR_RETURN(Output grad, CloseVariable(variable, next, outer, inner));
    if (Find(entered.node) == nullptr) continue;
    if (inner->truncated().valid()) {
      // What the loop began with is further back than gradients go.
      GradientBuilder g(graph_, inner->attrs().frame, outer->place());
      TROUPE_ASSIGN_OR_RETURN(Output zeros, ZerosFor(entered, grad.type(), path, outer));
      grad = g.Op("SelectV2", {inner->truncated(), zeros, grad});
      TROUPE_RETURN_IF_ERROR(g.status());
    }
    if (entered.type() != ElementType::kResource && entered.type() != ElementType::kVariant) {
      TROUPE_RETURN_IF_ERROR(graph_->RefineShape(grad, entered.shape()));
    }
    TROUPE_RETURN_IF_ERROR(Send(entered, Gradient(grad), path, outer));
  }
  for (Node* enter : state_->flow.frame(frame).enters) {
    const Visit* visit = IsConstantEnter(enter) ? Find(enter) : nullptr;
    if (visit == nullptr || visit->grads.empty()) continue;
    TROUPE_RETURN_IF_ERROR(
        CloseInvariant(InputOf(enter, 0), visit->grads[0], Gradient(), frame, outer, inner));
  }
  return absl::OkStatus();
}

absl::Status Differentiation::CloseInvariant(Output outer_value, const Gradient& contribution,
                                             Gradient start, int frame, BackFrame* outer,
                                             BackFrame* inner) {
  if (Find(outer_value.node) == nullptr) return absl::OkStatus();
  const Path path = state_->forward->PathOfLoop(frame);
  if (!contribution.valid()) {
    if (!start.valid()) return absl::OkStatus();
    return Send(outer_value, start, path, outer);
  }
  if (contribution.sparse()) {
    TROUPE_ASSIGN_OR_RETURN(Gradient total,
                            AccumulateSparse(outer_value, contribution, frame, outer, inner));
    if (total.valid()) {
      TROUPE_RETURN_IF_ERROR(Send(outer_value, total, path, outer));
      return start.valid() ? Send(outer_value, start, path, outer) : absl::OkStatus();
    }
  }
  GradientBuilder b(graph_, inner->attrs().frame, inner);
  GradientBuilder g(graph_, inner->attrs().frame, outer->place());
  const Output dense = b.Dense(contribution), first = g.Dense(start);
  TROUPE_RETURN_IF_ERROR(b.status());
  TROUPE_RETURN_IF_ERROR(g.status());
  TROUPE_ASSIGN_OR_RETURN(const Output total,
                          AccumulateDense(outer_value, dense, first, frame, outer, inner));
  return Send(outer_value, Gradient(total), path, outer);
}

absl::StatusOr<Output> Differentiation::AccumulateDense(Output outer_value, Output contribution,
                                                        Output start, int frame, BackFrame* outer,
                                                        BackFrame* inner) {
  const Path path = state_->forward->PathOfLoop(frame);
  const ElementType type = contribution.type();
  const bool variant = type == ElementType::kVariant;
  if (!start.valid()) {
    TROUPE_ASSIGN_OR_RETURN(start, ZerosFor(outer_value, type, path, outer));
  }
  TROUPE_ASSIGN_OR_RETURN(const BackVariable variable,
                          OpenVariable(start, GradientShape(outer_value), outer, inner));
  GradientBuilder b(graph_, inner->attrs().frame, inner);
  const Output before(variable.loop_switch, 1);
  const Output sum = variant ? SumGradients(b, {Gradient(before), Gradient(contribution)}).values
                             : b.Op("AddV2", {before, contribution});
  TROUPE_RETURN_IF_ERROR(b.status());
  return CloseVariable(variable, sum, outer, inner);
}

absl::StatusOr<Gradient> Differentiation::AccumulateSparse(Output outer_value,
                                                           const Gradient& contribution, int frame,
                                                           BackFrame* outer, BackFrame* inner) {
  const PartialShape shape = GradientShape(outer_value);
  if (shape.unknown_rank() || shape.rank() < 1) return Gradient();
  std::vector<int64_t> row;
  for (int d = 1; d < shape.rank(); ++d) {
    if (shape.dim(d) < 0) return Gradient();
    row.push_back(shape.dim(d));
  }
  TROUPE_ASSIGN_OR_RETURN(
      const Output values,
      AccumulateRows(contribution.values, PartialShape(row), frame, outer, inner));
  TROUPE_ASSIGN_OR_RETURN(
      const Output indices,
      AccumulateRows(contribution.indices, PartialShape(Shape()), frame, outer, inner));
  TROUPE_ASSIGN_OR_RETURN(const Output dense_shape,
                          ShapeFor(outer_value, state_->forward->PathOfLoop(frame), outer));
  return Gradient(values, indices, dense_shape);
}

absl::StatusOr<Output> Differentiation::AccumulateRows(Output rows, const PartialShape& row,
                                                       int frame, BackFrame* outer,
                                                       BackFrame* inner) {
  // A TensorArray gets the rows of each iteration; all are joined at the end, once.
  const Path path = state_->forward->PathOfLoop(frame);
  GradientBuilder g(graph_, inner->attrs().frame, outer->place());
  TROUPE_ASSIGN_OR_RETURN(Output size, outer->Gate(inner->num_steps(), path));
  Node* array = g.Add("TensorArrayV3", {size}, [&](NodeSpec& spec) {
    spec.Attr("dtype", rows.type());
    // Nothing but the first iteration's rows has to have their number.
    spec.Attr("tensor_array_name", g.prefix());
  });
  TROUPE_RETURN_IF_ERROR(g.status());
  TROUPE_ASSIGN_OR_RETURN(const Output handle, inner->Bring(Output(array, 0)));
  TROUPE_ASSIGN_OR_RETURN(const BackVariable variable,
                          OpenVariable(Output(array, 1), PartialShape(Shape()), outer, inner));
  GradientBuilder b(graph_, inner->attrs().frame, inner);
  // The counter runs down from the number of steps to 1.
  const Output index = b.Op("Sub", {Output(inner->pivot()), b.Scalar<int32_t>(1)});
  const Output flow =
      b.Op("TensorArrayWriteV3", {handle, index, rows, Output(variable.loop_switch, 1)});
  TROUPE_RETURN_IF_ERROR(b.status());
  TROUPE_ASSIGN_OR_RETURN(const Output written, CloseVariable(variable, flow, outer, inner));
  const Output joined =
      g.Op("TensorArrayConcatV3", {Output(array, 0), written}, [&](NodeSpec& spec) {
        spec.Attr("dtype", rows.type());
        spec.Attr("element_shape_except0", row);
      });
  TROUPE_RETURN_IF_ERROR(g.status());
  return joined;
}

// --- Values saved by one loop for another ---

absl::Status Differentiation::PopGradient(Visit& visit, BackFrame* back) {
  // The values' gradients are computed in the order in which the values were pushed; the backward
  // loop of the pushing loop needs them last first.
  if (!visit.grads[0].valid()) return absl::OkStatus();
  Node* push = saved_.PushOf(visit.node);
  GradientBuilder b(graph_, ScopeOf(visit.node), back->place());
  const Output grad = b.Dense(visit.grads[0]);
  TROUPE_RETURN_IF_ERROR(b.status());
  if (back == base_.get()) {
    return absl::UnimplementedError(
        StrCat("node '", visit.node->name(), "' takes from a stack outside every loop"));
  }
  GradientBuilder g(graph_, ScopeOf(visit.node), base_->place());
  const Output stack = g.Op("StackV2", {g.Scalar<int32_t>(-1)}, [&](NodeSpec& spec) {
    spec.Attr("elem_type", grad.type()).Attr("stack_name", visit.node->name());
  });
  TROUPE_RETURN_IF_ERROR(g.status());
  gradient_stacks_[push] = stack;
  Node* saved = b.Add("StackPushV2", {stack, grad},
                      [&](NodeSpec& spec) { spec.ControlInput(back->pivot()); });
  TROUPE_RETURN_IF_ERROR(b.status());
  return back->counter().Await(graph_, saved, !state_->PathOf(Output(visit.node)).empty());
}

absl::Status Differentiation::PushGradient(Visit& visit, BackFrame* back) {
  Node* push = visit.node;
  const Path path = state_->PathOf(Output(push));
  const Output value = InputOf(push, 1);
  if (visit.grads[0].valid()) {
    TROUPE_RETURN_IF_ERROR(Send(value, visit.grads[0], path, back));
  }
  auto found = gradient_stacks_.find(push);
  if (found == gradient_stacks_.end()) return absl::OkStatus();
  GradientBuilder b(graph_, ScopeOf(push), back->place());
  TROUPE_ASSIGN_OR_RETURN(Output handle, back->Gate(b.Value(found->second), path));
  Node* pop = b.Add("StackPopV2", {handle}, [&](NodeSpec& spec) {
    spec.Attr("elem_type", value.type()).ControlInput(back->pivot());
  });
  TROUPE_RETURN_IF_ERROR(b.status());
  TROUPE_RETURN_IF_ERROR(graph_->RefineShape(pop, value.shape()));
  TROUPE_RETURN_IF_ERROR(back->counter().Await(graph_, pop, !path.empty()));
  return Send(value, Gradient(Output(pop)), path, back);
}

}  // namespace troupe::gradients
