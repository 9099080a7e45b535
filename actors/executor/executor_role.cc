#include "actors/executor/executor_role.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "actors/executor/flow.h"
#include "actors/executor/on_device.h"
#include "devices/cpu/flush_denormals.h"
#include "devices/exceptions.h"
#include "devices/memory_use.h"
#include "devices/status_macros.h"
#include "kernels/cancellation.h"
#include "kernels/variable.h"

namespace troupe {

namespace {

// How deep executors of a step may play one another on one thread's stack; past that they hand on.
constexpr int kMaxPlayDepth = 8;

thread_local int play_depth = 0;

}  // namespace

ExecutorRole::ExecutorRole(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)),
      nodes_(plan_->nodes.data()),
      input_slots_(plan_->input_slots.data()),
      consumers_(plan_->consumers.data()),
      slot_uses_(plan_->slot_uses.data()),
      pending_(plan_->initial_pending),
      slots_(std::make_unique<Slot[]>(plan_->num_slots)),
      ready_(std::make_unique<int32_t[]>(plan_->num_nodes())),
      clock_(plan_->spec.clock) {
  for (const auto& [slot, value] : plan_->constants) {
    slots_[slot].tensor = value;
    slots_[slot].uses = Slot::kConstant;
  }
  play_task_.executor = this;
  if (plan_->has_flow()) flow_ = std::make_unique<Flow>(*plan_, slots_.get());
  if (plan_->uses_device) on_device_ = std::make_unique<OnDevice>(this);
}

ExecutorRole::~ExecutorRole() = default;

absl::Status ExecutorRole::Run(const StepContext& step, absl::Span<const Tensor> feeds,
                               absl::Span<Tensor> fetches, std::vector<NodeTrace>* trace,
                               ThreadParker* caller) {
  Begin(step, trace);
  caller_ = caller;
  Try([&] {
    for (size_t i = 0; i < feeds.size(); ++i) SetFeed(static_cast<int>(i), feeds[i]);
  });
  PlayAndWait();
  return Finish(fetches);
}

void ExecutorRole::RunAsync(const StepContext& step, absl::Span<Tensor> feeds,
                            StepCompletion* completion, std::vector<NodeTrace>* trace) {
  Begin(step, trace);
  Try([&] {
    for (size_t i = 0; i < feeds.size(); ++i) SetFeed(static_cast<int>(i), std::move(feeds[i]));
  });
  completion_ = completion;
  PlayOn();
}

absl::Status ExecutorRole::Finish(absl::Span<Tensor> fetches) {
  running_ = -1;
  Try([&] {
    for (size_t i = 0; i < fetches.size() && !failed_; ++i) {
      if (!TryFetch(static_cast<int>(i), &fetches[i])) FailStep(MissingFetch(static_cast<int>(i)));
    }
  });
  return Result();
}

bool ExecutorRole::TryFetch(int fetch, Tensor* value) {
  Slot& slot = slots_[plan_->fetch_slots[fetch]];
  if (!slot.tensor.valid() || slot.dead) return false;
  if (slot.uses == 1) {
    *value = std::move(slot.tensor);
    slot.tensor.Reset();
  } else {
    *value = slot.tensor;
  }
  --slot.uses;
  return true;
}

absl::Status ExecutorRole::Result() {
  if (!failed_ && flow_ == nullptr) return absl::OkStatus();
  if (out_of_memory_) [[unlikely]]
    TellWhatIsHeld();
  absl::Status status = std::move(status_);
  CleanUp();  // After a loop some slots may hold what nobody took.
  return status;
}

void ExecutorRole::Begin(const StepContext& step, std::vector<NodeTrace>* trace) {
  [[maybe_unused]] const bool acquired = mailbox_.TryAcquire();
  assert(acquired);
  step_ = step;
  completion_ = nullptr;
  trace_ = trace;
  timed_ = clock_ != nullptr && (plan_->NextRunMeasures() || trace != nullptr);
  can_offload_ = step.pool != nullptr && step.pool->threads() > 1;
  failed_ = false;
  running_ = -1;
  for (const auto& [slot, value] : plan_->constants) slots_[slot].uses = Slot::kConstant;
  if (on_device_ != nullptr) BeginOnDevice(step);
  step_.late_errors = nullptr;  // Host kernels have none.
  if (flow_ != nullptr) return BeginFlow();
  std::copy(plan_->initial_pending.begin(), plan_->initial_pending.end(), pending_.begin());
  const std::vector<int32_t>& roots = plan_->roots;
  std::copy(roots.begin(), roots.end(), ready_.get());
  num_ready_ = static_cast<int32_t>(roots.size());
}

void ExecutorRole::SetFeed(int feed, Tensor value) {
  const int32_t index = plan_->spec.feeds[feed];
  const PlanNode& node = nodes_[index];
  slots_[node.first_output].tensor = std::move(value);
  if (flow_ != nullptr) {
    Deliver(index, flow_->root(), /*dead=*/false);
  } else {
    Complete(node);
  }
}

// --- playing -----------------------------------------------------------------------------------

template <typename F>
inline void ExecutorRole::Try(F&& part) noexcept {
  try {
    part();
  } catch (...) {
    Fail(running_, StatusOfException());
  }
}

void ExecutorRole::PlayAndWait() {
  while (!Play(/*caller=*/true)) {
    if (caller_->Wait() == ThreadParker::Word::kOver) return;
  }
}

bool ExecutorRole::Play(bool caller) noexcept {
  const ScopedFlushDenormals flush;
  while (true) {
    if (handed_over_ == nullptr && outstanding_ > 0) handed_over_ = mailbox_.TakeAll();
    Try([this] {
      HandleMessages();
      if (flow_ != nullptr) {
        timed_ ? RunReadyFlow<true>() : RunReadyFlow<false>();
      } else {
        timed_ ? RunReady<true>() : RunReady<false>();
      }
    });
    // The loop gave way to messages, or to an exception.
    if (num_ready_ > 0 || handed_over_ != nullptr) continue;
    if (outstanding_ == 0) {
      if (on_device_ != nullptr && WaitForDevice()) continue;
      [[maybe_unused]] const bool released = mailbox_.TryRelease();
      assert(released);
      return true;
    }
    Pollable* const polled = on_device_ != nullptr ? on_device_->polled : nullptr;
    const auto come = [this, polled] {
      return mailbox_.HasMessages() ||
             (polled != nullptr && polled->Poll() && mailbox_.HasMessages());
    };
    const uint64_t patience = polled != nullptr ? ThreadParker::kPollNs : ThreadParker::kSpinNs;
    if (come() || (caller && ThreadParker::HelpOrSpin(step_.pool, come, patience))) continue;
    if (mailbox_.TryRelease()) return false;
  }
}

bool ExecutorRole::HandOn() noexcept {
  if (completion_ == nullptr) {
    caller_->Wake(ThreadParker::Word::kPlay);
    return true;
  }
  if (completion_->PlayByCaller(&play_task_)) return true;
  if (step_.pool == nullptr) return false;
  try {
    step_.pool->SubmitLong(&play_task_);
  } catch (...) {  // No thread could be made.
    return false;
  }
  return true;
}

void ExecutorRole::Send(PendingKernel* message, Player player) noexcept {
  if (!mailbox_.Send(message)) return;
  message->next = nullptr;
  handed_over_ = message;
  if ((player == Player::kHandsOn || play_depth >= kMaxPlayDepth) && HandOn()) return;
  ++play_depth;
  PlayOn();
  --play_depth;
}

void ExecutorRole::PlayOn() noexcept {
  // The role may be gone once the token is released.
  ThreadParker* caller = caller_;
  StepCompletion* completion = completion_;
  if (!Play(/*caller=*/false)) return;
  if (completion != nullptr) {
    completion->Over();
  } else {
    caller->Wake(ThreadParker::Word::kOver);
  }
}

void ExecutorRole::HandleMessages() {
  while (handed_over_ != nullptr) {
    auto* pending_kernel = static_cast<PendingKernel*>(handed_over_);
    handed_over_ = handed_over_->next;
    --outstanding_;
    if (pending_kernel->news != PendingKernel::News::kResume) {
      const bool done = pending_kernel->news == PendingKernel::News::kDone;
      done ? Finish(pending_kernel) : HandleMark(pending_kernel);
      continue;
    }
    const int32_t node = pending_kernel->node;
    const int32_t next = pending_kernel->next_snapshot;
    Iteration* iteration = pending_kernel->iteration;
    if (!pending_kernel->status.ok()) Fail(node, pending_kernel->status);
    Recycle(pending_kernel);
    if (failed_) continue;
    if (iteration != nullptr) {
      timed_ ? RunNodeFlow<true>(node, iteration, false, next)
             : RunNodeFlow<false>(node, iteration, false, next);
    } else {
      timed_ ? RunNode<true>(node, next) : RunNode<false>(node, next);
    }
  }
}

// --- nodes -------------------------------------------------------------------------------------

KernelContext ExecutorRole::MakeContext(const PlanNode& node, Slot* slots) {
  const int32_t* inputs = input_slots_ + node.first_input;
  const uint64_t forwardable = LastUses(node, slots, [](const Tensor&) { return true; });
  return KernelContext(&step_, slots, inputs, node.num_inputs, slots + node.first_output,
                       node.num_outputs, forwardable);
}

inline void ExecutorRole::Complete(const PlanNode& node) {
  Slot* slots = slots_.get();
  const int32_t* inputs = input_slots_ + node.first_input;
  for (int i = 0; i < node.num_inputs; ++i) {
    Slot& slot = slots[inputs[i]];
    if (--slot.uses == 0) slot.tensor.Reset();
  }
  const int32_t* uses = slot_uses_ + node.first_output;
  for (int i = 0; i < node.num_outputs; ++i) {
    Slot& slot = slots[node.first_output + i];
    slot.uses = uses[i];
    if (uses[i] == 0) slot.tensor.Reset();
  }
  const int32_t* consumers = consumers_ + node.first_consumer;
  for (int32_t i = 0; i < node.num_consumers; ++i) {
    if (--pending_[consumers[i]] == 0) ready_[num_ready_++] = consumers[i];
  }
}

template <bool kTimed>
void ExecutorRole::RunReady() {
  while (num_ready_ > 0) {
    if (step_.cancellation->cancelled()) [[unlikely]] {
      FailStep(step_.cancellation->status());
      return;
    }
    RunNode<kTimed>(ready_[--num_ready_], 0);
    if (outstanding_ > 0 && mailbox_.HasMessages()) return;
  }
}

template <bool kTimed>
inline void ExecutorRole::RunNode(int32_t node, int32_t next_snapshot) {
  running_ = node;
  const PlanNode& p = nodes_[node];
  if (p.has_snapshots && !TakeSnapshots(node, next_snapshot, slots_.get(), nullptr)) return;
  switch (p.kind) {
    case PlanNode::kNothing:
    case PlanNode::kFlow:
      break;
    case PlanNode::kPassThrough: {
      KernelContext ctx = MakeContext(p, slots_.get());
      ctx.PassThrough(0, 0);
      break;
    }
    case PlanNode::kAsync:
      StartAsync(node, p, slots_.get(), nullptr);
      return;
    case PlanNode::kSync:
      if (!RunKernel<kTimed>(node, p, slots_.get(), nullptr)) return;
      break;
    case PlanNode::kOnDevice:
      if (!RunOnDevice(node, p, slots_.get(), nullptr)) return;
      break;
  }
  Complete(p);
}

bool ExecutorRole::TakeSnapshots(int32_t node, int32_t next, Slot* slots, Iteration* iteration) {
  const int32_t last = static_cast<int32_t>(plan_->snapshots.size());
  const Plan::Snapshot* all = plan_->snapshots.data();
  if (next == 0) next = static_cast<int32_t>(plan_->SnapshotsOf(node) - all);
  for (; next < last && all[next].node == node; ++next) {
    Variable* variable = slots[all[next].ref_slot].ref;
    if (variable == nullptr) {
      Fail(node, absl::InternalError("a reference input has no variable behind it"));
      return false;
    }
    // The visitor writes the slot, on whatever thread: no one else looks at it before the node goes
    // on.
    auto take = [slot = &slots[all[next].value_slot], variable](const Variable::Lease& lease) {
      if (!lease.value().valid()) {
        return absl::FailedPreconditionError(StrCat("Attempting to use uninitialized value ",
                                                    variable->name(),
                                                    ". Run its initializer (Assign) first."));
      }
      slot->tensor = lease.value();
      slot->uses = 1;
      return absl::OkStatus();
    };
    if (Variable::Lease lease = variable->TryLend()) {
      absl::Status status = take(lease);
      if (!status.ok()) {
        lease.Release();
        Fail(node, status);
        return false;
      }
      continue;
    }
    PendingKernel* pending_kernel = NewPendingKernel(node, iteration);
    pending_kernel->news = PendingKernel::News::kResume;
    pending_kernel->next_snapshot = next + 1;
    ++outstanding_;
    try {
      variable->Lend([take, pending_kernel](Variable::Lease lease) {
        pending_kernel->status = CatchExceptions([&] { return take(lease); });
        lease.Release();
        pending_kernel->executor->Send(pending_kernel, Player::kHandsOn);
      });
    } catch (...) {  // Nobody will visit.
      pending_kernel->status = StatusOfException();
      Send(pending_kernel, Player::kPlays);
    }
    return false;
  }
  return true;
}

void ExecutorRole::StartAsync(int32_t node, const PlanNode& plan_node, Slot* slots,
                              Iteration* iteration) {
  PendingKernel* pending_kernel = NewPendingKernel(node, iteration);
  pending_kernel->phase.store(PendingKernel::Phase::kCalling, std::memory_order_relaxed);
  pending_kernel->ctx = plan_node.on_device ? AsyncContextOnDevice(pending_kernel, plan_node, slots)
                                            : MakeContext(plan_node, slots);
  ++outstanding_;
  if (can_offload_ && !plan_node.on_device && num_ready_ > 0 &&
      plan_->cost_ns(node) >= kOffloadNs) {
    // It holds the thread for long: a call of a function, most likely.
    step_.pool->Submit(pending_kernel);
    return;
  }
  uint64_t start = 0;
  if (timed_) pending_kernel->start_ns = start = clock_->NowNs();
  if (plan_node.on_device) {
    BeginAsyncOnDevice(pending_kernel, plan_node);
  } else {
    pending_kernel->BeginAsync(plan_node.kernel);
  }
  if (timed_ && !plan_node.on_device) plan_->RecordCost(node, clock_->NowNs() - start);
  if (pending_kernel->phase.exchange(PendingKernel::Phase::kReturned, std::memory_order_acq_rel) ==
      PendingKernel::Phase::kDone) {
    --outstanding_;
    Finish(pending_kernel);
  }
}

ExecutorRole::PendingKernel::PendingKernel() : ctx(nullptr, nullptr, nullptr, 0, nullptr, 0, 0) {}

ExecutorRole::PendingKernel::~PendingKernel() = default;

void ExecutorRole::PendingKernel::BeginAsync(Kernel* kernel) noexcept {
  try {
    static_cast<AsyncKernel*>(kernel)->ComputeAsync(
        ctx, KernelDone{&ExecutorRole::AsyncDone, executor, this});
  } catch (...) {
    AsyncDone(executor, this, StatusOfException(), Player::kPlays, nullptr);
  }
}

void ExecutorRole::AsyncDone(void* self, void* node, absl::Status status, Player player,
                             std::unique_ptr<KernelRest> rest) noexcept {
  auto* pending_kernel = static_cast<PendingKernel*>(node);
  auto* executor = static_cast<ExecutorRole*>(self);
  pending_kernel->status = std::move(status);
  pending_kernel->rest = std::move(rest);
  if (executor->timed_) pending_kernel->end_ns = executor->clock_->NowNs();
  executor->AsyncOver(pending_kernel, player);
}

void ExecutorRole::AsyncOver(PendingKernel* pending_kernel, Player player) noexcept {
  if (pending_kernel->phase.exchange(PendingKernel::Phase::kDone, std::memory_order_acq_rel) ==
      PendingKernel::Phase::kReturned) {
    Send(pending_kernel, player);
  }
}

void ExecutorRole::PendingKernel::Received(absl::Status received, Tensor tensor, bool is_dead,
                                           Player player) noexcept {
  status = std::move(received);
  value = std::move(tensor);
  dead = is_dead;
  executor->AsyncOver(this, player);
}

void ExecutorRole::Offload(int32_t node, const PlanNode& plan_node, Slot* slots,
                           Iteration* iteration) {
  PendingKernel* pending_kernel = NewPendingKernel(node, iteration);
  pending_kernel->ctx = MakeContext(plan_node, slots);
  ++outstanding_;
  step_.pool->Submit(pending_kernel);
}

void ExecutorRole::PendingKernel::Run() noexcept {
  const bool timed = executor->timed_;
  TimeSource* const clock = executor->clock_;
  const PlanNode& plan_node = executor->plan_->nodes[node];
  uint64_t start = 0;
  if (timed) start_ns = start = clock->NowNs();
  if (executor->step_.cancellation->cancelled()) {
    status = executor->step_.cancellation->status();
  } else if (plan_node.kind == PlanNode::kAsync) {
    BeginAsync(plan_node.kernel);
    if (timed) executor->plan_->RecordCost(node, clock->NowNs() - start);
    // Nothing may be touched any more if the completion comes second.
    if (phase.exchange(Phase::kReturned, std::memory_order_acq_rel) == Phase::kDone) {
      executor->Send(this, Player::kPlays);
    }
    return;
  } else {
    status = CatchExceptions([&] { return plan_node.kernel->Compute(ctx); });
    if (timed) executor->plan_->RecordOutputs(node, ctx);
  }
  if (timed) end_ns = clock->NowNs();
  executor->Send(this, Player::kPlays);
}

void ExecutorRole::Finish(PendingKernel* pending_kernel) {
  const int32_t node = running_ = pending_kernel->node;
  if (std::unique_ptr<KernelRest> rest = std::move(pending_kernel->rest)) {
    if (pending_kernel->status.ok()) {
      pending_kernel->status = CatchExceptions([&] { return rest->Finish(); });
    }
  }
  Iteration* iteration = pending_kernel->iteration;
  if (nodes_[node].on_device) EnqueuedBy(pending_kernel);
  const bool dead = pending_kernel->dead;
  const uint64_t start = pending_kernel->start_ns, end = pending_kernel->end_ns;
  Tensor value = std::move(pending_kernel->value);
  pending_kernel->value.Reset();
  if (!pending_kernel->status.ok() && (on_device_ == nullptr || !FailedLate())) {
    Fail(node, pending_kernel->status);
  }
  Recycle(pending_kernel);
  if (timed_ && end > start) {
    const bool sync = plan_->nodes[node].kind == PlanNode::kSync;
    if (sync) plan_->RecordCost(node, end - start);
    Trace({node, sync ? 1 : 0, start, end});
  }
  if (on_device_ != nullptr) FailedLate();
  if (failed_) return;
  if (value.valid()) SetReceived(node, iteration, std::move(value));
  if (iteration != nullptr) {
    CompleteFlow(node, iteration, dead);
  } else {
    Complete(nodes_[node]);
  }
}

// --- failure -----------------------------------------------------------------------------------

void ExecutorRole::Fail(int32_t node, const absl::Status& status) noexcept {
  if (!failed_) out_of_memory_ = IsOutOfMemory(status);
  if (failed_ || node < 0) return FailStep(status);
  std::string where;
  try {
    where = StrCat("\n\t [[node ", plan_->name(node), " = ", plan_->op(node), " on ",
                   plan_->spec.device_name, "]]");
  } catch (const std::bad_alloc&) {  // Then the status says it all.
  }
  FailStep(WithContext("", status, where));
}

void ExecutorRole::FailStep(const absl::Status& status) noexcept {
  num_ready_ = 0;
  if (failed_) return;
  failed_ = true;
  status_ = status;
  // Wakes whatever this step still waits for.
  step_.cancellation->Cancel(status);
}

void ExecutorRole::CleanUp() noexcept {
  for (int i = 0; i < plan_->num_slots; ++i) {
    if (slots_[i].uses <= kLong) slots_[i].tensor.Reset();  // Constants stay.
  }
  if (flow_ != nullptr) CleanUpFlow();
  status_ = absl::OkStatus();
  failed_ = out_of_memory_ = false;
}

ExecutorRole::PendingKernel* ExecutorRole::NewPendingKernel(int32_t node, Iteration* iteration) {
  PendingKernel* pending_kernel = free_;
  if (pending_kernel != nullptr) {
    free_ = pending_kernel->next_free;
  } else {
    auto made = std::make_unique<PendingKernel>();
    pending_kernel = made.get();
    pending_kernel->executor = this;
    all_pending_kernels_.push_back(std::move(made));
  }
  pending_kernel->node = node;
  pending_kernel->iteration = iteration;
  pending_kernel->news = PendingKernel::News::kDone;
  pending_kernel->dead = false;
  pending_kernel->status = absl::OkStatus();
  pending_kernel->start_ns = pending_kernel->end_ns = 0;
  return pending_kernel;
}

void ExecutorRole::Recycle(PendingKernel* pending_kernel) {
  pending_kernel->next_free = free_;
  free_ = pending_kernel;
}

}  // namespace troupe
