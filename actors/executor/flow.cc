#include "actors/executor/flow.h"

#include <algorithm>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/cancellation.h"

namespace troupe {

namespace {

/// `to` takes over the value of `from`, which one consumer is about to let go of.
inline void Take(Slot& from, Slot& to) {
  to.ref = from.ref;
  if (from.uses == 1) {
    to.tensor = std::move(from.tensor);
  } else {
    to.tensor = from.tensor;
  }
}

inline uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t mixed = (a + 0x9e3779b97f4a7c15u) ^ (b * 0xbf58476d1ce4e5b9u);
  mixed = (mixed ^ (mixed >> 30)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

inline bool IsConstantEnter(const FlowNode& node) { return node.op == FlowOp::kConstantEnter; }

}  // namespace

ExecutorRole::Flow::Flow(const Plan& p, Slot* root_slots)
    : plan(p), nodes(p.flow_nodes.data()), edges(p.flow_edges.data()) {
  const PlanFrame& root = p.frames[0];
  ready.resize(std::max(p.num_nodes(), 16));
  free_blocks.assign(p.frames.size(), nullptr);
  for (size_t i = 0; i < p.frames.size(); ++i) {
    frame_hashes.push_back(RendezvousKey(p.spec.frames[i].name));
  }
  root_iteration.frame = &root_frame;
  root_iteration.slots = root_slots;
  root_iteration.uses = p.slot_uses.data();
  root_iteration.states = std::make_unique<NodeState[]>(root.num_nodes);
  root_iteration.children = std::make_unique<FrameInstance*[]>(root.num_children);
}

// --- readiness ---------------------------------------------------------------------------------

inline void ExecutorRole::ReleaseInputs(int32_t node, Iteration* iteration) {
  const PlanNode& p = nodes_[node];
  const int32_t* input = input_slots_ + p.first_input;
  const int32_t* const end = input + p.num_inputs;
  Slot* const slots = iteration->slots;
  if (p.kind == PlanNode::kFlow && flow_->nodes[node].op == FlowOp::kMerge) [[unlikely]] {
    // The others have not come.
    const int32_t state = iteration->states[flow_->nodes[node].local].dead;
    if (state >= 0) return;
    input += -1 - state;
    Slot& slot = slots[*input];
    if (--slot.uses == 0) slot.tensor.Reset();
    return;
  }
  for (; input != end; ++input) {
    Slot& slot = slots[*input];
    if (--slot.uses == 0) slot.tensor.Reset();
  }
}

void ExecutorRole::Deliver(int32_t node, Iteration* to, bool dead) {
  const PlanNode& p = nodes_[node];
  const FlowNode& f = flow_->nodes[node];
  Slot* const slots = to->slots;
  const int32_t* uses = to->uses + p.first_output;
  for (int i = 0; i < p.num_outputs; ++i) {
    Slot& slot = slots[p.first_output + i];
    slot.uses = uses[i];
    if (dead) slot.dead = true;
    if (uses[i] == 0) slot.tensor.Reset();
  }
  NodeState* const states = to->states.get();
  const FlowEdge* edge = flow_->edges + f.first_edge;
  for (const FlowEdge* end = edge + f.num_edges; edge != end; ++edge) {
    NodeState& state = states[edge->local];
    const bool control = edge->src_slot < 0;
    const bool edge_dead = control ? dead : slots[edge->src_slot].dead;
    bool runs_dead;
    if (!edge->to_merge) {
      if (edge_dead) state.dead = 1;
      if (--state.pending != 0) continue;
      runs_dead = state.dead != 0;
    } else {
      const int32_t num_inputs = nodes_[edge->node].num_inputs;
      if (control) {
        state.pending -= 2;
        runs_dead = state.dead == num_inputs;
        if (state.pending != 0 && !(state.pending == 1 && runs_dead)) continue;
      } else if (!edge_dead) {
        if ((state.pending & 1) == 0) continue;  // The first one alive is taken.
        state.pending &= ~1;
        state.dead = -1 - edge->input;
        if (state.pending != 0) continue;
        runs_dead = false;
      } else {
        if (state.dead < 0 || state.dead == num_inputs) continue;
        ++state.dead;
        // A loop that is never entered has no back edge either.
        if (f.op == FlowOp::kEnter || f.op == FlowOp::kConstantEnter ||
            f.op == FlowOp::kNextIteration) {
          state.dead = num_inputs;
        }
        runs_dead = state.dead == num_inputs;
        if (state.pending != 1 || !runs_dead) continue;
      }
    }
    if (runs_dead) {
      // A loop's dead ends need no turn of their own.
      const FlowOp op = flow_->nodes[edge->node].op;
      if (op == FlowOp::kExit || op == FlowOp::kNextIteration) {
        if (op == FlowOp::kExit) {
          Exit(edge->node, to, true);
        } else {
          NextIteration(edge->node, to, true);
        }
        continue;
      }
    }
    ++to->outstanding;
    if (num_ready_ == static_cast<int32_t>(flow_->ready.size())) {
      flow_->ready.resize(2 * flow_->ready.size());
    }
    flow_->ready[num_ready_++] = {edge->node, runs_dead, to};
  }
}

void ExecutorRole::CompleteFlow(int32_t node, Iteration* iteration, bool dead) {
  switch (nodes_[node].kind == PlanNode::kFlow ? flow_->nodes[node].op : FlowOp::kNone) {
    case FlowOp::kEnter:
    case FlowOp::kConstantEnter:
      Enter(node, iteration, dead);
      break;
    case FlowOp::kExit:
      Exit(node, iteration, dead);
      break;
    case FlowOp::kNextIteration:
      NextIteration(node, iteration, dead);
      break;
    default:
      Deliver(node, iteration, dead);
      ReleaseInputs(node, iteration);
  }
  LeaveIteration(iteration);
}

// --- the loop ----------------------------------------------------------------------------------

void ExecutorRole::BeginFlow() {
  const PlanFrame& root = plan_->frames[0];
  Iteration* iteration = flow_->root();
  std::copy(root.initial.begin(), root.initial.end(), iteration->states.get());
  std::fill_n(iteration->children.get(), root.num_children, nullptr);
  iteration->outstanding = static_cast<int32_t>(plan_->roots.size());
  num_ready_ = 0;
  for (int32_t node : plan_->roots) flow_->ready[num_ready_++] = {node, false, iteration};
}

template <bool kTimed>
void ExecutorRole::RunReadyFlow() {
  while (num_ready_ > 0) {
    if (step_.cancellation->cancelled()) [[unlikely]] {
      FailStep(step_.cancellation->status());
      return;
    }
    const Flow::Ready next = flow_->ready[--num_ready_];
    RunNodeFlow<kTimed>(next.node, next.iteration, next.dead, 0);
    if (outstanding_ > 0 && mailbox_.HasMessages()) return;
  }
}

template <bool kTimed>
void ExecutorRole::RunNodeFlow(int32_t node, Iteration* iteration, bool dead,
                               int32_t next_snapshot) {
  running_ = node;
  const PlanNode& p = nodes_[node];
  if (dead) {
    const FlowOp op = flow_->nodes[node].op;
    if (op == FlowOp::kSend) {  // The other end must know.
      if (PlayFlowOp(node, iteration, true)) CompleteFlow(node, iteration, true);
      return;
    }
    if (op != FlowOp::kControlTrigger) return CompleteFlow(node, iteration, true);
  }
  Slot* const slots = iteration->slots;
  if (p.has_snapshots && !TakeSnapshots(node, next_snapshot, slots, iteration)) return;
  switch (p.kind) {
    case PlanNode::kNothing:
      break;
    case PlanNode::kPassThrough:
      Take(slots[input_slots_[p.first_input]], slots[p.first_output]);
      break;
    case PlanNode::kFlow:
      if (flow_->nodes[node].op == FlowOp::kRecv) return Receive(node, iteration);
      if (!PlayFlowOp(node, iteration, false)) return;
      break;
    case PlanNode::kAsync:
      StartAsync(node, p, slots, iteration);
      return;
    case PlanNode::kSync:
      if (!RunKernel<kTimed>(node, p, slots, iteration)) return;
      break;
    case PlanNode::kOnDevice:
      if (!RunOnDevice(node, p, slots, iteration)) return;
      break;
  }
  CompleteFlow(node, iteration, false);
}

template void ExecutorRole::RunReadyFlow<true>();
template void ExecutorRole::RunReadyFlow<false>();
template void ExecutorRole::RunNodeFlow<true>(int32_t, Iteration*, bool, int32_t);
template void ExecutorRole::RunNodeFlow<false>(int32_t, Iteration*, bool, int32_t);

bool ExecutorRole::PlayFlowOp(int32_t node, Iteration* iteration, bool dead) {
  const PlanNode& p = nodes_[node];
  Slot* const slots = iteration->slots;
  const int32_t* inputs = input_slots_ + p.first_input;
  Slot* const outputs = slots + p.first_output;
  switch (flow_->nodes[node].op) {
    case FlowOp::kSwitch: {
      const Tensor& pred = slots[inputs[1]].tensor;
      if (pred.type() != ElementType::kBool || pred.shape().rank() != 0) {
        Fail(node, InvalidArgument("the predicate must be a scalar, but it has shape ",
                                   pred.shape().ToString()));
        return false;
      }
      const int taken = pred.unchecked_scalar<bool>() ? 1 : 0;
      Take(slots[inputs[0]], outputs[taken]);
      outputs[1 - taken].dead = true;
      return true;
    }
    case FlowOp::kMerge: {
      const int32_t chosen = -1 - iteration->states[flow_->nodes[node].local].dead;
      Take(slots[inputs[chosen]], outputs[0]);
      if (iteration->uses[p.first_output + 1] > 0) {
        outputs[1].tensor = Tensor::Scalar<int32_t>(chosen);
      }
      return true;
    }
    case FlowOp::kSend: {
      Slot value;  // A control edge carries nothing.
      if (!dead && p.num_inputs > 0) Take(slots[inputs[0]], value);
      rendezvous_->Send(plan_->spec.edges[flow_->nodes[node].edge], iteration->tag,
                        std::move(value.tensor), dead);
      return true;
    }
    case FlowOp::kLoopCond:
      Take(slots[inputs[0]], outputs[0]);
      return true;
    default:  // What crosses frames and iterations is moved when the node completes.
      return true;
  }
}

void ExecutorRole::Receive(int32_t node, Iteration* iteration) {
  PendingKernel* pending_kernel = NewPendingKernel(node, iteration);
  pending_kernel->phase.store(PendingKernel::Phase::kCalling, std::memory_order_relaxed);
  ++outstanding_;
  try {
    rendezvous_->Receive(plan_->spec.edges[flow_->nodes[node].edge], iteration->tag,
                         pending_kernel);
  } catch (...) {  // Nobody will tell.
    pending_kernel->Received(StatusOfException(), Tensor(), false, Player::kPlays);
  }
  if (pending_kernel->phase.exchange(PendingKernel::Phase::kReturned, std::memory_order_acq_rel) ==
      PendingKernel::Phase::kDone) {
    --outstanding_;
    Finish(pending_kernel);
  }
}

void ExecutorRole::SetReceived(int32_t node, Iteration* iteration, Tensor value) {
  const PlanNode& p = nodes_[node];
  if (p.num_outputs > 0) iteration->slots[p.first_output].tensor = std::move(value);
}

// --- frames and iterations -----------------------------------------------------------------------

void ExecutorRole::Enter(int32_t node, Iteration* iteration, bool dead) {
  const FlowNode& f = flow_->nodes[node];
  const PlanNode& p = nodes_[node];
  FrameInstance*& instance = iteration->children[f.child];
  if (instance == nullptr) {
    if (flow_->free_instances.empty()) {
      flow_->all_instances.push_back(std::make_unique<FrameInstance>());
      flow_->free_instances.push_back(flow_->all_instances.back().get());
    }
    instance = flow_->free_instances.back();
    flow_->free_instances.pop_back();
    instance->live_index = static_cast<int32_t>(flow_->live.size());
    flow_->live.push_back(instance);
    instance->frame = f.enters;
    instance->child = f.child;
    instance->parent = iteration;
    // The same in every partition, whose numbering of frames is its own.
    instance->tag = Mix(iteration->tag, flow_->frame_hashes[f.enters]);
    instance->next_number = 0;
    ++iteration->outstanding;
    instance->enters_to_come = plan_->frames[f.enters].num_enters;
    // The first iteration is not over before everything has entered.
    AddIteration(instance)->outstanding += instance->enters_to_come;
  }
  FrameInstance* const frame = instance;
  Slot& input = iteration->slots[input_slots_[p.first_input]];
  if (IsConstantEnter(f)) {
    FrameInstance::Invariant& invariant = frame->invariants.emplace_back();
    invariant.node = node;
    invariant.dead = dead;
    if (!dead) Take(input, invariant.value);
    for (Iteration* to = frame->first; to != nullptr; to = to->next) {
      Slot& slot = to->slots[p.first_output];
      slot.tensor = invariant.value.tensor;
      slot.ref = invariant.value.ref;
      Deliver(node, to, dead);
      slot.uses = kForever;
    }
  } else {
    if (!dead) Take(input, frame->first->slots[p.first_output]);
    Deliver(node, frame->first, dead);
  }
  ReleaseInputs(node, iteration);
  --frame->enters_to_come;
  LeaveIteration(frame->first);
}

void ExecutorRole::Exit(int32_t node, Iteration* iteration, bool dead) {
  const PlanNode& p = nodes_[node];
  FrameInstance* const frame = iteration->frame;
  if (!dead) {
    Iteration* const to = frame->parent;
    Take(iteration->slots[input_slots_[p.first_input]], to->slots[p.first_output]);
    Deliver(node, to, false);
  } else if (iteration == frame->last) {
    frame->dead_exits.push_back(node);
  }
  ReleaseInputs(node, iteration);
}

void ExecutorRole::NextIteration(int32_t node, Iteration* iteration, bool dead) {
  const PlanNode& p = nodes_[node];
  if (!dead) {
    FrameInstance* const frame = iteration->frame;
    Slot& input = iteration->slots[input_slots_[p.first_input]];
    if (iteration->next == nullptr &&
        frame->num_iterations >= plan_->frames[frame->frame].parallel_iterations) {
      FrameInstance::Waiting& waiting = frame->waiting.emplace_back();
      waiting.node = node;
      Take(input, waiting.value);
    } else {
      Iteration* const to = iteration->next != nullptr ? iteration->next : AddIteration(frame);
      Take(input, to->slots[p.first_output]);
      Deliver(node, to, false);
    }
  } else if (!plan_->spec.edges.empty()) {
    // A dead value begins no iteration. If another variable's value begins one all the same, other
    // partitions wait there for what comes of this one.
    if (iteration->next != nullptr) {
      Deliver(node, iteration->next, true);
    } else {
      iteration->frame->dead_nexts.push_back(node);
    }
  }
  ReleaseInputs(node, iteration);
}

ExecutorRole::Iteration* ExecutorRole::AddIteration(FrameInstance* frame) {
  Iteration* const block = NewIteration(frame);
  if (!frame->dead_nexts.empty()) [[unlikely]] {
    const std::vector<int32_t> dead = std::move(frame->dead_nexts);
    frame->dead_nexts.clear();
    for (int32_t node : dead) Deliver(node, block, true);
  }
  return block;
}

ExecutorRole::Iteration* ExecutorRole::NewIteration(FrameInstance* frame) {
  const PlanFrame& plan = plan_->frames[frame->frame];
  Iteration*& free = frame->free != nullptr ? frame->free : flow_->free_blocks[frame->frame];
  Iteration* block = free;
  if (block != nullptr) {
    free = block->next;
  } else {
    flow_->all_blocks.push_back(std::make_unique<Iteration>());
    block = flow_->all_blocks.back().get();
    block->owned_slots = std::make_unique<Slot[]>(plan.num_slots);
    block->slots = block->owned_slots.get();
    block->uses = slot_uses_ + plan_->frame_uses[frame->frame];
    block->states = std::make_unique<NodeState[]>(plan.num_nodes);
    block->children = std::make_unique<FrameInstance*[]>(plan.num_children);
    for (const auto& [slot, value] : plan.constants) {
      block->slots[slot].tensor = value;
      block->slots[slot].uses = kForever;
    }
  }
  const bool first = frame->last == nullptr && frame->enters_to_come == plan.num_enters;
  block->frame = frame;
  block->next = nullptr;
  block->outstanding = 0;
  block->tag = Mix(frame->tag, ++frame->next_number);
  if (frame->last == nullptr) {
    frame->first = block;
  } else {
    frame->last->next = block;
  }
  frame->last = block;
  ++frame->num_iterations;
  frame->dead_exits.clear();

  if (frame->start.empty()) {
    std::copy(plan.initial.begin(), plan.initial.end(), block->states.get());
    if (first || frame->invariants.empty()) return block;
    const int32_t before = num_ready_;
    for (const FrameInstance::Invariant& invariant : frame->invariants) {
      Slot& slot = block->slots[nodes_[invariant.node].first_output];
      slot.tensor = invariant.value.tensor;
      slot.ref = invariant.value.ref;
      Deliver(invariant.node, block, invariant.dead);
      slot.uses = kForever;
    }
    if (frame->enters_to_come > 0) return block;
    // All are there: later iterations start from here.
    block->has_invariants = true;
    frame->start.assign(block->states.get(), block->states.get() + plan.num_nodes);
    for (int32_t i = before; i < num_ready_; ++i) {
      frame->start_ready.emplace_back(flow_->ready[i].node, flow_->ready[i].dead);
    }
    return block;
  }
  if (!block->has_invariants) {
    for (const FrameInstance::Invariant& invariant : frame->invariants) {
      Slot& slot = block->slots[nodes_[invariant.node].first_output];
      slot.tensor = invariant.value.tensor;
      slot.ref = invariant.value.ref;
      slot.dead = invariant.dead;
      slot.uses = kForever;
    }
    block->has_invariants = true;
  }
  std::copy(frame->start.begin(), frame->start.end(), block->states.get());
  block->outstanding = static_cast<int32_t>(frame->start_ready.size());
  for (const auto& [node, dead] : frame->start_ready) {
    if (num_ready_ == static_cast<int32_t>(flow_->ready.size())) {
      flow_->ready.resize(2 * flow_->ready.size());
    }
    flow_->ready[num_ready_++] = {node, dead, block};
  }
  return block;
}

void ExecutorRole::LeaveIteration(Iteration* iteration) {
  if (--iteration->outstanding > 0) return;
  FrameInstance* const frame = iteration->frame;
  if (frame == &flow_->root_frame) return;
  // Iterations end in order: an older one may still put something into this one.
  while (frame->first != nullptr && frame->first->outstanding == 0) {
    Iteration* const over = frame->first;
    frame->first = over->next;
    if (frame->first == nullptr) frame->last = nullptr;
    --frame->num_iterations;
    // In a loop that is not regular a node may never run; the other end waits all the same.
    for (int32_t send : plan_->frames[frame->frame].sends) {
      const FlowNode& node = flow_->nodes[send];
      if (over->states[node.local].pending == 0) continue;
      rendezvous_->Send(plan_->spec.edges[node.edge], over->tag, Tensor(), /*dead=*/true);
    }
    EndIteration(over);
    over->next = frame->free;
    frame->free = over;
    if (frame->waiting.empty()) continue;
    Iteration* const to = AddIteration(frame);
    for (FrameInstance::Waiting& waiting : frame->waiting) {
      Slot& slot = to->slots[nodes_[waiting.node].first_output];
      slot.tensor = std::move(waiting.value.tensor);
      slot.ref = waiting.value.ref;
      Deliver(waiting.node, to, false);
    }
    frame->waiting.clear();
  }
  if (frame->first == nullptr) EndFrame(frame);
}

void ExecutorRole::EndIteration(Iteration* iteration) {
  const int32_t num_slots = plan_->frames[iteration->frame->frame].num_slots;
  for (int32_t i = 0; i < num_slots; ++i) {
    Slot& slot = iteration->slots[i];
    if (slot.uses > kLong) {
      slot.uses = kForever;
      continue;
    }
    slot.tensor.Reset();
    slot.dead = false;
  }
}

void ExecutorRole::FreeFrame(FrameInstance* frame) {
  Iteration*& free_blocks = flow_->free_blocks[frame->frame];
  while (frame->free != nullptr) {
    Iteration* const block = frame->free;
    frame->free = block->next;
    for (const FrameInstance::Invariant& invariant : frame->invariants) {
      Slot& slot = block->slots[nodes_[invariant.node].first_output];
      slot.tensor.Reset();
      slot.dead = false;
      slot.uses = 0;
    }
    block->has_invariants = false;
    block->frame = nullptr;  // The instance may serve another loop before the block is used again.
    block->next = free_blocks;
    free_blocks = block;
  }
  frame->first = frame->last = nullptr;
  frame->num_iterations = 0;
  frame->invariants.clear();
  frame->start.clear();
  frame->start_ready.clear();
  frame->waiting.clear();
  frame->dead_exits.clear();
  frame->dead_nexts.clear();
  flow_->live.back()->live_index = frame->live_index;
  flow_->live[frame->live_index] = flow_->live.back();
  flow_->live.pop_back();
  flow_->free_instances.push_back(frame);
}

void ExecutorRole::EndFrame(FrameInstance* frame) {
  Iteration* const parent = frame->parent;
  parent->children[frame->child] = nullptr;
  for (int32_t node : frame->dead_exits) Deliver(node, parent, true);
  FreeFrame(frame);
  LeaveIteration(parent);
}

// --- the end -------------------------------------------------------------------------------------

void ExecutorRole::CleanUpFlow() noexcept {
  for (int i = 0; i < plan_->num_slots; ++i) slots_[i].dead = false;
  if (!failed_ && flow_->live.empty()) return;
  // An exception may have left frames and blocks in any state: the next step makes new ones.
  flow_->live.clear();
  flow_->free_instances.clear();
  std::fill(flow_->free_blocks.begin(), flow_->free_blocks.end(), nullptr);
  flow_->all_instances.clear();
  flow_->all_blocks.clear();
}

absl::Status ExecutorRole::MissingFetch(int fetch) const {
  const std::string& name = plan_->name(plan_->spec.fetches[fetch].node);
  if (flow_ == nullptr) return absl::InternalError(StrCat("fetch ", name, " was not computed"));
  if (slots_[plan_->fetch_slots[fetch]].dead) {
    return InvalidArgument("the fetched tensor of node ", name,
                           " is dead: it is on a branch that was not taken; merge the branches, or "
                           "run the node as a target");
  }
  std::string loops;
  for (const FrameInstance* frame : flow_->live) {
    loops += StrCat(
        loops.empty() ? "; loops that wait for something that never came: frame '" : ", frame '",
        plan_->spec.frames[frame->frame].name, "'");
  }
  return InvalidArgument("the fetched tensor of node ", name,
                         " was never computed: what it depends on waits for an input that can "
                         "never come (a Merge without a live input, a loop that is not entered)",
                         loops);
}

}  // namespace troupe
