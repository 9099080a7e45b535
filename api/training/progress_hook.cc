#include "api/training/progress_hook.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "api/internal/global_step.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

constexpr absl::Duration kRedraw = absl::Milliseconds(100);
constexpr absl::Duration kFirstPause = absl::Seconds(1), kLongestPause = absl::Minutes(1);
/// Columns of the bar itself.
constexpr int kWidestBar = 30, kNarrowestBar = 10;
constexpr int kUsualColumns = 80;
constexpr char kClearToEnd[] = "\x1b[K";

int ColumnsOfStandardError() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

/// To seconds, or minutes where hours are left.
std::string Left(absl::Duration left) {
  const absl::Duration unit = left < absl::Hours(1) ? absl::Seconds(1) : absl::Minutes(1);
  return absl::FormatDuration(absl::Ceil(left, unit));
}

absl::StatusOr<double> Real(const Tensor& tensor) {
  if (tensor.type() == ElementType::kDouble) return tensor.scalar<double>();
  TROUPE_ASSIGN_OR_RETURN(const float value, tensor.scalar<float>());
  return value;
}

}  // namespace

ProgressHook::ProgressHook(Options options) : options_(std::move(options)) {
  if (!options_.terminal.has_value()) options_.terminal = isatty(STDERR_FILENO) == 1;
  if (options_.columns <= 0) options_.columns = ColumnsOfStandardError();
  if (!options_.write) {
    options_.write = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stderr);
      std::fflush(stderr);
    };
  }
}

absl::Status ProgressHook::Begin(const Scope& scope) {
  const ElementType type = options_.loss.type();
  if (options_.loss.valid() && type != ElementType::kFloat && type != ElementType::kDouble) {
    return InvalidArgument("a ProgressHook shows a loss of type float or double, not ",
                           ElementTypeName(type));
  }
  TROUPE_ASSIGN_OR_RETURN(step_, GlobalStepRead(scope, "ProgressHook"));
  return absl::OkStatus();
}

absl::Status ProgressHook::AfterCreateSession(Session& session, Coordinator&) {
  // After a loss the training goes on from an earlier step: the rate is measured anew.
  TROUPE_ASSIGN_OR_RETURN(first_step_, ReadStepNow(session, step_));
  first_time_ = shown_time_ = options_.now();
  shown_step_ = first_step_;
  pause_ = *options_.terminal ? kRedraw : kFirstPause;
  due_time_ = first_time_ + pause_;
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> ProgressHook::BeforeRun(SessionRunContext&) {
  due_ = options_.now() >= due_time_;
  if (!due_ || !options_.loss.valid()) return SessionRunArgs();
  return SessionRunArgs{.fetches = {options_.loss}};
}

absl::Status ProgressHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  if (!due_) return absl::OkStatus();
  if (options_.loss.valid()) {
    TROUPE_ASSIGN_OR_RETURN(loss_, Real(values.results[0]));
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t step, ReadStepNow(context.session(), step_));
  Show(step, options_.now(), /*ended=*/false);
  return absl::OkStatus();
}

absl::Status ProgressHook::End(Session& session) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t step, ReadStepNow(session, step_));
  Show(step, options_.now(), /*ended=*/true);
  return absl::OkStatus();
}

void ProgressHook::Show(int64_t step, absl::Time now, bool ended) {
  // In the end the rate of the whole; before, that of what was made since the last look.
  const absl::Time since = ended ? first_time_ : shown_time_;
  const int64_t made = step - (ended ? *first_step_ : *shown_step_);
  std::optional<double> rate;
  if (now > since && made > 0) {
    rate = static_cast<double>(made) / absl::ToDoubleSeconds(now - since);
  }
  const std::string line = Line(step, rate);
  if (!*options_.terminal) {
    options_.write(line + "\n");
    pause_ = std::min(2 * pause_, kLongestPause);
  } else {
    options_.write(StrCat("\r", Bar(line, step), kClearToEnd, ended ? "\n" : ""));
  }
  // The bar is drawn ten times a second; a rate of so short a time would jump about.
  if (!*options_.terminal || now - shown_time_ >= kFirstPause) {
    shown_time_ = now;
    shown_step_ = step;
  }
  due_time_ = now + pause_;
}

std::string ProgressHook::Line(int64_t step, std::optional<double> rate) const {
  std::string line = StrCat("step ", step);
  if (options_.last_step > 0) {
    const double part = static_cast<double>(step) / static_cast<double>(options_.last_step);
    absl::StrAppend(&line, "/", options_.last_step,
                    absl::StrFormat(", %.0f %%", std::floor(100 * std::clamp(part, 0.0, 1.0))));
  }
  if (rate.has_value()) absl::StrAppend(&line, absl::StrFormat(", %.4g steps/s", *rate));
  if (loss_.has_value()) {
    absl::StrAppend(&line, ", ", options_.loss_name, absl::StrFormat(" %.4g", *loss_));
  }
  if (rate.has_value() && options_.last_step > step) {
    const double left = static_cast<double>(options_.last_step - step) / *rate;
    absl::StrAppend(&line, ", ", Left(absl::Seconds(left)), " left");
  }
  return line;
}

std::string ProgressHook::Bar(const std::string& line, int64_t step) const {
  const size_t columns = static_cast<size_t>(options_.columns) - 1;
  const int room = options_.columns - 1 - static_cast<int>(line.size()) - 3;
  if (options_.last_step <= 0 || room < kNarrowestBar) return line.substr(0, columns);
  const int width = std::min(room, kWidestBar);
  const double part = static_cast<double>(step) / static_cast<double>(options_.last_step);
  const int full = static_cast<int>(std::clamp(part, 0.0, 1.0) * width);
  return StrCat("[", std::string(full, '='), std::string(width - full, ' '), "] ", line);
}

}  // namespace troupe
