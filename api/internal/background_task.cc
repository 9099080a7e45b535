#include "api/internal/background_task.h"

#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "devices/cpu/block_signals.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

struct BackgroundTask::State {
  absl::Status status;
  absl::Notification ended;
};

absl::Status BackgroundTask::Begin(std::function<absl::Status()> task) {
  TROUPE_RETURN_IF_ERROR(Wait());
  return CatchExceptions([&] {
    auto state = std::make_shared<State>();
    const ScopedBlockSignals blocked;
    std::thread([state, task = std::move(task)]() mutable {
      state->status = CatchExceptions(task);
      task = nullptr;
      state->ended.Notify();
    }).detach();
    running_ = std::move(state);
    return absl::OkStatus();
  });
}

absl::Status BackgroundTask::Wait() {
  if (running_ == nullptr) return absl::OkStatus();
  if (!running_->ended.WaitForNotificationWithTimeout(patience_)) {
    return absl::DeadlineExceededError(
        StrCat("what was begun before still runs after ", absl::FormatDuration(patience_)));
  }
  return std::exchange(running_, nullptr)->status;
}

}  // namespace troupe
