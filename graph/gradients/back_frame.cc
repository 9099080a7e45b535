#include "graph/gradients/back_frame.h"

#include <set>
#include <utility>

#include "devices/status_macros.h"
#include "graph/gradients/gradient_ops.h"
#include "graph/protos/graph.pb.h"

namespace troupe::gradients {

BackwardState::Home BackwardState::HomeOf(const Node* node) {
  // Nodes that nothing is noted of were added beside forward nodes, or to the base frame: they run
  // where their first input does. Chains of them may be long.
  std::vector<const Node*> chain;
  const Node* at = node;
  while (at->id() >= num_analysed && !homes.contains(at)) {
    chain.push_back(at);
    if (at->num_inputs() == 0 || at->in_data_edge(0) == nullptr) break;
    at = at->in_data_edge(0)->src;
  }
  Home home{nullptr, base_frame, {}};
  if (at->id() < num_analysed) {
    home = {nullptr, flow.FrameOf(at), {}};
    if (!chain.empty()) home.path = PathOf(chain.back()->input(0));
  } else if (auto found = homes.find(at); found != homes.end()) {
    home = found->second;
  }
  for (const Node* added : chain) homes.emplace(added, home);
  return home;
}

Path BackwardState::PathOf(Output tensor) {
  const Home home = HomeOf(tensor.node);
  if (tensor.node->id() >= num_analysed) return home.path;
  return flow.WithoutCondition(flow.PathOf(tensor), home.frame);
}

Path BackwardState::PathOfNode(const Node* node) {
  return flow.WithoutCondition(flow.PathOf(node), flow.FrameOf(node));
}

bool BackwardState::InBody(Output tensor) {
  const Node* node = tensor.node;
  if (node->id() >= num_analysed) {
    const bool beside = node->num_inputs() == 1 && !IsExit(node);
    return !beside || InBody(node->input(0));
  }
  for (const Branch& branch : flow.PathOf(tensor)) {
    if (branch.pred.node == flow.frame(flow.FrameOf(node)).loop_cond) return branch.index == 1;
  }
  return false;
}

BackFrame::BackFrame(BackwardState* state, BackFrame* parent, int frame)
    : state_(state), parent_(parent), frame_(frame) {}

GradientBuilder BackFrame::Builder(std::string_view what) {
  return GradientBuilder(state_->graph,
                         parent_ == nullptr ? state_->prefix : StrCat(counter_.prefix, "/", what),
                         place());
}

absl::Status BackFrame::Open() {
  const LoopFrame& loop = state_->flow.frame(frame_);
  TROUPE_ASSIGN_OR_RETURN(IterationCounter * forward, state_->forward->Counter(frame_));
  state_->homes[forward->exit] = {nullptr, loop.parent, state_->forward->PathOfLoop(frame_)};
  counter_.prefix = state_->graph->UniqueName(StrCat(state_->prefix, "/", loop.name, "_grad"));
  attrs_ = {counter_.prefix, loop.parallel_iterations};
  GradientBuilder outer(state_->graph, counter_.prefix, parent_->place());
  steps_ = count_ = outer.Value(forward->exit);
  if (state_->max_back_iterations > 0) {
    const Output most = outer.Scalar(state_->max_back_iterations);
    steps_ = outer.Op("Minimum", {count_, most});
    truncated_ = outer.Op("Greater", {count_, most});
  }
  TROUPE_RETURN_IF_ERROR(outer.status());
  Node* enter = AddEnter(outer, steps_, attrs_, false);
  TROUPE_RETURN_IF_ERROR(outer.status());

  // These nodes are the frame's own: nothing they use has to be brought in.
  GradientBuilder g(state_->graph, counter_.prefix);
  auto own = [&](Node* node) {
    if (node != nullptr) state_->homes[node] = {this, 0, {}};
    return node;
  };
  auto constant = [&](int32_t value, Node* after) { return own(AddConst(g, value, after)); };
  enter_ = own(enter);
  counter_.merge = own(AddLoopMerge(g, enter, PartialShape(Shape())));
  Node* more = own(g.Add("Greater", {counter_.merge, constant(0, counter_.merge)}));
  Node* condition = own(g.Add("LoopCond", {more}));
  condition_ = condition;
  counter_.loop_switch = own(AddSwitch(g, counter_.merge, condition));
  TROUPE_RETURN_IF_ERROR(g.status());
  counter_.number = own(g.Add("Identity", {Output(counter_.loop_switch, 1)}));
  counter_.step = own(g.Add("Sub", {counter_.number, constant(1, counter_.number)}));
  Node* next = own(g.Add("NextIteration", {counter_.step}));
  TROUPE_RETURN_IF_ERROR(g.status());
  TROUPE_RETURN_IF_ERROR(state_->graph->AddBackEdge(next, counter_.merge, 1));
  pivot_ = counter_.number;
  if (parent_->parent_ != nullptr) {
    // The next iteration of the outer loop takes from the same stacks.
    TROUPE_ASSIGN_OR_RETURN(Node * done, Done());
    TROUPE_RETURN_IF_ERROR(
        parent_->counter_.Await(state_->graph, done, !state_->forward->PathOfLoop(frame_).empty()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Node*> BackFrame::Done() {
  if (counter_.exit == nullptr) {
    GradientBuilder g(state_->graph, counter_.prefix);
    counter_.exit = g.Add("Exit", {Output(counter_.loop_switch, 0)});
    TROUPE_RETURN_IF_ERROR(g.status());
    state_->homes[counter_.exit] = {parent_, 0, {}};
  }
  return counter_.exit;
}

absl::Status BackFrame::Added(Node* node) {
  if (parent_ == nullptr) {
    state_->homes[node] = {nullptr, frame_, {}};
  } else if (!IsEnter(node) && !IsExit(node)) {
    state_->homes[node] = {this, 0, {}};
  }
  // A node without inputs would run in the root.
  if (node->in_edges().empty() && pivot_ != nullptr) {
    return state_->graph->AddControlEdge(pivot_, node);
  }
  return absl::OkStatus();
}

bool BackFrame::InForwardLoop(const Node* node) {
  const BackwardState::Home home = state_->HomeOf(node);
  return home.back == nullptr && home.frame == frame_;
}

bool BackFrame::BelongsBeside(std::string_view op, Output x) {
  if (parent_ == nullptr || (op != "Shape" && op != "Size" && op != "Rank")) return false;
  if (!InForwardLoop(x.node) || IsInvariant(x)) return false;
  return !values_.contains({x.node, x.index});
}

absl::StatusOr<Output> BackFrame::Value(Output x) {
  const BackwardState::Home home = state_->HomeOf(x.node);
  if (parent_ == nullptr || home.back == this) return x;
  if (home.back != nullptr || home.frame != frame_) {
    TROUPE_ASSIGN_OR_RETURN(Output outer, parent_->Value(x));
    return Bring(outer);
  }
  if (x.node->id() < state_->num_analysed) x = state_->flow.Origin(x);
  const std::pair<Node*, int> key(x.node, x.index);
  auto found = values_.find(key);
  if (found != values_.end()) return found->second;
  Output value;
  if (IsInvariant(x)) {
    TROUPE_ASSIGN_OR_RETURN(value, InvariantValue(x));
  } else if (IsFlow(x)) {
    GradientBuilder g = Builder("flow");
    value = g.Scalar<float>(0);
    TROUPE_RETURN_IF_ERROR(g.status());
  } else {
    TROUPE_ASSIGN_OR_RETURN(value, CountedValue(x));
    if (!value.valid()) {
      TROUPE_ASSIGN_OR_RETURN(value, Save(x));
    }
  }
  TROUPE_RETURN_IF_ERROR(state_->graph->RefineShape(value, x.shape()));
  values_[key] = value;
  return value;
}

absl::StatusOr<Node*> BackFrame::Repeat(const Node* forward, std::string_view name,
                                        absl::Span<const Output> inputs) {
  NodeDef def = forward->def();
  def.set_name(Builder(forward->op()).NewName(name));
  def.clear_device();
  def.mutable_attr()->erase("_class");
  def.clear_input();
  for (const Output& input : inputs) def.add_input(input.name());
  TROUPE_ASSIGN_OR_RETURN(Node * node, state_->graph->AddNode(def));
  TROUPE_RETURN_IF_ERROR(Added(node));
  return node;
}

absl::StatusOr<Output> BackFrame::Bring(Output outer) {
  Output& brought = brought_[{outer.node, outer.index}];
  if (brought.valid()) return brought;
  if (outer.node->op() == "Const" &&
      outer.node->attrs().GetOr<Tensor>("value", Tensor()).bytes() <= 1024) {
    TROUPE_ASSIGN_OR_RETURN(brought, Repeat(outer.node, "Const", {}));
    return brought;
  }
  // Nothing enters a loop that is in a branch not taken.
  TROUPE_ASSIGN_OR_RETURN(Output gated, parent_->Gate(outer, state_->forward->PathOfLoop(frame_)));
  GradientBuilder g(state_->graph, counter_.prefix);
  Node* enter = AddEnter(g, gated, attrs_, true);
  TROUPE_RETURN_IF_ERROR(g.status());
  state_->homes[enter] = {this, 0, {}};
  brought = enter;
  return brought;
}

absl::StatusOr<Output> BackFrame::PredicateValue(Output pred) {
  if (parent_ == nullptr) return pred;
  TROUPE_ASSIGN_OR_RETURN(const Output value, Value(pred));
  // An invariant that is used in a branch is here whether that is taken or not.
  if (!IsInvariant(pred)) return value;
  return Gate(value, state_->PathOf(pred));
}

absl::StatusOr<Output> BackFrame::Gate(Output value, const Branch& branch) {
  TROUPE_ASSIGN_OR_RETURN(const Output pred, PredicateValue(branch.pred));
  Node*& node = switches_[{value.node, value.index, pred.node, pred.index}];
  if (node == nullptr) {
    GradientBuilder g = Builder("cond");
    node = AddSwitch(g, value, pred, branch);
    TROUPE_RETURN_IF_ERROR(g.status());
  }
  return Output(node, branch.index);
}

absl::StatusOr<Output> BackFrame::Gate(Output value, const Path& path) {
  for (const Branch& branch : path) {
    TROUPE_ASSIGN_OR_RETURN(value, Gate(value, branch));
  }
  return value;
}

// --- Values that need not be saved ---

bool BackFrame::IsFlow(Output x) const {
  for (int steps = 0; steps < 100 && x.type() == ElementType::kFloat; ++steps) {
    const Node* node = x.node;
    if (node->op().starts_with("TensorArray")) {
      return node->op_def().output_arg(node->num_outputs() > 1 ? 1 : 0).name().starts_with("flow");
    }
    const LoopVariable* variable = state_->flow.VariableOf(node);
    if (variable != nullptr && variable->enter != nullptr) {
      x = variable->enter->input(0);
    } else if (IsSwitch(node) || IsEnter(node) || node->op() == "Identity") {
      x = node->input(0);
    } else {
      return false;
    }
  }
  return false;
}

bool BackFrame::IsInvariant(Output x, int depth) {
  // What is computed again in each iteration of the backward loop: nothing that takes long.
  static const auto* const cheap = new std::set<std::string, std::less<>>{
      "Cast", "ConcatV2", "ExpandDims", "Fill",  "FloorMod",     "Identity", "Minimum",  "Maximum",
      "Mul",  "Pack",     "Prod",       "Range", "Rank",         "Reshape",  "Shape",    "Size",
      "Add",  "AddV2",    "Squeeze",    "Sub",   "StridedSlice", "Neg",      "ZerosLike"};
  const Node* node = x.node;
  if (!InForwardLoop(node) || depth > 32) return false;
  if (node->op() == "Const" || IsConstantEnter(node)) return true;
  auto [found, added] = invariant_.try_emplace({x.node, x.index}, false);
  if (!added) return found->second;
  const LoopVariable* variable = state_->flow.VariableOf(node);
  bool result = false;
  if (variable != nullptr) {
    result = variable->invariant && variable->enter != nullptr && x != Output(variable->merge, 1);
  } else if (IsSwitch(node)) {
    result = IsInvariant(node->input(0), depth + 1);
  } else if ((node->op() == "Shape" || node->op() == "Size" || node->op() == "Rank") &&
             state_->graph->ConstantValue(x).valid()) {
    result = true;
  } else if (cheap->contains(node->op())) {
    result = node->num_inputs() > 0;
    for (int i = 0; result && i < node->num_inputs(); ++i) {
      result = IsInvariant(node->input(i), depth + 1);
    }
  }
  invariant_[{x.node, x.index}] = result;
  return result;
}

absl::StatusOr<Output> BackFrame::InvariantValue(Output x) {
  auto found = values_.find({x.node, x.index});
  if (found != values_.end()) return found->second;
  Node* node = x.node;
  Output value;
  const LoopVariable* variable = state_->flow.VariableOf(node);
  const Node* enter = variable != nullptr ? variable->enter : IsEnter(node) ? node : nullptr;
  if (node->op() == "Const") {
    TROUPE_ASSIGN_OR_RETURN(value, Repeat(node, "Const", {}));
  } else if (enter != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(Output outer, parent_->Value(enter->input(0)));
    TROUPE_ASSIGN_OR_RETURN(value, Bring(outer));
  } else if (IsSwitch(node) || node->op() == "Identity") {
    TROUPE_ASSIGN_OR_RETURN(value, InvariantValue(node->input(0)));
  } else if (Tensor known = state_->graph->ConstantValue(x); known.valid()) {
    GradientBuilder g = Builder("Const");
    value = g.Const(known);
    TROUPE_RETURN_IF_ERROR(g.status());
  } else {
    std::vector<Output> inputs;
    for (int i = 0; i < node->num_inputs(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(inputs.emplace_back(), InvariantValue(node->input(i)));
    }
    TROUPE_ASSIGN_OR_RETURN(Node * again, Repeat(node, "again", inputs));
    value = Output(again, x.index);
  }
  values_[{x.node, x.index}] = value;
  return value;
}

}  // namespace troupe::gradients
