#include "api/internal/training_state_listener.h"

#include <utility>

#include "api/internal/held_queues.h"
#include "api/internal/training_state.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"
#include "graph/protos/summary.pb.h"

namespace troupe {
namespace {

/// How long a save waits for the steps of queue runners, once they have not come to rest in time.
constexpr absl::Duration kShortPatience = absl::Milliseconds(50);

}  // namespace

TrainingStateListener::TrainingStateListener(std::string path,
                                             std::shared_ptr<SummaryWriter> writer)
    : path_(std::move(path)), writer_(std::move(writer)) {}

std::string TrainingStateListener::Prefix(int64_t global_step) const {
  return StrCat(path_, "-", global_step);
}

absl::Status TrainingStateListener::BeforeSave(Session& session, int64_t global_step) {
  TrainingState state{.global_step = global_step};
  {
    HeldQueues queues(session);
    const absl::Status saved = queues.Save(patience_, &state);
    if (absl::IsDeadlineExceeded(saved) || absl::IsUnimplemented(saved) ||
        absl::IsResourceExhausted(saved)) {
      WriteLog(LogLevel::kWarning, "", {"queues not saved"}, std::string(saved.message()),
               ": a training that goes on from the checkpoint of step ", global_step,
               " begins with empty queues");
      state = {.global_step = global_step};
      patience_ = kShortPatience;
    } else {
      TROUPE_RETURN_IF_ERROR(saved);
    }
    absl::StatusOr<Session::KernelStates> kernels = session.SaveKernelStates();
    if (absl::IsResourceExhausted(kernels.status())) {
      WriteLog(LogLevel::kWarning, "", {"kernels not saved"},
               std::string(kernels.status().message()),
               ": in a training that goes on from the checkpoint of step ", global_step,
               ", random numbers and inputs begin anew");
    } else {
      TROUPE_RETURN_IF_ERROR(kernels.status());
      state.kernels = *std::move(kernels);
    }
  }
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path_));
  TROUPE_RETURN_IF_ERROR(CreateDirectoriesSynced(files, PathDirectory(path_), /*sync=*/true));
  pending_.insert(global_step);
  // So that who goes on from the checkpoint has the curve up to here: a killed process loses what
  // has not been flushed.
  if (writer_ != nullptr) TROUPE_RETURN_IF_ERROR(writer_->Flush());
  return WriteTrainingState(Prefix(global_step), state);
}

absl::StatusOr<bool> TrainingStateListener::AfterSave(Session&, int64_t global_step) {
  const std::string prefix = Prefix(global_step);
  // The next save may be under way: its checkpoint is not there yet.
  pending_.erase(pending_.begin(), pending_.lower_bound(global_step));
  std::set<std::string> kept;
  for (const int64_t step : pending_) kept.emplace(PathBase(TrainingStatePath(Prefix(step))));
  TROUPE_RETURN_IF_ERROR(RemoveOrphanedStates(PathDirectory(path_), kept));
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
  TROUPE_RETURN_IF_ERROR(session.RestoreKernelStates(state->kernels));
  return RestoreQueues(session, *std::move(state));
}

}  // namespace troupe
