#include "graph/gradients/differentiation.h"

#include <algorithm>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/gradients/aggregate.h"
#include "graph/gradients/gradient_registry.h"
#include "graph/gradients/loop_shapes.h"
#include "graph/gradients/lower_calls.h"

namespace troupe::gradients {
namespace {

/// Parts that all come from one device are added up there, and sent on as one.
std::string DeviceOfSum(const Node& node, const std::vector<Gradient>& parts) {
  for (const Gradient& part : parts) {
    if (part.values.node->requested_device() != parts[0].values.node->requested_device()) {
      return node.requested_device();
    }
  }
  return parts.empty() ? std::string() : parts[0].values.node->requested_device();
}

bool IsBackEdge(const Node* src, const Node* dst) { return IsNextIteration(src) && IsMerge(dst); }

/// True if a gradient may flow through an output. What an unknown op gives is met as an error, not
/// taken for the end of the chain.
bool MayCarry(const Node& node, int output) {
  const ElementType type = node.output_type(output);
  return IsDifferentiable(type) || type == ElementType::kInvalid;
}

absl::Status UnknownOp(const Node& node) {
  return absl::NotFoundError(
      StrCat("cannot differentiate through node '", node.name(), "': op '", node.op(),
             "' is not registered; load the library that defines it before the graph is imported, "
             "or cut the path with StopGradient"));
}

}  // namespace

absl::Status AboutNode(const Node* node, const absl::Status& status) {
  return WithContext(StrCat("gradient of node '", node->name(), "' (op ", node->op(), "): "),
                     status);
}

// --- What lies between xs and ys ---

Output Differentiation::Resolve(Output output) {
  while (Node* replacement = output.node->replacement()) output.node = replacement;
  return output;
}

Output Differentiation::InputOf(const Node* node, int i) {
  const Edge* edge = node->in_data_edge(i);
  return edge == nullptr ? Output() : Resolve(Output(edge->src, edge->src_output));
}

std::vector<Node*> Differentiation::SourcesOf(const Node* node) const {
  std::vector<Node*> sources;
  for (int i = 0; i < node->num_inputs(); ++i) {
    if (Node* source = InputOf(node, i).node) sources.push_back(source);
  }
  if (Node* push = saved_.PushOf(node)) sources.push_back(push);
  return sources;
}

Differentiation::Visit* Differentiation::Find(const Node* node) {
  // Nodes that this differentiation added have larger ids.
  if (node->id() >= static_cast<int>(slot_.size()) || slot_[node->id()] < 0) return nullptr;
  return &visits_[slot_[node->id()]];
}

Differentiation::Visit* Differentiation::Source(const Node* node, int i) {
  const Output input = InputOf(node, i);
  return input.valid() ? Find(input.node) : nullptr;
}

bool Differentiation::IsStopped(Output output) const {
  const auto& stops = options_.stop_gradients;
  return std::find(stops.begin(), stops.end(), output) != stops.end();
}

absl::Status Differentiation::ResolveReplacements() {
  for (Node* node : graph_->nodes()) {
    if (node->replacement() != nullptr) {
      replaced_by_[Resolve(Output(node)).node].push_back(node);
    }
  }
  for (Output& y : ys_) y = Resolve(y);
  for (Output& x : xs_) x = Resolve(x);
  return absl::OkStatus();
}

absl::Status Differentiation::FindBase() {
  const ControlFlowAnalysis& flow = state_->flow;
  state_->base_frame = flow.FrameOf(ys_[0].node);
  for (const auto& [tensors, what] : {std::pair(&ys_, "y"), std::pair(&xs_, "x")}) {
    for (const Output& tensor : *tensors) {
      const int frame = flow.FrameOf(tensor.node);
      // What a loop's body is given may be an x there; nothing flows further.
      if (frame == state_->base_frame && (tensors == &xs_ || !IsEnter(tensor.node))) continue;
      return InvalidArgument(
          "cannot differentiate ", ys_[0].name(), " by ", xs_[0].name(), ": ", what, " ",
          tensor.name(), " (op ", tensor.node->op(), ") is inside loop '", flow.frame(frame).name,
          "', where it has a value in each iteration; give what enters or leaves "
          "the loop");
    }
  }
  return absl::OkStatus();
}

void Differentiation::MarkReached() {
  std::vector<Node*> stack;
  auto reach = [&](Node* node) {
    if (slot_[node->id()] != kNotReached || node->replacement() != nullptr) return;
    slot_[node->id()] = kReached;
    stack.push_back(node);
  };
  auto follow = [&](const Node* node, const Node* used) {
    for (const Edge* edge : used->out_edges()) {
      if (edge->control() || !MayCarry(*node, edge->src_output)) continue;
      if (!options_.stop_gradients.empty() && (IsStopped(Output(edge->src, edge->src_output)))) {
        continue;
      }
      reach(edge->dst);
    }
  };
  for (const Output& x : xs_) reach(x.node);
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    follow(node, node);
    auto replaced = replaced_by_.find(node);
    if (replaced != replaced_by_.end()) {
      for (const Node* used : replaced->second) follow(node, used);
    }
    if (Node* pop = saved_.PopOf(node)) {
      if (IsDifferentiable(pop->output_type(0))) reach(pop);
    }
  }
}

void Differentiation::CollectBetween() {
  auto collect = [&](Node* node) {
    if (slot_[node->id()] != kReached) return;
    slot_[node->id()] = static_cast<int>(visits_.size());
    visits_.emplace_back().node = node;
  };
  for (const Output& y : ys_) collect(y.node);
  for (size_t next = 0; next < visits_.size(); ++next) {
    const Node* node = visits_[next].node;
    for (Node* source : SourcesOf(node)) collect(source);
  }
  for (const Output& x : xs_) {
    if (Visit* visit = Find(x.node)) visit->is_x = true;
  }
}

Differentiation::Unit Differentiation::UnitAt(int level, const Visit* visit) {
  const int loop = state_->flow.LoopOf(visit->node);
  if (loop == level) return {slot_[visit->node->id()], -1};
  return {-1, state_->flow.ChildTowards(level, loop)};
}

void Differentiation::CountUses() {
  const ControlFlowAnalysis& flow = state_->flow;
  levels_.resize(flow.num_frames());
  for (const Visit& visit : visits_) {
    int frame = flow.LoopOf(visit.node);
    levels_[frame].visits.push_back(slot_[visit.node->id()]);
    ++levels_[frame].num_units;
    while (frame > 0 && !levels_[frame].between) {
      levels_[frame].between = true;
      frame = flow.frame(frame).parent;
      ++levels_[frame].num_units;
    }
  }
  for (Visit& visit : visits_) {
    const int frame = flow.LoopOf(visit.node);
    for (Node* node : SourcesOf(visit.node)) {
      Visit* source = Find(node);
      if (source == nullptr || IsBackEdge(node, visit.node)) continue;
      const int from = flow.LoopOf(node);
      const int level = flow.CommonFrame(frame, from);
      const Unit unit = UnitAt(level, source);
      ++(unit.visit >= 0 ? source->pending : levels_[unit.frame].pending);
      if (frame == level) continue;
      const int user = flow.ChildTowards(level, frame);
      levels_[user].sources.push_back(unit);
      // Gradients of what was popped are popped in turn, after all have been pushed.
      if (saved_.PushOf(visit.node) == node && unit.frame >= 0) {
        levels_[unit.frame].after.push_back(user);
      }
    }
  }
}

void Differentiation::Release(Unit unit, int level) {
  int& pending = unit.visit >= 0 ? visits_[unit.visit].pending : levels_[unit.frame].pending;
  if (--pending == 0) levels_[level].ready.push_back(unit);
}

// --- One frame ---

absl::StatusOr<Output> Differentiation::OnesFor(Output y) {
  const ElementType type = y.type();
  if (type == ElementType::kInvalid) return UnknownOp(*y.node);
  if (IsComplex(type)) {
    return InvalidArgument("the gradient of ", y.name(), ", which is complex, needs a grad_y");
  }
  if (!IsFloating(type) && !IsInteger(type)) {
    return InvalidArgument("cannot differentiate ", y.name(), ": it is of type ",
                           ElementTypeName(type), ", expected numbers");
  }
  GradientBuilder g(graph_, prefix_, base_->place());
  const PartialShape& shape = y.shape();
  Output ones;
  if (!shape.fully_known()) {
    ones = g.OnesLike(y);
  } else if (shape.rank() == 0) {
    ones = g.ScalarOfType(type, 1);
  } else {
    ones = g.Op("Fill", {g.Shape(y), g.ScalarOfType(type, 1)});
  }
  if (!g.status().ok()) return g.status();
  return ones;
}

absl::Status Differentiation::SeedYs(absl::Span<const Output> grad_ys) {
  for (size_t i = 0; i < ys_.size(); ++i) {
    const Output y = ys_[i];
    Output grad = i < grad_ys.size() ? grad_ys[i] : Output();
    if (grad.valid()) {
      if (grad.type() != y.type()) {
        return InvalidArgument("grad_y ", grad.name(), " is of type ", ElementTypeName(grad.type()),
                               ", expected the type of ", y.name(), ", ",
                               ElementTypeName(y.type()));
      }
      if (!grad.shape().IsCompatibleWith(y.shape())) {
        return InvalidArgument("grad_y ", grad.name(), " has shape ", grad.shape().ToString(),
                               ", expected that of ", y.name(), ", ", y.shape().ToString());
      }
    }
    Visit* visit = Find(y.node);
    if (!grad.valid() && (visit != nullptr || IsComplex(y.type()))) {
      TROUPE_ASSIGN_OR_RETURN(grad, OnesFor(y));
    }
    if (visit == nullptr) continue;
    if (const Path path = state_->PathOf(y); !path.empty()) {
      TROUPE_ASSIGN_OR_RETURN(grad, base_->Gate(grad, path));
    }
    visit->received.emplace_back(y.index, Gradient(grad));
    visit->is_y = true;
  }
  return absl::OkStatus();
}

absl::Status Differentiation::SumReceived(Visit& visit, BackFrame* back) {
  visit.grads.assign(visit.node->num_outputs(), Gradient());
  for (int i = 0; i < visit.node->num_outputs(); ++i) {
    std::vector<Gradient> parts;
    for (const auto& [output, grad] : visit.received) {
      if (output == i) parts.push_back(grad);
    }
    GradientBuilder g(graph_, prefix_, back->place());
    g.set_device(DeviceOfSum(*visit.node, parts));
    visit.grads[i] = SumGradients(g, parts);
    TROUPE_RETURN_IF_ERROR(g.status());
  }
  std::vector<std::pair<int, Gradient>>().swap(visit.received);
  return absl::OkStatus();
}

absl::Status Differentiation::Differentiate(Visit& visit, BackFrame* back) {
  Node* node = visit.node;
  TROUPE_RETURN_IF_ERROR(SumReceived(visit, back));
  if (back != base_.get() && (IsEnter(node) || state_->flow.VariableOf(node) != nullptr)) {
    // The sum for a loop's variables is kept until the loop is closed; a Switch passes it on.
    if (!IsSwitch(node)) return absl::OkStatus();
    if (visit.grads[1].valid()) {
      return Send(InputOf(node, 0), visit.grads[1], state_->PathOfNode(node), back);
    }
    return absl::OkStatus();
  }
  if (saved_.PushOf(node) != nullptr) return PopGradient(visit, back);
  if (saved_.PopOf(node) != nullptr) return PushGradient(visit, back);
  bool has_gradient = false, leads_on = false;
  for (const Gradient& grad : visit.grads) has_gradient |= grad.valid();
  std::vector<bool> wanted(node->num_inputs());
  for (int i = 0; i < node->num_inputs(); ++i) {
    const bool between = Source(node, i) != nullptr && !IsStopped(InputOf(node, i));
    leads_on |= between;
    wanted[i] = between && IsDifferentiable(node->input_type(i));
  }
  if (!has_gradient || !leads_on) return absl::OkStatus();
  visit.differentiated = true;
  if (IsSwitch(node)) return SwitchGradient(visit, back);
  if (IsMerge(node)) return MergeGradient(visit, back);
  if (!node->op_known()) return UnknownOp(*node);
  absl::StatusOr<GradientFn> function = CallGradient;
  if (GradientFunctionOf(node).empty()) {
    function = GradientRegistry::Global()->LookUp(node->op());
  }
  if (!function.ok()) {
    return WithContext(StrCat("cannot differentiate through node '", node->name(), "': "),
                       function.status(), ", or cut the path with StopGradient");
  }
  visit.differentiated = *function != nullptr;
  if (*function == nullptr) return absl::OkStatus();
  const int first_node = graph_->num_nodes();
  GradientContext context(node, visit.grads, ScopeOf(node), std::move(wanted), back->place());
  context.set_device(node->requested_device());
  const absl::Status status = CatchExceptions([&] {
    (*function)(context);
    return context.status();
  });
  if (!status.ok()) return AboutNode(node, status);
  return SendAll(visit, context, first_node, back);
}

absl::Status Differentiation::SendAll(Visit& visit, const GradientContext& context, int first_node,
                                      BackFrame* back) {
  Node* node = visit.node;
  const Path path = state_->PathOfNode(node);
  std::vector<Gradient> results = context.results();
  if (options_.gate_gradients) {
    std::vector<Node*> all;
    for (const Gradient& result : results) {
      if (result.valid()) all.push_back(result.values.node);
    }
    for (size_t i = 0; i < results.size() && all.size() > 1; ++i) {
      if (!results[i].valid()) continue;
      GradientBuilder g(graph_, ScopeOf(node), back->place());
      g.set_device(node->requested_device());
      results[i].values = g.Op("Identity", {results[i].values}, [&](NodeSpec& spec) {
        for (Node* other : all) spec.ControlInput(other);
      });
      TROUPE_RETURN_IF_ERROR(g.status());
    }
  }
  // True if a tensor is dead when the node is, as it depends on what came.
  auto follows = [&](Output result) {
    std::vector<Node*> stack = {result.node};
    for (size_t next = 0; next < stack.size() && next < 1000; ++next) {
      const Node* at = stack[next];
      for (const Gradient& grad : visit.grads) {
        if (grad.valid() && (at == grad.values.node || at == grad.indices.node)) return true;
      }
      if (at->id() < first_node) continue;
      for (int i = 0; i < at->num_inputs(); ++i) stack.push_back(at->in_data_edge(i)->src);
    }
    return false;
  };
  for (int i = 0; i < node->num_inputs(); ++i) {
    Gradient& grad = results[i];
    Visit* source = grad.valid() ? Source(node, i) : nullptr;
    if (source == nullptr) continue;
    const Output input = InputOf(node, i);
    if (IsStopped(input)) continue;
    if (input.type() != ElementType::kResource) {
      if (grad.values.type() != input.type()) {
        return absl::InternalError(StrCat("gradient of op ", node->op(), " (node '", node->name(),
                                          "') for input ", i, " is of type ",
                                          ElementTypeName(grad.values.type()), ", expected ",
                                          ElementTypeName(input.type())));
      }
      // Shapes known better in the forward graph keep shape arithmetic out of the backward one.
      const PartialShape &shape = grad.values.shape(), &known = input.shape();
      if (!grad.sparse() && !shape.fully_known() && !(known == shape) &&
          !graph_->RefineShape(grad.values, known).ok()) {
        return InvalidArgument("gradient of op ", node->op(), " (node '", node->name(),
                               "') for input ", i, " has shape ", shape.ToString(), ", expected ",
                               known.ToString());
      }
    }
    if (!path.empty() && !follows(grad.values)) {
      TROUPE_ASSIGN_OR_RETURN(grad.values, back->Gate(grad.values, path));
    }
    if (!path.empty() && grad.sparse() && !follows(grad.indices)) {
      TROUPE_ASSIGN_OR_RETURN(grad.indices, back->Gate(grad.indices, path));
    }
    TROUPE_RETURN_IF_ERROR(AboutNode(node, Send(input, grad, path, back)));
  }
  return absl::OkStatus();
}

absl::Status Differentiation::Send(Output to, Gradient grad, const Path& path, BackFrame* back) {
  Visit* visit = Find(to.node);
  if (visit == nullptr || IsStopped(to)) return absl::OkStatus();
  if (const Path extra = Difference(path, state_->PathOf(to)); !extra.empty()) {
    TROUPE_ASSIGN_OR_RETURN(grad, Lift(to, grad, extra, back));
  }
  visit->received.emplace_back(to.index, grad);
  return absl::OkStatus();
}

absl::Status Differentiation::ProcessLevel(int frame, BackFrame* back) {
  Level& level = levels_[frame];
  level.back = back;
  while (!level.ready.empty()) {
    const Unit unit = level.ready.front();
    level.ready.pop_front();
    ++level.num_done;
    if (unit.visit < 0) {
      TROUPE_RETURN_IF_ERROR(DifferentiateLoop(unit.frame, back));
      for (const Unit& source : levels_[unit.frame].sources) Release(source, frame);
      continue;
    }
    Visit& visit = visits_[unit.visit];
    TROUPE_RETURN_IF_ERROR(Differentiate(visit, back));
    const bool kept = visit.is_x || frame != state_->base_frame;
    if (!kept) std::vector<Gradient>().swap(visit.grads);
    for (Node* node : SourcesOf(visit.node)) {
      const Visit* source = Find(node);
      if (source == nullptr || IsBackEdge(node, visit.node)) continue;
      const int loop = state_->flow.LoopOf(node);
      if (state_->flow.CommonFrame(loop, frame) == frame) Release(UnitAt(frame, source), frame);
    }
  }
  if (level.num_done == level.num_units) return absl::OkStatus();
  for (const int at : level.visits) {
    if (visits_[at].pending > 0) {
      const Node* node = visits_[at].node;
      return InvalidArgument("cannot differentiate through node '", node->name(), "' (op ",
                             node->op(), "): it is part of a cycle that is no loop",
                             frame == 0 ? "" : ", in loop '", state_->flow.frame(frame).name,
                             frame == 0 ? "" : "'");
    }
  }
  for (int child = 1; child < state_->flow.num_frames(); ++child) {
    if (levels_[child].pending > 0 && state_->flow.frame(child).parent == frame) {
      return InvalidArgument(
          "loop '", state_->flow.frame(child).name,
          "' cannot be differentiated: what enters it depends on what leaves it");
    }
  }
  return InvalidArgument(
      "the control flow on the way from ", xs_[0].name(), " to ", ys_[0].name(),
      frame == 0 ? "" : StrCat(", in loop '", state_->flow.frame(frame).name, "',"),
      " is malformed");
}

absl::Status Differentiation::Results(std::vector<Gradient>* grads) {
  GradientBuilder g(graph_, prefix_, base_->place());
  for (size_t i = 0; i < xs_.size(); ++i) {
    Visit* visit = Find(xs_[i].node);
    if (visit == nullptr || visit->grads.empty()) continue;
    Gradient& grad = visit->grads[xs_[i].index];
    // A node that was differentiated counts as connected as a whole, as in TensorFlow.
    if (!grad.valid() && visit->differentiated && IsDifferentiable(xs_[i].type())) {
      grad = g.ZerosLike(xs_[i]);
    }
    (*grads)[i] = grad;
  }
  return g.status();
}

absl::Status Differentiation::Run(absl::Span<const Output> grad_ys, std::vector<Gradient>* grads) {
  TROUPE_RETURN_IF_ERROR(LowerCallsBetween(graph_, ys_, xs_));
  TROUPE_RETURN_IF_ERROR(ResolveReplacements());
  saved_ = SavePairs(*graph_);
  state_ = std::make_unique<BackwardState>(graph_, prefix_, 0, options_.max_back_iterations);
  state_->flow.Update();
  state_->num_analysed = graph_->num_nodes();
  TROUPE_RETURN_IF_ERROR(FindBase());
  state_->forward =
      std::make_unique<ForwardGraph>(graph_, &state_->flow, prefix_, state_->base_frame);
  base_ = std::make_unique<BackFrame>(state_.get(), nullptr, state_->base_frame);
  if (state_->base_frame != 0) base_->set_pivot(ys_[0].node);
  slot_.assign(graph_->num_nodes(), kNotReached);
  grads->assign(xs_.size(), Gradient());
  MarkReached();
  CollectBetween();
  for (const Visit& visit : visits_) TROUPE_RETURN_IF_ERROR(state_->flow.Check(visit.node));
  CountUses();
  for (int child = 1; child < state_->flow.num_frames(); ++child) {
    if (levels_[child].between && state_->flow.frame(child).parent == state_->base_frame) {
      InferLoopShapes(graph_, state_->flow, child);
    }
  }
  TROUPE_RETURN_IF_ERROR(SeedYs(grad_ys));
  const int base = state_->base_frame;
  for (const int at : levels_[base].visits) {
    if (visits_[at].pending == 0) levels_[base].ready.push_back({at, -1});
  }
  for (int child = 1; child < state_->flow.num_frames(); ++child) {
    if (state_->flow.frame(child).parent == base && levels_[child].between &&
        levels_[child].pending == 0) {
      levels_[base].ready.push_back({-1, child});
    }
  }
  TROUPE_RETURN_IF_ERROR(ProcessLevel(base, base_.get()));
  return Results(grads);
}

}  // namespace troupe::gradients
