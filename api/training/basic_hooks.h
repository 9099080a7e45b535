/// Hooks for what most trainings need.
#ifndef TROUPE_API_TRAINING_BASIC_HOOKS_H_
#define TROUPE_API_TRAINING_BASIC_HOOKS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "api/training/session_run_hook.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Where hooks have times from: `absl::Now`, or a test's own.
using HookClock = std::function<absl::Time()>;

/// When a hook does something: every so many steps, or so often; exactly one of them is set. A
/// value.
struct HookInterval {
  int64_t steps = 0;
  absl::Duration time = absl::ZeroDuration();
};

/// Says for which steps it is time.
class HookTimer {
 public:
  HookTimer(HookInterval interval, HookClock now);
  /// InvalidArgument: none or both are set, or one is negative.
  absl::Status Check() const;
  /// True for the first step, and when the interval has passed since the step last noted.
  bool IsDue(int64_t step) const;
  struct Elapsed {
    absl::Duration time;
    int64_t steps = 0;
  };
  /// The step for which it was done; what has passed since the one before, if there is one.
  std::optional<Elapsed> Note(int64_t step);
  void Reset();
  std::optional<int64_t> last_step() const { return last_step_; }

 private:
  HookInterval interval_;
  HookClock now_;
  std::optional<int64_t> last_step_;
  absl::Time last_time_;
};

/// Stops after a number of steps, counted by the global step: those of all workers count.
class StopAtStepHook final : public SessionRunHook {
 public:
  /// When the global step is `last`.
  static StopAtStepHook LastStep(int64_t last) { return StopAtStepHook(last, 0); }
  /// After so many more than at the first session's begin.
  static StopAtStepHook Steps(int64_t count) { return StopAtStepHook(-1, count); }

  absl::Status Begin(const Scope& scope) override;
  absl::Status AfterCreateSession(Session& session, Coordinator&) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override;
  absl::Status AfterRun(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  StopAtStepHook(int64_t last, int64_t count) : last_(last), count_(count) {}
  int64_t last_, count_;
  Output step_;
};

/// Logs, and tells `report`, how many global steps there are a second.
class StepCounterHook final : public SessionRunHook {
 public:
  using Report = std::function<void(int64_t step, double steps_per_second)>;
  explicit StepCounterHook(HookInterval interval = {.steps = 100}, Report report = nullptr,
                           HookClock now = absl::Now);

  absl::Status Begin(const Scope& scope) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override;
  absl::Status AfterRun(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  HookTimer timer_;
  Report report_;
  Output step_;
};

/// Fails with Internal, or stops, when a floating-point tensor (a loss) has a NaN.
class NanTensorHook final : public SessionRunHook {
 public:
  explicit NanTensorHook(Output tensor, bool fail = true) : tensor_(tensor), fail_(fail) {}
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override;
  absl::Status AfterRun(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  Output tensor_;
  bool fail_;
};

/// Logs tensors under names, at the first step, then so often; also at the end.
class LoggingTensorHook final : public SessionRunHook {
 public:
  using NamedOutputs = std::vector<std::pair<std::string, Output>>;
  /// Makes the line of the tensors' values; in place of "name = value, ...".
  using Format = std::function<std::string(absl::Span<const Tensor> values)>;
  /// Where the line goes, in place of the log (level info).
  using Print = std::function<void(const std::string& line)>;
  struct Options {
    HookInterval interval = {.steps = 100};
    bool at_end = false;
    Format format;
    Print print;
    HookClock now = absl::Now;
  };
  LoggingTensorHook(NamedOutputs tensors, Options options);
  explicit LoggingTensorHook(NamedOutputs tensors);

  absl::Status Begin(const Scope&) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override;
  absl::Status AfterRun(SessionRunContext&, const SessionRunValues& values) override;
  absl::Status End(Session& session) override;

 private:
  std::vector<Output> Fetches() const;
  void Say(absl::Span<const Tensor> values);

  NamedOutputs tensors_;
  Options options_;
  HookTimer timer_;
  int64_t step_ = 0;  ///< Of this session's own.
  bool due_ = false;
};

/// Evaluates tensors when the session ends.
class FinalOpsHook final : public SessionRunHook {
 public:
  explicit FinalOpsHook(std::vector<Output> tensors, FeedMap feeds = {})
      : tensors_(std::move(tensors)), feeds_(std::move(feeds)) {}
  absl::Status End(Session& session) override;
  /// Empty before the end.
  const std::vector<Tensor>& values() const { return values_; }

 private:
  std::vector<Output> tensors_;
  FeedMap feeds_;
  std::vector<Tensor> values_;
};

/// Feeds every step with what a function gives.
class FeedFnHook final : public SessionRunHook {
 public:
  using Feed = std::function<absl::StatusOr<FeedMap>()>;
  explicit FeedFnHook(Feed feed) : feed_(std::move(feed)) {}
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override;

 private:
  Feed feed_;
};

/// Lets a worker begin later than others: waits, before its first step, until the global step is
/// that far.
class GlobalStepWaiterHook final : public SessionRunHook {
 public:
  explicit GlobalStepWaiterHook(int64_t step, absl::Duration timeout = absl::Hours(2))
      : wanted_(step), timeout_(timeout) {}
  absl::Status Begin(const Scope& scope) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override;

 private:
  int64_t wanted_;
  absl::Duration timeout_;
  bool waited_ = false;
  Output step_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_BASIC_HOOKS_H_
