#include "api/internal/training_state_listener.h"

#include <utility>

#include "api/internal/training_state.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "graph/protos/summary.pb.h"

namespace troupe {

TrainingStateListener::TrainingStateListener(std::string path,
                                             std::shared_ptr<SummaryWriter> writer)
    : path_(std::move(path)), writer_(std::move(writer)) {}

std::string TrainingStateListener::Prefix(int64_t global_step) const {
  return StrCat(path_, "-", global_step);
}

absl::Status TrainingStateListener::BeforeSave(Session& session, int64_t global_step) {
  absl::StatusOr<KernelStates> kernels = session.SaveKernelStates();
  if (absl::IsUnimplemented(kernels.status())) {
    if (!std::exchange(unavailable_, true)) {
      WriteLog(LogLevel::kInfo, "", {"random states not saved"},
               std::string(kernels.status().message()),
               ": after a restart random numbers are others than without one");
    }
    return absl::OkStatus();
  }
  TROUPE_RETURN_IF_ERROR(kernels.status());
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path_));
  TROUPE_RETURN_IF_ERROR(files->CreateDirectories(PathDirectory(path_)));
  return WriteTrainingState(Prefix(global_step),
                            {.global_step = global_step, .kernels = *std::move(kernels)});
}

absl::StatusOr<bool> TrainingStateListener::AfterSave(Session&, int64_t global_step) {
  const std::string prefix = Prefix(global_step);
  TROUPE_RETURN_IF_ERROR(RemoveOrphanedStates(PathDirectory(path_), prefix));
  if (writer_ != nullptr) {
    SessionLog log;
    log.set_status(SessionLog::CHECKPOINT);
    log.set_checkpoint_path(prefix);
    TROUPE_RETURN_IF_ERROR(writer_->AddSessionLog(log, global_step));
  }
  return false;
}

absl::Status RestoreTrainingState(Session& session, const std::string& prefix) {
  absl::StatusOr<TrainingState> state = ReadTrainingState(prefix);
  if (absl::IsNotFound(state.status())) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(state.status());
  const absl::Status restored = session.RestoreKernelStates(state->kernels);
  return absl::IsUnimplemented(restored) ? absl::OkStatus() : restored;
}

}  // namespace troupe
