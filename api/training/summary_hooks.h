/// Hooks that write what TensorBoard and chrome://tracing show.
#ifndef TROUPE_API_TRAINING_SUMMARY_HOOKS_H_
#define TROUPE_API_TRAINING_SUMMARY_HOOKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "api/summary.h"
#include "api/training/basic_hooks.h"
#include "api/training/session_run_hook.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class BackgroundTask;

/// Writes the graph's summaries with the first step, then so often.
class SummarySaverHook final : public SessionRunHook {
 public:
  struct Options {
    HookInterval interval = {.steps = 100};
    /// The event file is in this folder, and shared with all who write there
    /// (`SummaryWriter::ForDirectory`); or the writer itself.
    std::string directory;
    std::shared_ptr<SummaryWriter> writer;
    /// What is fetched, messages `Summary`; asked when the first session has been made. By default
    /// `summary::MergeAll` of all summaries that there are when the hook begins.
    std::function<std::vector<Output>()> summaries;
    HookClock now = absl::Now;
  };
  explicit SummarySaverHook(Options options);

  absl::Status Begin(const Scope& scope) override;
  absl::Status AfterCreateSession(Session&, Coordinator&) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override;
  absl::Status AfterRun(SessionRunContext& context, const SessionRunValues& values) override;
  absl::Status End(Session&) override;

 private:
  Options options_;
  HookTimer timer_;
  std::shared_ptr<SummaryWriter> writer_;
  Output step_;
  std::vector<Output> summaries_;
  std::optional<int64_t> next_step_;
  bool due_ = false;
};

/// Traces a step now and then, from the second one on: `directory`/timeline-STEP.json is for
/// chrome://tracing and ui.perfetto.dev, and the folder's event file has the step's metadata.
class ProfilerHook final : public SessionRunHook {
 public:
  struct Options {
    HookInterval interval = {.steps = 1000};
    std::string directory;
    HookClock now = absl::Now;
  };
  explicit ProfilerHook(Options options);
  ~ProfilerHook() override;

  absl::Status Begin(const Scope& scope) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override;
  absl::Status AfterRun(SessionRunContext& context, const SessionRunValues& values) override;
  absl::Status End(Session&) override;

 private:
  absl::Status Save(int64_t step, const RunMetadata& metadata);

  const Options options_;
  HookTimer timer_;
  std::shared_ptr<SummaryWriter> writer_;
  std::unique_ptr<BackgroundTask> writing_;
  Output step_;
  std::optional<int64_t> next_step_;
  bool due_ = false;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_SUMMARY_HOOKS_H_
