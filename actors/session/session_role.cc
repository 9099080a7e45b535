#include "actors/session/session_role.h"

#include <condition_variable>
#include <iterator>
#include <new>

#include "actors/session/partial_step.h"
#include "actors/session/step_stats.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

absl::Status LateError(absl::Duration timeout) {
  return absl::DeadlineExceededError(
      StrCat("the run did not finish within ", absl::FormatDuration(timeout)));
}

/// Has `token` cancelled when `left` of `timeout` is over.
void SetDeadline(ScopedDeadline* deadline, DeadlineTimer* timer, absl::Duration timeout,
                 absl::Duration left, CancellationToken* token) {
  if (timeout == absl::InfiniteDuration()) return;
  deadline->Set(timer, left, [token, late = LateError(timeout)] { token->Cancel(late); });
}

/// Adds what a traced step has recorded, per partition.
void AddTraces(const CompiledStep& compiled, const std::vector<std::vector<NodeTrace>>& traces,
               RunMetadata* metadata) {
  for (size_t i = 0; i < traces.size(); ++i) {
    AddStepStats(*compiled.partitions[i].plan, traces[i], metadata);
  }
}

}  // namespace

SessionRole::SessionRole(std::shared_ptr<Graph> graph, std::shared_ptr<Runtime> runtime,
                         Options options)
    : graph_(std::move(graph)),
      runtime_(std::move(runtime)),
      options_(options),
      functions_(graph_, runtime_.get(), options_.compile),
      async_steps_(std::make_shared<AsyncSteps>()) {}

SessionRole::~SessionRole() {
  CatchExceptions([this] { return Close(); }).IgnoreError();
}

absl::Status SessionRole::ClosedError() const {
  return absl::CancelledError("the session has been closed");
}

// Signatures.

namespace {
/// `kind` tells the keys by name from those by tensor.
void BeginKey(char kind, int64_t placement_round, std::string* key) {
  key->assign(1, kind);
  if (placement_round > 0) key->append(StrCat(placement_round, ";"));
}
}  // namespace

absl::StatusOr<std::shared_ptr<Executable>> SessionRole::Prepare(
    absl::Span<const std::pair<std::string, Tensor>> feeds, absl::Span<const std::string> fetches,
    absl::Span<const std::string> targets) {
  thread_local std::string key;
  BeginKey('n', placement_round_.load(std::memory_order_relaxed), &key);
  for (const auto& feed : feeds) (key += feed.first) += '\0';
  key += '\1';
  for (const std::string& name : fetches) (key += name) += '\0';
  key += '\1';
  for (const std::string& name : targets) (key += name) += '\0';
  if (std::shared_ptr<Executable> known = FindSignature(key)) return known;
  std::vector<std::string> feed_names;
  for (const auto& feed : feeds) feed_names.push_back(feed.first);
  return CompileAndCache(
      key, StepSignature::FromNames(*graph_, feed_names, {fetches.begin(), fetches.end()},
                                    {targets.begin(), targets.end()}));
}

absl::StatusOr<std::shared_ptr<Executable>> SessionRole::Prepare(const StepSignature& signature) {
  thread_local std::string key;
  BeginKey('t', placement_round_.load(std::memory_order_relaxed), &key);
  auto append = [&](const Node* node, int32_t port) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): it is the pointer that tells nodes apart.
    key.append(reinterpret_cast<const char*>(&node), sizeof(node));
    key.append(reinterpret_cast<const char*>(&port), sizeof(port));
  };
  for (const Output& feed : signature.feeds) append(feed.node, feed.index);
  key += '\1';
  for (const Output& fetch : signature.fetches) append(fetch.node, fetch.index);
  key += '\1';
  for (const Node* target : signature.targets) append(target, 0);
  if (std::shared_ptr<Executable> known = FindSignature(key)) return known;
  TROUPE_RETURN_IF_ERROR(signature.Check(*graph_));
  return CompileAndCache(key, signature);
}

std::shared_ptr<Executable> SessionRole::FindSignature(const std::string& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = signatures_.find(key);
  if (it == signatures_.end()) return nullptr;
  Touch(&it->second);
  return it->second.executable;
}

void SessionRole::Touch(Signature* signature) {
  if (signature->place == by_use_.begin()) return;
  // Whoever stays the newest needs no clock.
  signatures_.at(*by_use_.front()).used_ns = NowNs();
  by_use_.splice(by_use_.begin(), by_use_, signature->place);
}

std::vector<std::shared_ptr<Executable>> SessionRole::GiveUpSignatures() {
  std::vector<std::shared_ptr<Executable>> given_up;
  const auto old = [this, now = NowNs()](const Signature& signature) {
    return absl::Nanoseconds(now - signature.used_ns) > options_.signature_age;
  };
  auto it = by_use_.end();
  while (it != by_use_.begin() && --it != by_use_.begin()) {
    auto found = signatures_.find(**it);
    if (signatures_.size() <= options_.max_signatures && !old(found->second)) break;
    if (found->second.executable.use_count() > 1) continue;  // A step or a callable holds it.
    given_up.push_back(std::move(found->second.executable));
    it = by_use_.erase(it);
    signatures_.erase(found);
  }
  return given_up;
}

absl::StatusOr<std::shared_ptr<Executable>> SessionRole::CompileAndCache(
    std::string key, const absl::StatusOr<StepSignature>& signature) {
  if (closed_) return ClosedError();
  if (!signature.ok()) return signature.status();
  TROUPE_ASSIGN_OR_RETURN(CompiledStep compiled, Compile(*graph_, *signature, options_.compile,
                                                         runtime_.get(), &stateful_kernels_));
  auto executable = std::make_shared<Executable>(std::move(compiled));
  std::list<const std::string*> place(1);
  std::vector<std::shared_ptr<Executable>> given_up;
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return ClosedError();
  auto [it, is_new] = signatures_.try_emplace(std::move(key));
  // Two threads may have compiled the same signature at once: the first one's is kept.
  if (!is_new) return it->second.executable;
  place.front() = &it->first;
  it->second = {std::move(executable), place.begin(), NowNs()};
  by_use_.splice(by_use_.end(), place);
  Touch(&it->second);
  given_up = GiveUpSignatures();
  return it->second.executable;
}

size_t SessionRole::num_signatures() {
  std::lock_guard<std::mutex> lock(mutex_);
  return signatures_.size();
}

// Steps.

StepContext SessionRole::MakeStepContext(CancellationToken* cancellation, Containers* resources) {
  StepContext context;
  context.step_id = next_step_id_.fetch_add(1, std::memory_order_relaxed);
  context.allocator = HostAllocator();
  context.pool = runtime_->pool();
  context.cancellation = cancellation;
  context.step_resources = resources;
  context.functions = &functions_;
  return context;
}

absl::Status SessionRole::Run(Executable* executable, absl::Span<const Tensor> feeds,
                              absl::Span<Tensor> fetches, const StepOptions& options,
                              RunMetadata* metadata, ThreadParker* caller) {
  TROUPE_RETURN_IF_ERROR(executable->CheckFeeds(feeds));
  const CompiledStep& compiled = executable->compiled();
  if (static_cast<int>(fetches.size()) != compiled.num_fetches) {
    return InvalidArgument("expected room for ", compiled.num_fetches, " fetched tensors, got ",
                           fetches.size());
  }
  TROUPE_ASSIGN_OR_RETURN(Executable::Step * step, executable->Acquire());
  ScopedDeadline deadline;
  absl::Status status = CatchExceptions([&] {
    SetDeadline(&deadline, runtime_->timer(), options.timeout, options.timeout,
                &step->cancellation);
    const bool traced = options.trace && metadata != nullptr;
    std::vector<std::vector<NodeTrace>> traces;
    absl::Status result =
        step->executors.Run(MakeStepContext(&step->cancellation, &step->resources), feeds, fetches,
                            traced ? &traces : nullptr, caller);
    if (traced) AddTraces(compiled, traces, metadata);
    return result;
  });
  deadline.Clear();
  executable->Release(step);
  return status;
}

/// Counts the asynchronous steps that have been asked for and not been answered. Thread-safe.
class SessionRole::AsyncSteps {
 public:
  void Enter() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
  }
  void Leave() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  bool WaitForNone(DeadlineTimer* timer, absl::Duration patience) {
    return WaitWithin(timer, patience, &mutex_, &none_, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int64_t count_ = 0;
};

/// Begun by one task of the pool and answered by another, so that a callback has nothing of other
/// steps below it on its stack. If its deadline passes before it begins, the spare thread answers
/// it: the workers may all be busy, and callbacks would hold up the timer. Owns itself.
struct SessionRole::AsyncStep final : PoolTask {
  AsyncStep(std::shared_ptr<SessionRole> s, AsyncRun r) noexcept
      : session(std::move(s)), run(std::move(r)), asked_ns(session->NowNs()) {
    answer.step = this;
  }

  void Run() noexcept override { ended ? End() : Begin(); }
  void Over(absl::Status result) noexcept {
    status = std::move(result);
    ended = true;
    session->runtime_->pool()->SubmitLong(this);
  }

  /// From now on the step is answered, if no worker has begun it, when its deadline passes.
  void WatchDeadline() {
    const absl::Duration timeout = run.options.timeout;
    if (timeout <= absl::ZeroDuration()) {
      Expire();
    } else if (timeout < absl::InfiniteDuration()) {
      deadline_id = session->runtime_->timer()->Add(timeout, [this] { Expire(); });
    }
  }

  void Expire() noexcept {
    ++holders;
    try {  // The step may be over at once.
      session->runtime_->spare_thread()->SubmitLong(&answer);
    } catch (...) {  // Then whoever begins it finds that it is late.
      --holders;
    }
  }

  void AnswerLate() noexcept {
    if (taken.exchange(true)) return LetGo();
    EndWith(CatchExceptions([this] { return LateError(run.options.timeout); }));
  }

  /// True if the step is not answered already because it is late, and will not be.
  bool Take() noexcept {
    if (taken.exchange(true)) return false;
    if (deadline_id != 0) session->runtime_->timer()->Remove(deadline_id);
    return true;
  }

  void Begin() noexcept {
    if (!Take()) return LetGo();
    absl::Status begun = CatchExceptions([this] { return Start(); });
    if (begun.ok()) return;  // From now on the step may be over.
    deadline.Clear();
    if (step != nullptr) executable->Release(std::exchange(step, nullptr));
    EndWith(std::move(begun));
  }

  absl::Status Start() {
    if (session->closed_) return session->ClosedError();
    TROUPE_RETURN_IF_ERROR(run.signature.status());
    TROUPE_ASSIGN_OR_RETURN(executable, session->Prepare(*run.signature));
    TROUPE_RETURN_IF_ERROR(executable->CheckFeeds(run.feeds));
    values.resize(run.signature->fetches.size());
    TROUPE_ASSIGN_OR_RETURN(step, executable->Acquire());
    const StepContext context = session->MakeStepContext(&step->cancellation, &step->resources);
    SetDeadline(&deadline, session->runtime_->timer(), run.options.timeout,
                run.options.timeout - session->Since(asked_ns), &step->cancellation);
    const bool traced = run.options.trace && run.metadata != nullptr;
    step->executors.RunAsync(
        context, absl::MakeSpan(run.feeds), absl::MakeSpan(values),
        [this](absl::Status result) { Over(std::move(result)); }, traced ? &traces : nullptr);
    return absl::OkStatus();
  }

  void EndWith(absl::Status result) noexcept {
    status = std::move(result);
    End();
  }

  void End() noexcept {
    deadline.Clear();
    if (step != nullptr) {
      KeepGoing([this] { AddTraces(executable->compiled(), traces, run.metadata); });
      executable->Release(step);
    }
    KeepGoing([this] {  // The callback is the user's.
      if (status.ok()) {
        run.done(std::move(values));
      } else {
        run.done(std::move(status));
      }
    });
    // What the callback holds, and the session, go before whoever waits in `Close` hears of it.
    const std::shared_ptr<AsyncSteps> all = session->async_steps_;
    run = AsyncRun();
    values.clear();
    traces.clear();
    executable.reset();
    session.reset();
    LetGo();
    all->Leave();
  }

  void LetGo() noexcept {
    if (--holders == 0) delete this;
  }

  std::shared_ptr<SessionRole> session;
  AsyncRun run;
  const uint64_t asked_ns;
  struct Answer final : PoolTask {
    void Run() noexcept override { step->AnswerLate(); }
    AsyncStep* step = nullptr;
  } answer;
  std::atomic<int> holders{1};     ///< The pool's queue or a running step; `answer`.
  std::atomic<bool> taken{false};  ///< It has begun, or is answered because it is late.
  std::shared_ptr<Executable> executable;
  Executable::Step* step = nullptr;
  std::vector<Tensor> values;
  std::vector<std::vector<NodeTrace>> traces;
  uint64_t deadline_id = 0;  ///< While the step has not begun; not `answer`'s.
  ScopedDeadline deadline;
  absl::Status status;
  bool ended = false;
};

void SessionRole::RunAsync(AsyncRun run) {
  const std::shared_ptr<SessionRole> self = shared_from_this();  // A callback may end the session.
  // Whatever is missing, the callback is called.
  auto* step = new (std::nothrow) AsyncStep(self, std::move(run));
  if (step == nullptr) {
    const absl::Status none =
        CatchExceptions([] { return absl::ResourceExhaustedError("no memory for a run"); });
    // NOLINTNEXTLINE(bugprone-use-after-move): without memory nothing has been moved.
    KeepGoing([&] { run.done(none); });
    return;
  }
  async_steps_->Enter();
  absl::Status submitted = CatchExceptions([&] {
    step->WatchDeadline();
    runtime_->pool()->SubmitLong(step);
    return absl::OkStatus();
  });
  if (submitted.ok()) return;  // From now on the step may be over.
  if (!step->Take()) return step->LetGo();
  step->EndWith(std::move(submitted));
}

// Partial runs.

absl::StatusOr<std::string> SessionRole::PartialRunSetup(const std::vector<std::string>& feeds,
                                                         const std::vector<std::string>& fetches,
                                                         const std::vector<std::string>& targets,
                                                         absl::Duration timeout) {
  if (closed_) return ClosedError();
  TROUPE_ASSIGN_OR_RETURN(StepSignature signature,
                          StepSignature::FromNames(*graph_, feeds, fetches, targets));
  const std::string handle = StrCat("partial_run_", next_partial_.fetch_add(1));
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<PartialStep> step,
                          PartialStep::Create(handle, graph_.get(), signature, options_.compile,
                                              runtime_, &stateful_kernels_));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return ClosedError();
    partial_steps_.emplace(handle, step);
  }
  const absl::Status status = CatchExceptions([&] {
    step->Start(MakeStepContext(nullptr, nullptr), timeout, shared_from_this());
    return absl::OkStatus();
  });
  if (status.ok()) return handle;
  std::lock_guard<std::mutex> lock(mutex_);
  partial_steps_.erase(handle);
  return status;
}

absl::Status SessionRole::PartialRun(const std::string& handle,
                                     absl::Span<const std::pair<std::string, Tensor>> feeds,
                                     absl::Span<const std::string> fetches,
                                     std::vector<Tensor>* values, absl::Duration timeout) {
  std::shared_ptr<PartialStep> step;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return ClosedError();
    auto it = partial_steps_.find(handle);
    if (it == partial_steps_.end()) {
      return InvalidArgument("there is no partial run ", handle,
                             ": it was never set up, or is over");
    }
    step = it->second;
  }
  bool over = false;
  absl::Status status = step->Run(feeds, fetches, values, timeout, &over);
  if (over) {
    std::lock_guard<std::mutex> lock(mutex_);
    partial_steps_.erase(handle);
  }
  return status;
}

// The end.

KernelStates SessionRole::SaveKernelStates() {
  KernelStates states;
  stateful_kernels_.SaveStates("", &states);
  functions_.SaveStates(&states);
  return states;
}

void SessionRole::RestoreKernelStates(const KernelStates& states) {
  stateful_kernels_.RestoreStates("", states);
  functions_.RestoreStates(states);
}

absl::Status SessionRole::Close() {
  std::unordered_map<std::string, std::shared_ptr<PartialStep>> partial_steps;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;  // From now on no signature comes or goes.
    partial_steps.swap(partial_steps_);
  }
  const absl::Status closed = CatchExceptions([this] { return ClosedError(); });
  for (const auto& [key, signature] : signatures_) signature.executable->Close(closed);
  for (const auto& [handle, step] : partial_steps) step->Cancel(closed);
  // What is to be waited for may need this very thread.
  if (runtime_->pool()->OnWorker() || runtime_->spare_thread()->OnWorker()) return absl::OkStatus();
  const auto left = [&, now = NowNs()] { return options_.close_timeout - Since(now); };
  bool idle = true;
  DeadlineTimer* const timer = runtime_->timer();
  for (const auto& [key, signature] : signatures_) {
    idle &= signature.executable->WaitIdle(timer, left());
  }
  for (const auto& [handle, step] : partial_steps) idle &= step->WaitOver(left());
  idle &= async_steps_->WaitForNone(timer, left());
  if (idle) return absl::OkStatus();
  return absl::DeadlineExceededError(
      "a running step did not stop when the session was closed; its kernels are still at work");
}

absl::Status SessionRole::Reset(absl::Span<const std::string> containers) {
  runtime_->ResetContainers(containers);
  return absl::OkStatus();
}

}  // namespace troupe
