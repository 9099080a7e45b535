#include "actors/cluster/master_tasks.h"

#include <algorithm>
#include <utility>

#include "devices/device_name.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// True if what is called `name`, a device or a task, may be of use to a session.
bool Fits(const std::string& name, const cluster::SessionConfig& config, bool task) {
  absl::StatusOr<DeviceName> parsed = DeviceName::Parse(name);
  for (const std::string& filter : config.device_filters()) {
    absl::StatusOr<DeviceName> pattern = DeviceName::Parse(filter);
    if (!parsed.ok() || !pattern.ok()) continue;
    if (task) {
      pattern->type = std::nullopt;
      pattern->index = std::nullopt;
    }
    if (parsed->Matches(*pattern)) return true;
  }
  return config.device_filters().empty();
}

}  // namespace

MasterTasks::MasterTasks(std::vector<Task> tasks, PeerId self, ClusterTime time_to_come_up)
    : self_(self), time_to_come_up_(time_to_come_up) {
  for (Task& task : tasks) {
    by_name_[task.name] = tasks_.size();
    tasks_.push_back({std::move(task)});
  }
}

void MasterTasks::Add(PeerId number, const Task& task, ClusterTime now) {
  if (number >= tasks_.size()) tasks_.resize(number + 1);
  if (tasks_[number].task.name != task.name) tasks_[number] = {};
  tasks_[number].task = task;
  tasks_[number].joined = std::max<ClusterTime>(1, now);
  by_name_[task.name] = number;
}

void MasterTasks::Remove(PeerId number, const absl::Status& why) {
  by_name_.erase(tasks_[number].task.name);
  tasks_[number] = {};
  tasks_[number].lost = why;
  tasks_[number].joined = 1;  // Nobody waits for it.
}

bool MasterTasks::Up(PeerId task, uint64_t incarnation, std::vector<cluster::DeviceInfo> devices) {
  State& state = tasks_[task];
  const bool is_new = incarnation != state.last_incarnation;
  state.incarnation = state.last_incarnation = incarnation;
  state.devices = std::move(devices);
  state.lost = absl::OkStatus();
  return is_new;
}

void MasterTasks::Lost(PeerId task, const absl::Status& why) {
  tasks_[task].incarnation = 0;
  tasks_[task].lost = why;
}

void MasterTasks::Refused(PeerId task, const absl::Status& why) {
  if (tasks_[task].incarnation == 0) tasks_[task].lost = why;
}

std::optional<PeerId> MasterTasks::Find(const std::string& name) const {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return std::nullopt;
  return it->second;
}

std::string MasterTasks::Describe(PeerId task) const {
  return StrCat(tasks_[task].task.name, " (", tasks_[task].task.address, ")");
}

std::vector<std::string> MasterTasks::Missing(const cluster::SessionConfig& config,
                                              ClusterTime now) const {
  std::vector<std::string> missing;
  for (PeerId i = 0; i < tasks_.size(); ++i) {
    const State& task = tasks_[i];
    const bool may_miss =
        task.joined != 0 && (!task.lost.ok() || now - task.joined > time_to_come_up_);
    if (task.incarnation == 0 && !may_miss && Fits(task.task.name, config, /*task=*/true)) {
      const std::string why(task.lost.message());
      missing.push_back(why.empty() ? Describe(i) : StrCat(Describe(i), " [", why, "]"));
    }
  }
  return missing;
}

std::vector<cluster::DeviceInfo> MasterTasks::DevicesFor(
    const cluster::SessionConfig& config) const {
  std::vector<cluster::DeviceInfo> devices;
  const auto add = [&](PeerId task) {
    for (const cluster::DeviceInfo& device : tasks_[task].devices) {
      if (Fits(device.name(), config, /*task=*/false)) devices.push_back(device);
    }
  };
  // The master's own first: what may run anywhere runs there.
  add(self_);
  for (PeerId i = 0; i < tasks_.size(); ++i) {
    if (i != self_) add(i);
  }
  return devices;
}

}  // namespace troupe
