#include "api/training/background_steps.h"

#include <utility>

#include "devices/cpu/block_signals.h"
#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<BackgroundSteps>> BackgroundSteps::Start(
    std::shared_ptr<Graph> graph, RecoverableSessionOptions options, Node* step) {
  if (step == nullptr) return InvalidArgument("there is no node to run in the background");
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<RecoverableSession> session,
                          RecoverableSession::Create(std::move(graph), std::move(options)));
  return std::unique_ptr<BackgroundSteps>(new BackgroundSteps(std::move(session), step));
}

BackgroundSteps::BackgroundSteps(std::unique_ptr<RecoverableSession> session, Node* step)
    : session_(std::move(session)) {
  const ScopedBlockSignals blocked;
  thread_ = std::thread([this, step] {
    absl::Status status;
    while (status.ok()) {
      status = session_->Run([step](Session& session) { return session.RunTargets({step}); });
    }
    std::lock_guard<std::mutex> lock(mutex_);
    if (!stopping_) status_ = status;
  });
}

BackgroundSteps::~BackgroundSteps() { Stop().IgnoreError(); }

absl::Status BackgroundSteps::status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

absl::Status BackgroundSteps::Stop() {
  std::lock_guard<std::mutex> stop(stop_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  session_->Close();
  if (thread_.joinable()) thread_.join();
  return status();
}

}  // namespace troupe
