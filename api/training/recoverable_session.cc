#include "api/training/recoverable_session.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {

namespace {

// Between two looks at what is not there yet.
constexpr absl::Duration kPause = absl::Milliseconds(50);

absl::Status ClosedError() { return absl::CancelledError("the session has been closed"); }

/// Names of variables, or "": all have values.
absl::StatusOr<std::string> Missing(Session& session, const Output& uninitialized) {
  RunOptions options;
  options.timeout = absl::Seconds(30);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> names,
                          session.Run(FeedMap{}, {uninitialized}, {}, options));
  constexpr size_t kShown = 5;
  std::string text;
  const auto values = names[0].unchecked_values<std::string>();
  for (size_t i = 0; i < values.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + values[i];
  }
  if (values.size() > kShown) text += StrCat(" and ", values.size() - kShown, " more");
  return text;
}

}  // namespace

absl::Status WaitUntilReady(Session& session, const Output& uninitialized, absl::Duration timeout) {
  if (!uninitialized.valid()) {
    return InvalidArgument("waiting for variables needs ReportUninitializedVariables");
  }
  const absl::Time end = absl::Now() + timeout;
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(const std::string missing, Missing(session, uninitialized));
    if (missing.empty()) return absl::OkStatus();
    if (absl::Now() + kPause > end) {
      return absl::DeadlineExceededError(
          StrCat("variables still have no value after ", absl::FormatDuration(timeout), ": ",
                 missing, "; has the chief (task 0 of the workers) been started?"));
    }
    // Nothing tells when another client has initialized a variable.
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(kPause));
  }
}

RecoverableSession::RecoverableSession(std::shared_ptr<Graph> graph,
                                       RecoverableSessionOptions options)
    : graph_(std::move(graph)), options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<RecoverableSession>> RecoverableSession::Create(
    std::shared_ptr<Graph> graph, RecoverableSessionOptions options) {
  std::unique_ptr<RecoverableSession> session(
      new RecoverableSession(std::move(graph), std::move(options)));
  TROUPE_RETURN_IF_ERROR(session->Run([](Session&) { return absl::OkStatus(); }));
  return session;
}

RecoverableSession::~RecoverableSession() { Close(); }

void RecoverableSession::Close() {
  std::shared_ptr<Session> session, preparing;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    session = std::move(session_);
    preparing = preparing_;
  }
  for (const auto& one : {session, preparing}) {
    if (one != nullptr) one->Close().IgnoreError();
  }
}

int RecoverableSession::num_sessions() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return num_sessions_;
}

absl::Status RecoverableSession::Prepare(Session& session) {
  const auto run = [&](Node* node) {
    RunOptions options;
    options.timeout = options_.ready_timeout;
    return session.Run(FeedMap{}, {}, {node}, options).status();
  };
  if (options_.init != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const std::string missing, Missing(session, options_.uninitialized));
    if (!missing.empty()) TROUPE_RETURN_IF_ERROR(run(options_.init));
  }
  TROUPE_RETURN_IF_ERROR(WaitUntilReady(session, options_.uninitialized, options_.ready_timeout));
  return options_.local_init == nullptr ? absl::OkStatus() : run(options_.local_init);
}

absl::StatusOr<std::shared_ptr<Session>> RecoverableSession::Current() {
  std::lock_guard<std::mutex> making(making_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return ClosedError();
    if (session_ != nullptr) return session_;
  }
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<Session> made, Session::Create(graph_, options_.session));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return ClosedError();
    preparing_ = made;
    ++num_sessions_;
  }
  const absl::Status status = Prepare(*made);
  std::lock_guard<std::mutex> lock(mutex_);
  preparing_ = nullptr;
  if (closed_) return ClosedError();
  if (!status.ok()) return status;
  session_ = made;
  return made;
}

void RecoverableSession::Drop(const std::shared_ptr<Session>& session) {
  std::shared_ptr<Session> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  if (session != nullptr && session_ == session) dropped = std::move(session_);
}

bool RecoverableSession::IsRecoverable(const absl::Status& status, Session* session) const {
  if (absl::IsUnavailable(status) || absl::IsAborted(status)) return true;
  if (!absl::IsFailedPrecondition(status) || session == nullptr) return false;
  // A parameter server that was restarted between two steps has lost its variables.
  absl::StatusOr<std::string> missing = Missing(*session, options_.uninitialized);
  return missing.ok() ? !missing->empty()
                      : absl::IsUnavailable(missing.status()) || absl::IsAborted(missing.status());
}

absl::Status RecoverableSession::Run(const std::function<absl::Status(Session&)>& step) {
  if (!options_.uninitialized.valid()) {
    return InvalidArgument("a recoverable session needs ReportUninitializedVariables");
  }
  absl::Time end = absl::InfiniteFuture();
  while (true) {
    absl::StatusOr<std::shared_ptr<Session>> session = Current();
    absl::Status status = session.ok() ? step(**session) : session.status();
    if (status.ok()) return status;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (closed_) return ClosedError();
    }
    if (!IsRecoverable(status, session.ok() ? session->get() : nullptr)) return status;
    end = std::min(end, absl::Now() + options_.recovery_timeout);
    if (absl::Now() >= end) return status;
    if (session.ok()) Drop(*session);
    // Nor when a task is back.
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(kPause));
  }
}

}  // namespace troupe
