#include "api/training/basic_hooks.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "api/internal/global_step.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "devices/tensor.h"

namespace troupe {
namespace {

template <typename T>
bool AnyNan(const Tensor& tensor) {
  const auto values = tensor.unchecked_values<T>();
  return std::any_of(values.begin(), values.end(),
                     [](T value) { return std::isnan(static_cast<double>(value)); });
}

}  // namespace

// --- timer ---------------------------------------------------------------------------------------

HookTimer::HookTimer(HookInterval interval, HookClock now)
    : interval_(interval), now_(std::move(now)) {}

absl::Status HookTimer::Check() const {
  const bool steps = interval_.steps != 0, time = interval_.time != absl::ZeroDuration();
  if (steps == time || interval_.steps < 0 || interval_.time < absl::ZeroDuration()) {
    return InvalidArgument("a hook is due every so many steps, or so often: one of both, not ",
                           interval_.steps, " steps and ", absl::FormatDuration(interval_.time));
  }
  return absl::OkStatus();
}

bool HookTimer::IsDue(int64_t step) const {
  if (!last_step_.has_value()) return true;
  if (step == *last_step_) return false;
  if (interval_.steps > 0) return step >= *last_step_ + interval_.steps;
  return now_() >= last_time_ + interval_.time;
}

std::optional<HookTimer::Elapsed> HookTimer::Note(int64_t step) {
  const absl::Time now = now_();
  std::optional<Elapsed> elapsed;
  if (last_step_.has_value()) elapsed = {now - last_time_, step - *last_step_};
  last_step_ = step;
  last_time_ = now;
  return elapsed;
}

void HookTimer::Reset() { last_step_.reset(); }

// --- stop ----------------------------------------------------------------------------------------

absl::Status StopAtStepHook::Begin(const Scope& scope) {
  TROUPE_ASSIGN_OR_RETURN(step_, GlobalStepOf(scope, "StopAtStepHook"));
  return absl::OkStatus();
}

absl::Status StopAtStepHook::AfterCreateSession(Session& session, Coordinator&) {
  if (last_ >= 0) return absl::OkStatus();  // Also after a loss: what was agreed on stays.
  TROUPE_ASSIGN_OR_RETURN(const int64_t begin, ReadNow(session, step_));
  last_ = begin + count_;
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> StopAtStepHook::BeforeRun(SessionRunContext&) {
  return SessionRunArgs{.fetches = {step_}};
}

absl::Status StopAtStepHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  TROUPE_ASSIGN_OR_RETURN(int64_t step, StepNumber(values.results[0]));
  if (step + 1 < last_) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(step, ReadNow(context.session(), step_));
  if (step >= last_) context.RequestStop();
  return absl::OkStatus();
}

// --- steps a second ------------------------------------------------------------------------------

StepCounterHook::StepCounterHook(HookInterval interval, Report report, HookClock now)
    : timer_(interval, std::move(now)), report_(std::move(report)) {}

absl::Status StepCounterHook::Begin(const Scope& scope) {
  TROUPE_RETURN_IF_ERROR(timer_.Check());
  TROUPE_ASSIGN_OR_RETURN(step_, GlobalStepOf(scope, "StepCounterHook"));
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> StepCounterHook::BeforeRun(SessionRunContext&) {
  return SessionRunArgs{.fetches = {step_}};
}

absl::Status StepCounterHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  TROUPE_ASSIGN_OR_RETURN(int64_t step, StepNumber(values.results[0]));
  if (!timer_.IsDue(step + 1)) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(step, ReadNow(context.session(), step_));
  if (!timer_.IsDue(step)) return absl::OkStatus();
  const auto elapsed = timer_.Note(step);
  if (!elapsed.has_value() || elapsed->time <= absl::ZeroDuration()) return absl::OkStatus();
  const double rate = static_cast<double>(elapsed->steps) / absl::ToDoubleSeconds(elapsed->time);
  WriteLog(LogLevel::kInfo, "", {"steps a second"}, "global step ", step, ", ",
           absl::StrFormat("%.4g", rate), " steps a second");
  if (report_) report_(step, rate);
  return absl::OkStatus();
}

// --- NaN -----------------------------------------------------------------------------------------

absl::StatusOr<SessionRunArgs> NanTensorHook::BeforeRun(SessionRunContext&) {
  return SessionRunArgs{.fetches = {tensor_}};
}

absl::Status NanTensorHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  const Tensor& value = values.results[0];
  bool nan = false;
  switch (value.type()) {
    case ElementType::kFloat:
      nan = AnyNan<float>(value);
      break;
    case ElementType::kDouble:
      nan = AnyNan<double>(value);
      break;
    default:
      return InvalidArgument("a NanTensorHook watches a tensor of type ",
                             ElementTypeName(value.type()), ": it takes float and double");
  }
  if (!nan) return absl::OkStatus();
  const std::string text = StrCat("tensor ", tensor_.name(), " is NaN");
  if (fail_) return absl::InternalError(text);
  WriteLog(LogLevel::kWarning, "", {"NaN"}, text, ": the training stops");
  context.RequestStop();
  return absl::OkStatus();
}

// --- tensors in the log --------------------------------------------------------------------------

LoggingTensorHook::LoggingTensorHook(NamedOutputs tensors, Options options)
    : tensors_(std::move(tensors)),
      options_(std::move(options)),
      timer_(options_.interval, options_.now) {}

LoggingTensorHook::LoggingTensorHook(NamedOutputs tensors)
    : LoggingTensorHook(std::move(tensors), Options()) {}

std::vector<Output> LoggingTensorHook::Fetches() const {
  std::vector<Output> fetches;
  for (const auto& [name, tensor] : tensors_) fetches.push_back(tensor);
  return fetches;
}

absl::Status LoggingTensorHook::Begin(const Scope&) {
  timer_.Reset();
  step_ = 0;
  return timer_.Check();
}

absl::StatusOr<SessionRunArgs> LoggingTensorHook::BeforeRun(SessionRunContext&) {
  due_ = timer_.IsDue(step_);
  if (!due_) return SessionRunArgs();
  return SessionRunArgs{.fetches = Fetches()};
}

absl::Status LoggingTensorHook::AfterRun(SessionRunContext&, const SessionRunValues& values) {
  if (due_) {
    timer_.Note(step_);
    Say(values.results);
  }
  ++step_;
  return absl::OkStatus();
}

absl::Status LoggingTensorHook::End(Session& session) {
  if (!options_.at_end) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session.Run(Fetches()));
  Say(values);
  return absl::OkStatus();
}

void LoggingTensorHook::Say(absl::Span<const Tensor> values) {
  std::string line;
  if (options_.format) {
    line = options_.format(values);
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      line += StrCat(i == 0 ? "" : ", ", tensors_[i].first, " = ", values[i].ToString());
    }
  }
  if (options_.print) return options_.print(line);
  WriteLog(LogLevel::kInfo, "", {"tensors"}, line);
}

// --- others --------------------------------------------------------------------------------------

absl::Status FinalOpsHook::End(Session& session) {
  TROUPE_ASSIGN_OR_RETURN(values_, session.Run(feeds_, tensors_));
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> FeedFnHook::BeforeRun(SessionRunContext&) {
  TROUPE_ASSIGN_OR_RETURN(FeedMap feeds, feed_());
  return SessionRunArgs{.feeds = std::move(feeds)};
}

absl::Status GlobalStepWaiterHook::Begin(const Scope& scope) {
  TROUPE_ASSIGN_OR_RETURN(step_, GlobalStepOf(scope, "GlobalStepWaiterHook"));
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> GlobalStepWaiterHook::BeforeRun(SessionRunContext& context) {
  constexpr absl::Duration kPause = absl::Milliseconds(100);
  const absl::Time end = absl::Now() + timeout_;
  while (!waited_) {
    TROUPE_ASSIGN_OR_RETURN(const int64_t step, ReadNow(context.session(), step_));
    waited_ = step >= wanted_;
    if (!waited_ && absl::Now() >= end) {
      return absl::DeadlineExceededError(StrCat("waited ", absl::FormatDuration(timeout_),
                                                " for global step ", wanted_, ", which is ", step));
    }
    // Nothing tells when another worker has made a step.
    if (!waited_) std::this_thread::sleep_for(absl::ToChronoMilliseconds(kPause));
  }
  return SessionRunArgs();
}

}  // namespace troupe
