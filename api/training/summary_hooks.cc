#include "api/training/summary_hooks.h"

#include <utility>

#include "api/internal/background_task.h"
#include "api/internal/chrome_trace.h"
#include "api/internal/global_step.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"
#include "graph/protos/stats.pb.h"
#include "graph/protos/summary.pb.h"

namespace troupe {

// --- summaries -----------------------------------------------------------------------------------

SummarySaverHook::SummarySaverHook(Options options)
    : options_(std::move(options)), timer_(options_.interval, options_.now) {}

absl::Status SummarySaverHook::Begin(const Scope& scope) {
  TROUPE_RETURN_IF_ERROR(timer_.Check());
  if ((options_.writer == nullptr) == options_.directory.empty()) {
    return InvalidArgument("a SummarySaverHook needs a folder or a writer, and not both");
  }
  TROUPE_ASSIGN_OR_RETURN(step_, GlobalStepRead(scope, "SummarySaverHook"));
  writer_ = options_.writer;
  if (writer_ == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(writer_, SummaryWriter::ForDirectory(options_.directory));
  }
  if (options_.summaries == nullptr) {
    const Output merged = summary::MergeAll(scope);
    if (merged.valid()) summaries_ = {merged};
  }
  timer_.Reset();
  next_step_.reset();
  return absl::OkStatus();
}

absl::Status SummarySaverHook::AfterCreateSession(Session&, Coordinator&) {
  if (options_.summaries != nullptr) summaries_ = options_.summaries();
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> SummarySaverHook::BeforeRun(SessionRunContext&) {
  due_ = !next_step_.has_value() || timer_.IsDue(*next_step_);
  SessionRunArgs args{.fetches = {step_}};
  if (due_) args.fetches.insert(args.fetches.end(), summaries_.begin(), summaries_.end());
  return args;
}

absl::Status SummarySaverHook::AfterRun(SessionRunContext& context,
                                        const SessionRunValues& values) {
  // Before the step's own update, if it was read that early.
  TROUPE_ASSIGN_OR_RETURN(int64_t step, StepNumber(values.results[0]));
  ++step;
  if (due_) {
    TROUPE_ASSIGN_OR_RETURN(step, ReadStepNow(context.session(), step_));
    if (!next_step_.has_value()) {
      SessionLog start;
      start.set_status(SessionLog::START);
      TROUPE_RETURN_IF_ERROR(writer_->AddSessionLog(start, step));
    }
    timer_.Note(step);
    for (const Tensor& summary : values.results.subspan(1)) {
      TROUPE_RETURN_IF_ERROR(writer_->AddSummary(summary, step));
    }
  }
  next_step_ = step + 1;
  return absl::OkStatus();
}

absl::Status SummarySaverHook::End(Session&) { return writer_->Flush(); }

// --- profiles ------------------------------------------------------------------------------------

ProfilerHook::ProfilerHook(Options options)
    : options_(std::move(options)),
      timer_(options_.interval, options_.now),
      writing_(std::make_unique<BackgroundTask>()) {}
ProfilerHook::~ProfilerHook() = default;

absl::Status ProfilerHook::Begin(const Scope& scope) {
  TROUPE_RETURN_IF_ERROR(timer_.Check());
  TROUPE_ASSIGN_OR_RETURN(step_, GlobalStepRead(scope, "ProfilerHook"));
  TROUPE_ASSIGN_OR_RETURN(writer_, SummaryWriter::ForDirectory(options_.directory));
  timer_.Reset();
  next_step_.reset();
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> ProfilerHook::BeforeRun(SessionRunContext&) {
  due_ = next_step_.has_value() && timer_.IsDue(*next_step_);
  return SessionRunArgs{.fetches = {step_}, .trace = due_};
}

absl::Status ProfilerHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  TROUPE_ASSIGN_OR_RETURN(int64_t step, StepNumber(values.results[0]));
  // The first step is never a usual one.
  if (!next_step_.has_value()) timer_.Note(step);
  ++step;
  if (due_) {
    TROUPE_ASSIGN_OR_RETURN(step, ReadStepNow(context.session(), step_));
    timer_.Note(step);
    TROUPE_RETURN_IF_ERROR(Save(step, *values.metadata));
  }
  next_step_ = step + 1;
  return absl::OkStatus();
}

absl::Status ProfilerHook::Save(int64_t step, const RunMetadata& metadata) {
  const std::string path = JoinPath(options_.directory, StrCat("timeline-", step, ".json"));
  const std::shared_ptr<SummaryWriter> writer = writer_;
  return writing_->Begin([path, step, metadata, writer]() -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
    TROUPE_RETURN_IF_ERROR(
        ReplaceFile(files, path, ToChromeTrace(metadata.step_stats()), {.sync = false}));
    const absl::Status added = writer->AddRunMetadata(metadata, StrCat("step_", step), step);
    // After a loss the same steps come again.
    return absl::IsAlreadyExists(added) ? absl::OkStatus() : added;
  });
}

absl::Status ProfilerHook::End(Session&) {
  TROUPE_RETURN_IF_ERROR(writing_->Wait());
  return writer_->Flush();
}

}  // namespace troupe
