#include "api/training/checkpoint_saver_hook.h"

#include <algorithm>

#include "api/internal/global_step.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"
#include "google/protobuf/text_format.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

absl::Status WriteGraphText(const Graph& graph, const std::string& folder) {
  GraphDef def;
  graph.ToGraphDef(&def);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(def, &text)) {
    return absl::InternalError("the graph cannot be printed");
  }
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(folder));
  TROUPE_RETURN_IF_ERROR(CreateDirectoriesSynced(files, folder, /*sync=*/true));
  return ReplaceFile(files, JoinPath(folder, "graph.pbtxt"), text);
}

}  // namespace

CheckpointSaverHook::CheckpointSaverHook(std::string folder, CheckpointSaverOptions options)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      timer_(options_.interval, options_.now) {}

CheckpointSaverHook::~CheckpointSaverHook() = default;

absl::Status CheckpointSaverHook::Begin(const Scope& scope) {
  TROUPE_RETURN_IF_ERROR(timer_.Check());
  for (const auto& listener : options_.listeners) {
    if (listener == nullptr) return InvalidArgument("a CheckpointSaverHook has a null listener");
  }
  TROUPE_ASSIGN_OR_RETURN(step_, GlobalStepRead(scope, "CheckpointSaverHook"));
  if (options_.saver == nullptr && options_.find_saver == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(
        options_.saver,
        Saver::OfGraph(
            scope, {.sharded = true, .allow_empty = true, .asynchronous = options_.asynchronous}));
  }
  for (const auto& listener : options_.listeners) TROUPE_RETURN_IF_ERROR(listener->Begin(scope));
  return absl::OkStatus();
}

void CheckpointSaverHook::MakeCheckpointer() {
  const auto done = [this](const absl::StatusOr<std::string>& saved) {
    std::lock_guard<std::mutex> lock(mutex_);
    written_.push_back(saved.ok());
  };
  checkpointer_ = std::make_unique<AsyncCheckpointer>(
      options_.saver, AsyncCheckpointerOptions{.when_busy = options_.when_busy, .done = done});
}

absl::Status CheckpointSaverHook::AfterCreateSession(Session& session, Coordinator&) {
  if (options_.find_saver != nullptr) options_.saver = options_.find_saver();
  if (options_.saver == nullptr) return InvalidArgument("a CheckpointSaverHook found no saver");
  // What the session before was writing has come to its end with it.
  if (checkpointer_ != nullptr) checkpointer_->Wait().IgnoreError();
  if (options_.asynchronous && checkpointer_ == nullptr) MakeCheckpointer();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    written_.clear();
  }
  begun_.clear();
  if (options_.save_graph_def) {
    TROUPE_RETURN_IF_ERROR(WriteGraphText(*session.graph(), folder_));
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t step, ReadStepNow(session, step_));
  timer_.Reset();
  timer_.Note(step);
  TROUPE_RETURN_IF_ERROR(Save(session, step));
  stop_ = false;  // There is nothing to stop yet.
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> CheckpointSaverHook::BeforeRun(SessionRunContext&) {
  return SessionRunArgs{.fetches = {step_}};
}

absl::Status CheckpointSaverHook::AfterRun(SessionRunContext& context,
                                           const SessionRunValues& values) {
  TROUPE_RETURN_IF_ERROR(Deliver(context.session()));
  TROUPE_ASSIGN_OR_RETURN(int64_t step, StepNumber(values.results[0]));
  if (timer_.IsDue(step + 1)) {
    TROUPE_ASSIGN_OR_RETURN(step, ReadStepNow(context.session(), step_));
    if (timer_.IsDue(step)) {
      timer_.Note(step);
      TROUPE_RETURN_IF_ERROR(Save(context.session(), step));
    }
  }
  if (stop_) context.RequestStop();
  return absl::OkStatus();
}

absl::Status CheckpointSaverHook::End(Session& session) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t step, ReadStepNow(session, step_));
  // So that this save is not skipped.
  if (checkpointer_ != nullptr) TROUPE_RETURN_IF_ERROR(checkpointer_->Wait());
  if (last_saved_ != step) TROUPE_RETURN_IF_ERROR(Save(session, step));
  if (checkpointer_ != nullptr) {
    TROUPE_RETURN_IF_ERROR(checkpointer_->Close());
    TROUPE_RETURN_IF_ERROR(Deliver(session));
  }
  for (const auto& listener : options_.listeners) {
    TROUPE_RETURN_IF_ERROR(listener->End(session, step));
  }
  return absl::OkStatus();
}

absl::Status CheckpointSaverHook::Save(Session& session, int64_t step) {
  // Before listeners work for it.
  const bool skips = options_.when_busy == AsyncCheckpointerOptions::WhenBusy::kSkip;
  if (skips && checkpointer_ != nullptr && checkpointer_->busy()) return absl::OkStatus();
  for (const auto& listener : options_.listeners) {
    TROUPE_RETURN_IF_ERROR(listener->BeforeSave(session, step));
  }
  const std::string path = JoinPath(folder_, options_.basename);
  SaveOptions save = options_.save;
  if (!options_.save_graph_def) save.write_meta_graph = nullptr;
  if (checkpointer_ == nullptr) {
    TROUPE_RETURN_IF_ERROR(options_.saver->Save(session, path, step, save).status());
    last_saved_ = step;
    return AfterSave(session, step);
  }
  TROUPE_ASSIGN_OR_RETURN(const bool begun, checkpointer_->Save(session, path, step, save));
  if (begun) begun_.push_back(last_saved_ = step);
  return absl::OkStatus();
}

absl::Status CheckpointSaverHook::Deliver(Session& session) {
  if (checkpointer_ == nullptr) return absl::OkStatus();
  std::vector<bool> written;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    written.swap(written_);
  }
  for (const bool well : written) {
    const int64_t step = begun_.front();
    begun_.erase(begun_.begin());
    if (well) TROUPE_RETURN_IF_ERROR(AfterSave(session, step));
  }
  return absl::OkStatus();
}

absl::Status CheckpointSaverHook::AfterSave(Session& session, int64_t step) {
  for (const auto& listener : options_.listeners) {
    TROUPE_ASSIGN_OR_RETURN(const bool stop, listener->AfterSave(session, step));
    stop_ |= stop;
  }
  return absl::OkStatus();
}

}  // namespace troupe
