#include "api/internal/task_lives.h"

#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<TaskLives> TaskLives::Of(const Session& session) {
  TaskLives lives;
  if (session.runtime() != nullptr) return lives;
  TROUPE_ASSIGN_OR_RETURN(const auto devices, session.ListDevices());
  for (const DeviceAttributes& device : devices) {
    lives.incarnations_[device.name] = device.incarnation;
  }
  return lives;
}

absl::Status TaskLives::Explain(const Session& session, const absl::Status& status) const {
  const bool known = status.ok() || absl::IsUnavailable(status) || absl::IsAborted(status) ||
                     absl::IsOutOfRange(status) || absl::IsDeadlineExceeded(status);
  if (known || session.runtime() != nullptr) return status;
  const absl::StatusOr<TaskLives> now = Of(session);
  if (absl::IsUnavailable(now.status()) || absl::IsAborted(now.status())) return now.status();
  if (!now.ok()) return status;
  for (const auto& [device, incarnation] : incarnations_) {
    const auto it = now->incarnations_.find(device);
    if (it != now->incarnations_.end() && it->second == incarnation) continue;
    const std::string task = device.substr(0, device.find("/device:"));
    return absl::UnavailableError(
        StrCat(task, it == now->incarnations_.end() ? " has left: " : " was started again: ",
               std::string(status.message())));
  }
  return status;
}

}  // namespace troupe
