#include "actors/session/session_role.h"

#include <map>
#include <set>

#include "actors/session/step_stats.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

// --- Executable --------------------------------------------------------------------------------

namespace {
// Enough executors to go on with at once are kept; a burst of concurrent steps leaves no more.
constexpr size_t kKept = 16;
}  // namespace

Executable::Step::Step(const CompiledStep& compiled) {
  if (compiled.plan != nullptr) {
    executor = std::make_unique<ExecutorRole>(compiled.plan);
  } else {
    partitioned = std::make_unique<PartitionedStep>(compiled.partitions);
  }
}

absl::StatusOr<Executable::Step*> Executable::Acquire() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (free_.empty()) {
    free_.reserve(kKept);  // `Release` needs no memory.
    steps_.push_back(std::make_unique<Step>(compiled_));
    free_.push_back(steps_.back().get());
  }
  Step* step = free_.back();
  free_.pop_back();
  step->running = true;
  return step;
}

void Executable::Release(Step* step) noexcept {
  std::unique_ptr<Step> surplus;
  if (step->resources.used()) step->resources.ResetAll();
  std::lock_guard<std::mutex> lock(mutex_);
  step->running = false;
  step->cancellation.Reset();
  if (free_.size() < kKept) {
    free_.push_back(step);
  } else {
    for (auto& owned : steps_) {
      if (owned.get() != step) continue;
      surplus = std::move(owned);
      owned = std::move(steps_.back());
      steps_.pop_back();
      break;
    }
  }
  if (!closed_.ok()) idle_.notify_all();
}

void Executable::Close(const absl::Status& reason) {
  std::vector<Step*> running;
  std::unique_lock<std::mutex> lock(mutex_);
  closed_ = reason;
  for (const auto& step : steps_) {
    // Under the lock, so that the step is not released and destroyed meanwhile; a token's callbacks
    // only wake waiters and send messages.
    if (step->running) running.push_back(step.get());
  }
  for (Step* step : running) step->cancellation.Cancel(reason);
}

bool Executable::WaitIdle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return idle_.wait_until(lock, deadline, [this] {
    for (const auto& step : steps_) {
      if (step->running) return false;
    }
    return true;
  });
}

absl::Status Executable::CheckFeed(int feed, const Tensor& value) const {
  const auto& [type, shape] = compiled_.feed_types[feed];
  if (!value.valid()) {
    return InvalidArgument("feed ", compiled_.feed_names[feed], " has no value");
  }
  if (value.type() != type) {
    return InvalidArgument("feed ", compiled_.feed_names[feed], " has element type ",
                           ElementTypeName(value.type()), ", expected ", ElementTypeName(type));
  }
  if (!shape.IsCompatibleWith(value.shape())) {
    return InvalidArgument("feed ", compiled_.feed_names[feed], " has shape ",
                           value.shape().ToString(), ", which does not fit ", shape.ToString());
  }
  return absl::OkStatus();
}

absl::Status Executable::CheckFeeds(absl::Span<const Tensor> feeds) const {
  if (feeds.size() != compiled_.feed_types.size()) {
    return InvalidArgument("expected ", compiled_.feed_types.size(), " feeds, got ", feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(CheckFeed(static_cast<int>(i), feeds[i]));
  }
  return absl::OkStatus();
}

// --- SessionRole -------------------------------------------------------------------------------

struct SessionRole::PartialStep {
  std::mutex mutex;  ///< One PartialRun of a handle at a time.
  std::shared_ptr<Executable> executable;
  Executable::Step* step = nullptr;
  StepContext context;
  std::map<std::string, int> feeds, fetches;  ///< What is still to come, by name.
  bool over = false;

  ~PartialStep() { End(); }
  void End() noexcept {
    if (over || step == nullptr) return;
    over = true;
    step->executor->End().IgnoreError();
    executable->Release(step);
  }
};

SessionRole::SessionRole(std::shared_ptr<Graph> graph, std::shared_ptr<Runtime> runtime,
                         Options options)
    : graph_(std::move(graph)),
      runtime_(std::move(runtime)),
      options_(std::move(options)),
      functions_(graph_, runtime_.get(), options_.compile) {}

SessionRole::~SessionRole() { Close().IgnoreError(); }

absl::Status SessionRole::ClosedError() const {
  return absl::CancelledError("the session has been closed");
}

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
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = executables_.find(key); it != executables_.end()) return it->second;
  }
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
    key.append(reinterpret_cast<const char*>(&node), sizeof(node));
    key.append(reinterpret_cast<const char*>(&port), sizeof(port));
  };
  for (const Output& feed : signature.feeds) append(feed.node, feed.index);
  key += '\1';
  for (const Output& fetch : signature.fetches) append(fetch.node, fetch.index);
  key += '\1';
  for (const Node* target : signature.targets) append(target, 0);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = executables_.find(key); it != executables_.end()) return it->second;
  }
  const absl::Status status = signature.Check(*graph_);
  if (!status.ok()) return status;
  return CompileAndCache(key, signature);
}

absl::StatusOr<std::shared_ptr<Executable>> SessionRole::CompileAndCache(
    const std::string& key, const absl::StatusOr<StepSignature>& signature) {
  const std::string owned_key =
      key;  // The caller's key is reused by runs that compiling may start.
  if (closed_) return ClosedError();
  if (!signature.ok()) return signature.status();
  TROUPE_ASSIGN_OR_RETURN(CompiledStep compiled, Compile(*graph_, *signature, options_.compile,
                                                         runtime_.get(), &stateful_kernels_));
  auto executable = std::make_shared<Executable>(std::move(compiled));
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return ClosedError();
  // Two threads may have compiled the same signature at once: the first one's is kept.
  return executables_.emplace(owned_key, std::move(executable)).first->second;
}

StepContext SessionRole::MakeStepContext(const CompiledStep& compiled, Executable::Step* step) {
  StepContext context;
  context.step_id = next_step_id_.fetch_add(1, std::memory_order_relaxed);
  context.device = compiled.device->device.get();
  context.allocator = HostAllocator();
  context.pool = runtime_->pool()->threads() > 1 ? runtime_->pool() : nullptr;
  context.stream = compiled.device->device->stream(0);
  context.cancellation = &step->cancellation;
  context.resources = &compiled.device->containers;
  context.step_resources = &step->resources;
  context.functions = &functions_;
  return context;
}

absl::Status SessionRole::Run(Executable* executable, absl::Span<const Tensor> feeds,
                              absl::Span<Tensor> fetches, const StepOptions& options,
                              RunMetadata* metadata) {
  TROUPE_RETURN_IF_ERROR(executable->CheckFeeds(feeds));
  if (static_cast<int>(fetches.size()) != executable->compiled().num_fetches) {
    return InvalidArgument("expected room for ", executable->compiled().num_fetches,
                           " fetched tensors, got ", fetches.size());
  }
  TROUPE_ASSIGN_OR_RETURN(Executable::Step * step, executable->Acquire());
  uint64_t timer = 0;
  const absl::Status status = CatchExceptions([&] {
    if (options.timeout != absl::InfiniteDuration()) {
      // Made while there is memory for it.
      auto expire = [token = &step->cancellation,
                     late = absl::DeadlineExceededError(
                         StrCat("the run did not finish within ",
                                absl::FormatDuration(options.timeout)))] { token->Cancel(late); };
      if (options.timeout <= absl::ZeroDuration()) {
        expire();
      } else {
        timer = runtime_->timer()->Add(
            DeadlineTimer::Clock::now() + absl::ToChronoNanoseconds(options.timeout), expire);
      }
    }
    return Play(executable->compiled(), step, feeds, fetches, options.trace ? metadata : nullptr);
  });
  if (timer != 0) runtime_->timer()->Remove(timer);
  executable->Release(step);
  return status;
}

absl::Status SessionRole::Play(const CompiledStep& compiled, Executable::Step* step,
                               absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                               RunMetadata* metadata) {
  const StepContext context = MakeStepContext(compiled, step);
  absl::Status status;
  if (step->partitioned != nullptr) {
    std::vector<std::vector<NodeTrace>> traces;
    status = step->partitioned->Run(context, std::make_shared<Rendezvous>(), feeds, fetches,
                                    metadata != nullptr ? &traces : nullptr);
    for (size_t i = 0; i < traces.size(); ++i) {
      AddStepStats(*compiled.partitions[i].plan, traces[i], metadata);
    }
  } else if (metadata != nullptr) {
    std::vector<NodeTrace> trace;
    status = step->executor->Run(context, feeds, fetches, &trace);
    AddStepStats(*compiled.plan, trace, metadata);
  } else {
    status = step->executor->Run(context, feeds, fetches);
  }
  return status;
}

absl::StatusOr<std::string> SessionRole::PartialRunSetup(const std::vector<std::string>& feeds,
                                                         const std::vector<std::string>& fetches,
                                                         const std::vector<std::string>& targets) {
  // The step holds values that were fed and not yet used: an executable of its own, not cached.
  if (closed_) return ClosedError();
  TROUPE_ASSIGN_OR_RETURN(StepSignature signature,
                          StepSignature::FromNames(*graph_, feeds, fetches, targets));
  TROUPE_ASSIGN_OR_RETURN(CompiledStep compiled, Compile(*graph_, signature, options_.compile,
                                                         runtime_.get(), &stateful_kernels_));
  if (compiled.plan == nullptr) {
    return absl::UnimplementedError(
        "a partial run of nodes on several devices; place them on one, or make whole runs");
  }
  auto partial = std::make_shared<PartialStep>();
  partial->executable = std::make_shared<Executable>(std::move(compiled));
  TROUPE_ASSIGN_OR_RETURN(partial->step, partial->executable->Acquire());
  for (size_t i = 0; i < feeds.size(); ++i) partial->feeds[feeds[i]] = static_cast<int>(i);
  for (size_t i = 0; i < fetches.size(); ++i) {
    if (!partial->fetches.emplace(fetches[i], static_cast<int>(i)).second) {
      return InvalidArgument("a partial run fetches ", fetches[i], " twice");
    }
  }
  partial->context = MakeStepContext(partial->executable->compiled(), partial->step);
  std::string handle;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    handle = StrCat("partial_run_", next_partial_++);
    executables_.emplace(StrCat("p", handle), partial->executable);  // So that Close reaches it.
    partial_steps_.emplace(handle, partial);
  }
  std::lock_guard<std::mutex> lock(partial->mutex);
  partial->step->executor->Start(partial->context);
  return handle;
}

absl::Status SessionRole::PartialRun(const std::string& handle,
                                     absl::Span<const std::pair<std::string, Tensor>> feeds,
                                     absl::Span<const std::string> fetches,
                                     std::vector<Tensor>* values) {
  std::shared_ptr<PartialStep> partial;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = partial_steps_.find(handle);
    if (it == partial_steps_.end()) {
      return InvalidArgument("there is no partial run ", handle,
                             ": it was never set up, or is over");
    }
    partial = it->second;
  }
  std::lock_guard<std::mutex> lock(partial->mutex);
  if (partial->over) return InvalidArgument("partial run ", handle, " is over");
  std::vector<int> feed_indices;
  std::vector<Tensor> feed_values;
  std::set<std::string> given;
  for (const auto& [name, value] : feeds) {
    auto it = partial->feeds.find(name);
    if (it == partial->feeds.end() || !given.insert(name).second) {
      return InvalidArgument("partial run ", handle, " was not set up to be fed ", name,
                             ", or it has been fed already");
    }
    TROUPE_RETURN_IF_ERROR(partial->executable->CheckFeed(it->second, value));
    feed_indices.push_back(it->second);
    feed_values.push_back(value);
  }
  std::set<std::string> wanted;
  for (const std::string& name : fetches) {
    if (partial->fetches.count(name) == 0 || !wanted.insert(name).second) {
      return InvalidArgument("partial run ", handle, " was not set up to fetch ", name,
                             ", or it has been fetched already");
    }
  }
  const std::string executable_key = StrCat("p", handle);
  bool too_early = false;
  const absl::Status status = CatchExceptions([&]() -> absl::Status {
    for (const std::string& name : given) partial->feeds.erase(name);
    TROUPE_RETURN_IF_ERROR(partial->step->executor->Feed(feed_indices, feed_values));
    if (values != nullptr) values->clear();
    for (const std::string& name : fetches) {
      Tensor value;
      if (!partial->step->executor->TryFetch(partial->fetches[name], &value)) {
        too_early = true;
        return InvalidArgument("partial run ", handle, ": ", name,
                               " depends on feeds that have not been given yet");
      }
      partial->fetches.erase(name);
      if (values != nullptr) values->push_back(std::move(value));
    }
    return absl::OkStatus();
  });
  if (too_early) return status;
  if (!status.ok() || (partial->fetches.empty() && partial->feeds.empty())) {
    partial->End();
    std::lock_guard<std::mutex> session_lock(mutex_);
    partial_steps_.erase(handle);
    executables_.erase(executable_key);
  }
  return status;
}

absl::Status SessionRole::Close() {
  std::unordered_map<std::string, std::shared_ptr<Executable>> executables;
  std::unordered_map<std::string, std::shared_ptr<PartialStep>> partial_steps;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    executables = executables_;
    partial_steps.swap(partial_steps_);
  }
  for (auto& [key, executable] : executables) executable->Close(ClosedError());
  for (auto& [handle, partial] : partial_steps) {
    std::lock_guard<std::mutex> lock(partial->mutex);
    partial->End();
  }
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.close_timeout);
  for (auto& [key, executable] : executables) {
    if (!executable->WaitIdle(deadline)) {
      return absl::DeadlineExceededError(
          "a running step did not stop when the session was closed; its kernels are still at work");
    }
  }
  return absl::OkStatus();
}

absl::Status SessionRole::Reset(absl::Span<const std::string> containers) {
  for (const auto& device : runtime_->devices()) {
    if (containers.empty()) device->containers.Reset("");
    for (const std::string& container : containers) device->containers.Reset(container);
  }
  return absl::OkStatus();
}

}  // namespace troupe
