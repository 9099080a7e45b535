#include "api/training/monitored_session.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "api/internal/task_lives.h"
#include "api/training/queue_runner.h"
#include "api/training/scaffold.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "graph/protos/stats.pb.h"

namespace troupe {

absl::Status SessionRunHook::Begin(const Scope&) { return absl::OkStatus(); }
absl::Status SessionRunHook::AfterCreateSession(Session&, Coordinator&) { return absl::OkStatus(); }
absl::StatusOr<SessionRunArgs> SessionRunHook::BeforeRun(SessionRunContext&) {
  return SessionRunArgs();
}
absl::Status SessionRunHook::AfterRun(SessionRunContext&, const SessionRunValues&) {
  return absl::OkStatus();
}
absl::Status SessionRunHook::End(Session&) { return absl::OkStatus(); }

namespace {

// Between two attempts to make a session.
constexpr absl::Duration kPause = absl::Milliseconds(50);
// For the question what has no value.
constexpr absl::Duration kReadyPatience = absl::Seconds(30);

bool IsLoss(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status);
}

}  // namespace

MonitoredSession::MonitoredSession(std::shared_ptr<Graph> graph, SessionCreator creator,
                                   Hooks hooks, MonitoredSessionOptions options)
    : graph_(std::move(graph)),
      creator_(std::move(creator)),
      hooks_(std::move(hooks)),
      options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredSession::Create(
    std::shared_ptr<Graph> graph, SessionCreator creator, Hooks hooks,
    MonitoredSessionOptions options) {
  if (graph == nullptr || creator == nullptr || std::count(hooks.begin(), hooks.end(), nullptr)) {
    return InvalidArgument(
        "a monitored session needs a graph, a creator, and hooks that are there");
  }
  std::unique_ptr<MonitoredSession> made(
      new MonitoredSession(graph, std::move(creator), std::move(hooks), std::move(options)));
  for (const auto& hook : made->hooks_) {
    const Scope scope(graph);
    TROUPE_RETURN_IF_ERROR(CatchExceptions([&] { return hook->Begin(scope); }));
    TROUPE_RETURN_IF_ERROR(scope.status());
  }
  if (made->options_.scaffold != nullptr) {
    TROUPE_RETURN_IF_ERROR(made->options_.scaffold->Finalize(Scope(graph)));
  }
  graph->Finalize();
  const absl::Status status = made->Recovering([] { return absl::OkStatus(); });
  if (status.ok()) return made;
  made->failed_ = true;
  return status;
}

MonitoredSession::~MonitoredSession() { Close().IgnoreError(); }

absl::Status MonitoredSession::MakeSession() {
  TROUPE_ASSIGN_OR_RETURN(session_, CatchExceptions(creator_));
  if (session_ == nullptr) return absl::InternalError("a session creator gave no session");
  ++num_sessions_;
  TROUPE_ASSIGN_OR_RETURN(TaskLives lives, TaskLives::Of(*session_));
  lives_ = std::make_unique<TaskLives>(std::move(lives));
  // The end of the inputs is for the step to find.
  coordinator_ = std::make_unique<Coordinator>(CoordinatorOptions{.clean_stop = {}});
  TROUPE_RETURN_IF_ERROR(StartQueueRunners(*session_, *coordinator_));
  for (const auto& hook : hooks_) {
    TROUPE_RETURN_IF_ERROR(
        CatchExceptions([&] { return hook->AfterCreateSession(*session_, *coordinator_); }));
  }
  return absl::OkStatus();
}

void MonitoredSession::DropSession() {
  if (coordinator_ != nullptr) coordinator_->RequestStop();
  session_.reset();
  coordinator_.reset();
  lives_.reset();
}

absl::Status MonitoredSession::Explain(const absl::Status& status) const {
  if (lives_ == nullptr || session_ == nullptr || !options_.recover) return status;
  absl::Status explained = lives_->Explain(*session_, status);
  // It may have been started again between the creator's last look and ours.
  const bool may_miss = absl::IsFailedPrecondition(explained) && session_->runtime() == nullptr &&
                        options_.scaffold != nullptr && options_.scaffold->ready_op().valid();
  if (!may_miss) return explained;
  const auto missing =
      session_->Run(FeedMap{}, {options_.scaffold->ready_op()}, {}, {.timeout = kReadyPatience});
  if (!missing.ok()) return IsLoss(missing.status()) ? missing.status() : explained;
  if ((*missing)[0].num_elements() == 0) return explained;
  return absl::UnavailableError(
      StrCat("variables have lost their values: ", std::string(explained.message())));
}

absl::Status MonitoredSession::Recovering(const std::function<absl::Status()>& step) {
  if (closed_ || failed_) {
    return absl::FailedPreconditionError(closed_ ? "the monitored session has been closed"
                                                 : "the monitored session has failed");
  }
  absl::Time end = absl::InfiniteFuture();
  while (true) {
    absl::Status status = session_ == nullptr ? MakeSession() : absl::OkStatus();
    // A member may have lost its task while the step's are there.
    if (status.ok()) status = LossOfMembers();
    if (status.ok()) status = step();
    if (status.ok()) return status;
    status = Explain(status);
    // What stopped the members is why the step failed.
    if (coordinator_ != nullptr && coordinator_->should_stop() && !IsLoss(status)) {
      const absl::Status why = coordinator_->Join(absl::ZeroDuration(), /*ignore_stragglers=*/true);
      if (!why.ok()) status = Explain(why);
    }
    if (absl::IsOutOfRange(status)) {
      stop_ = true;
      return status;
    }
    const bool lost = options_.recover && IsLoss(status);
    if (lost) end = std::min(end, absl::Now() + options_.recovery_timeout);
    if (!lost || absl::Now() >= end) {
      failed_ = stop_ = true;
      return status;
    }
    WriteLog(LogLevel::kWarning, "", {"session lost"},
             "begins the step again: ", std::string(status.message()));
    DropSession();
    // Nothing tells when a task is back.
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(kPause));
  }
}

absl::StatusOr<std::vector<Tensor>> MonitoredSession::RunHooked(const SessionRunArgs& args,
                                                                absl::Span<Node* const> targets,
                                                                RunMetadata* metadata) {
  SessionRunContext context(*session_, args, targets);
  SessionRunArgs all = args;
  std::vector<size_t> begins;  // Of each hook's fetches.
  for (const auto& hook : hooks_) {
    TROUPE_ASSIGN_OR_RETURN(const SessionRunArgs wanted,
                            CatchExceptions([&] { return hook->BeforeRun(context); }));
    begins.push_back(all.fetches.size());
    all.fetches.insert(all.fetches.end(), wanted.fetches.begin(), wanted.fetches.end());
    all.feeds.insert(all.feeds.end(), wanted.feeds.begin(), wanted.feeds.end());
    all.timeout = std::min(all.timeout, wanted.timeout);
    all.trace |= wanted.trace;
  }
  begins.push_back(all.fetches.size());
  RunMetadata own;
  if (metadata == nullptr && all.trace) metadata = &own;
  std::vector<Tensor> values;
  if (!all.fetches.empty() || !targets.empty()) {
    TROUPE_ASSIGN_OR_RETURN(values,
                            session_->Run(all.feeds, all.fetches, targets,
                                          {.timeout = all.timeout, .trace = all.trace}, metadata));
  }
  for (size_t i = 0; i < hooks_.size(); ++i) {
    const absl::Span<const Tensor> results =
        absl::MakeConstSpan(values).subspan(begins[i], begins[i + 1] - begins[i]);
    TROUPE_RETURN_IF_ERROR(CatchExceptions([&] {
      return hooks_[i]->AfterRun(context, {results, all.trace ? metadata : nullptr});
    }));
  }
  if (context.stop_requested()) stop_ = true;
  values.resize(args.fetches.size());
  return values;
}

absl::StatusOr<std::vector<Tensor>> MonitoredSession::Run(const FeedMap& feeds,
                                                          absl::Span<const Output> fetches,
                                                          absl::Span<Node* const> targets,
                                                          const RunOptions& options,
                                                          RunMetadata* metadata) {
  const SessionRunArgs args{
      feeds, {fetches.begin(), fetches.end()}, options.timeout, options.trace};
  std::vector<Tensor> values;
  TROUPE_RETURN_IF_ERROR(Recovering([&]() -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(values, RunHooked(args, targets, metadata));
    return absl::OkStatus();
  }));
  return values;
}

absl::Status MonitoredSession::RunStep(
    const std::function<absl::Status(Session& session, const HookedRun& run)>& step) {
  const HookedRun run = [this](const FeedMap& feeds, absl::Span<const Output> fetches,
                               absl::Span<Node* const> targets) {
    return RunHooked({feeds, {fetches.begin(), fetches.end()}}, targets, nullptr);
  };
  return Recovering([&] { return CatchExceptions([&] { return step(*session_, run); }); });
}

bool MonitoredSession::should_stop() const {
  if (stop_) return true;
  return coordinator_ != nullptr && coordinator_->should_stop() && LossOfMembers().ok();
}

absl::Status MonitoredSession::LossOfMembers() const {
  if (!options_.recover || coordinator_ == nullptr || !coordinator_->should_stop()) {
    return absl::OkStatus();
  }
  const absl::Status why = coordinator_->Join(absl::ZeroDuration(), /*ignore_stragglers=*/true);
  return IsLoss(why) ? why : absl::OkStatus();
}

absl::Status MonitoredSession::End() {
  absl::Status status;
  if (!failed_ && session_ != nullptr) {
    for (const auto& hook : hooks_) {
      status.Update(CatchExceptions([&] { return hook->End(*session_); }));
    }
  }
  if (coordinator_ != nullptr) {
    coordinator_->RequestStop();
    const absl::Status joined =
        coordinator_->Join(options_.stop_grace_period, /*ignore_stragglers=*/true);
    if (!failed_) status.Update(joined);
  }
  if (session_ != nullptr) status.Update(session_->Close());
  DropSession();
  return status;
}

absl::Status MonitoredSession::Close() {
  if (std::exchange(closed_, true)) return end_;
  stop_ = true;
  return end_ = End();
}

}  // namespace troupe
