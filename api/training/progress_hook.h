/// A hook that shows how far a training is.
#ifndef TROUPE_API_TRAINING_PROGRESS_HOOK_H_
#define TROUPE_API_TRAINING_PROGRESS_HOOK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/clock.h"
#include "api/training/basic_hooks.h"
#include "api/training/session_run_hook.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Shows the global step, steps a second, the loss, and the time that is left. On a terminal it is
/// a bar, drawn anew ten times a second. Elsewhere, a file or another program, these are lines:
/// after a second, then after twice as long each time, up to a minute, so that a day is 1,440
/// lines.
///
///     step 1200/10000, 12 %, 345 steps/s, loss 0.0123, 25s left
///
/// A step for which nothing is shown costs a look at the clock.
class ProgressHook final : public SessionRunHook {
 public:
  struct Options {
    /// The global step at which the training is complete; 0: nobody knows, and there is no bar.
    int64_t last_step = 0;
    /// A scalar that is shown, of type float or double; may be invalid.
    Output loss;
    std::string loss_name = "loss";
    /// Whether it is drawn on a terminal, and how many columns that has; by default what standard
    /// error is.
    std::optional<bool> terminal;
    int columns = 0;
    /// Where text goes; by default standard error.
    std::function<void(std::string_view text)> write;
    HookClock now = absl::Now;
  };
  explicit ProgressHook(Options options);
  ProgressHook() : ProgressHook(Options()) {}

  absl::Status Begin(const Scope& scope) override;
  absl::Status AfterCreateSession(Session&, Coordinator&) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override;
  absl::Status AfterRun(SessionRunContext& context, const SessionRunValues& values) override;
  absl::Status End(Session& session) override;

 private:
  /// At `step`, at the time `now`. `ended`: the last time.
  void Show(int64_t step, absl::Time now, bool ended);
  /// "step 12/100, 12 %, ..."
  std::string Line(int64_t step, std::optional<double> rate) const;
  std::string Bar(const std::string& line, int64_t step) const;

  Options options_;
  Output step_;
  std::optional<double> loss_;
  std::optional<int64_t> first_step_, shown_step_;
  absl::Time first_time_, shown_time_, due_time_;
  absl::Duration pause_;
  bool due_ = false;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_PROGRESS_HOOK_H_
