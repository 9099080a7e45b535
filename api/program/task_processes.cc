#include "api/program/task_processes.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {
namespace {

// For a task to serve, and for one that was told to end: it drains, and gives up what hangs.
constexpr absl::Duration kReadyPatience = absl::Seconds(60), kChildPatience = absl::Seconds(15);
/// How often processes are looked at: what a failure may take longer.
constexpr absl::Duration kGlance = absl::Milliseconds(20);

/// Before the start that follows so many failures in a row.
absl::Duration Pause(int failures) {
  if (failures <= 1) return absl::ZeroDuration();
  return absl::Milliseconds(200) * (1 << std::min(failures - 2, 4));
}

}  // namespace

TaskProcesses::TaskProcesses(const ClusterSpec& cluster, Arguments arguments)
    : tasks_(cluster.tasks()), arguments_(std::move(arguments)) {}

absl::StatusOr<ChildProcess> TaskProcesses::StartProcess(const TaskId& task) const {
  return ChildProcess::Start(
      {.arguments = arguments_(task), .output = true, .death_signal = SIGTERM});
}

absl::Status TaskProcesses::Start() {
  for (const TaskId& task : tasks_) {
    TROUPE_ASSIGN_OR_RETURN(ChildProcess process, StartProcess(task));
    children_.push_back({task, std::move(process), absl::Now()});
  }
  const absl::Time ready_by = absl::Now() + kReadyPatience;
  for (Child& child : children_) {
    // It says "ready ...", or ends with its error.
    child.serves = child.process.Line(ready_by - absl::Now()).has_value();
    if (child.serves) continue;
    return absl::UnavailableError(StrCat(child.task.ToString(), " did not start within ",
                                         absl::FormatDuration(kReadyPatience),
                                         ", or not at all; its own message is above"));
  }
  return absl::OkStatus();
}

absl::Status TaskProcesses::Look(Child* child) const {
  if (child->over) {
    return absl::Now() < child->start_at ? absl::OkStatus() : StartAgain(child);
  }
  if (!child->serves) child->serves = child->process.Line(absl::ZeroDuration()).has_value();
  const std::optional<ExitStatus> ended = child->process.Wait(absl::ZeroDuration());
  if (!ended) return absl::OkStatus();
  child->over = true;
  if (!ended->ok()) return Failed(child, ended->ToString());
  std::cerr << child->task.ToString() << " has ended" << std::endl;
  return absl::OkStatus();
}

absl::Status TaskProcesses::Failed(Child* child, const std::string& how) const {
  const absl::Time now = absl::Now();
  if (now - child->started >= kSettled) child->failures = 0;
  ++child->failures;
  child->in_vain = child->serves ? 0 : child->in_vain + 1;
  if (child->in_vain == kMaxFailures) {
    return absl::UnavailableError(StrCat(child->task.ToString(), " ", how, ", ", kMaxFailures,
                                         " times in a row before it served"));
  }
  const absl::Duration pause = Pause(child->failures);
  child->start_at = now + pause;
  std::cerr << child->task.ToString() << " " << how << "; started again";
  if (pause > absl::ZeroDuration()) std::cerr << " in " << absl::FormatDuration(pause);
  std::cerr << std::endl;
  return absl::OkStatus();
}

absl::Status TaskProcesses::StartAgain(Child* child) const {
  child->started = absl::Now();
  child->serves = false;
  absl::StatusOr<ChildProcess> process = StartProcess(child->task);
  if (!process.ok()) return Failed(child, std::string(process.status().message()));
  child->process = *std::move(process);
  child->over = false;
  child->start_at = absl::InfiniteFuture();
  return absl::OkStatus();
}

absl::Status TaskProcesses::Supervise(const TerminationSignals& signals) {
  while (signals.Wait(-1, kGlance) == 0) {
    for (Child& child : children_) TROUPE_RETURN_IF_ERROR(Look(&child));
  }
  return absl::OkStatus();
}

bool TaskProcesses::End() {
  for (Child& child : children_) child.process.Signal(SIGTERM);
  bool well = true;
  const absl::Time ended_by = absl::Now() + kChildPatience;
  for (Child& child : children_) {
    // It failed, that was said, and it would have been started again.
    if (child.over && child.start_at < absl::InfiniteFuture()) continue;
    const std::optional<ExitStatus> in_time = child.process.Wait(ended_by - absl::Now());
    const ExitStatus ended = in_time ? *in_time : child.process.End(SIGKILL);
    if (ended.ok()) continue;
    std::cerr << child.task.ToString() << " " << ended.ToString() << "\n";
    well = false;
  }
  return well;
}

}  // namespace troupe
