#include "net/cluster_spec.h"

#include <cctype>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "devices/status_macros.h"
#include "net/address.h"
#include "net/json.h"

namespace troupe {
namespace {

constexpr int kMaxDepth = 16;

/// What device names allow: a letter, then letters, digits and underscores.
bool IsJobName(std::string_view name) {
  if (name.empty() || name.size() > 200) return false;
  if (!std::isalpha(static_cast<unsigned char>(name.front()))) return false;
  for (char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

/// Two spellings of one address are one address.
std::string Canonical(HostPort address) {
  if (address.host == "localhost") address.host = "127.0.0.1";
  for (char& c : address.host) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return address.ToString();
}

absl::Status InTask(const TaskId& task, const absl::Status& status) {
  return absl::Status(status.code(), StrCat("cluster: task ", task.ToString(), ": ",
                                            std::string(status.message())));
}

/// A number as a key of an object, or -1.
int TaskNumber(const std::string& text) {
  if (text.empty() || text.size() > 6 || (text.size() > 1 && text[0] == '0')) return -1;
  int number = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return -1;
    number = number * 10 + (c - '0');
  }
  return number;
}

absl::Status ReadJob(const std::string& job, const Json& value,
                     std::vector<std::string>* addresses) {
  const auto wrong = [&](const auto&... why) {
    return InvalidArgument("cluster: job \"", job.substr(0, 200), "\": ", why...);
  };
  if (value.kind == Json::Kind::kArray) {
    for (const Json& item : value.items) {
      if (item.kind != Json::Kind::kString) {
        return wrong("task ", addresses->size(), " is no string; expected \"HOST:PORT\"");
      }
      addresses->push_back(item.text);
    }
    return absl::OkStatus();
  }
  if (value.kind != Json::Kind::kObject) {
    return wrong("expected a list of addresses, [\"HOST:PORT\", ...]");
  }
  addresses->resize(value.members.size());
  for (const auto& [key, item] : value.members) {
    const int number = TaskNumber(key);
    if (number < 0) return wrong("\"", key.substr(0, 80), "\" is no task number");
    if (item.kind != Json::Kind::kString) {
      return wrong("task ", number, " is no string; expected \"HOST:PORT\"");
    }
    if (number >= static_cast<int>(addresses->size())) {
      int missing = 0;
      while (value.members.count(std::to_string(missing)) > 0) ++missing;
      return wrong("task ", missing, " is missing although task ", number,
                   " is there; tasks are numbered from 0 without gaps");
    }
    (*addresses)[static_cast<size_t>(number)] = item.text;
  }
  return absl::OkStatus();
}

absl::StatusOr<ClusterSpec> FromJson(const Json& value) {
  if (value.kind != Json::Kind::kObject) {
    return InvalidArgument("cluster: expected an object of jobs, {\"worker\": [\"HOST:PORT\"]}");
  }
  std::map<std::string, std::vector<std::string>> jobs;
  for (const auto& [job, tasks] : value.members) {
    TROUPE_RETURN_IF_ERROR(ReadJob(job, tasks, &jobs[job]));
  }
  return ClusterSpec::Create(jobs);
}

}  // namespace

std::string TaskId::ToString() const { return StrCat("/job:", job, "/replica:0/task:", task); }

absl::StatusOr<TaskId> TaskId::FromDeviceName(std::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(const DeviceName parsed, DeviceName::Parse(name));
  if (!parsed.job || !parsed.task) {
    return InvalidArgument("\"", name, "\" names no task; expected /job:NAME/task:NUMBER");
  }
  if (parsed.replica.value_or(0) != 0) {
    return InvalidArgument("\"", name, "\": only replica 0 exists");
  }
  return TaskId{*parsed.job, *parsed.task};
}

absl::StatusOr<ClusterSpec> ClusterSpec::Create(
    const std::map<std::string, std::vector<std::string>>& jobs) {
  if (jobs.empty()) return InvalidArgument("cluster: it has no jobs");
  std::unordered_map<std::string, TaskId> taken;
  ClusterSpec spec;
  for (const auto& [job, addresses] : jobs) {
    if (!IsJobName(job)) {
      return InvalidArgument("cluster: \"", job.substr(0, 200),
                             "\" is no job name; expected a letter, then letters, digits and _");
    }
    if (addresses.empty()) return InvalidArgument("cluster: job \"", job, "\" has no tasks");
    for (const std::string& text : addresses) {
      const TaskId task{job, static_cast<int>(&text - addresses.data())};
      if (taken.size() >= kMaxTasks) {
        return InvalidArgument("cluster: more than ", kMaxTasks, " tasks");
      }
      const absl::StatusOr<HostPort> address = ParseHostPort(text);
      if (!address.ok()) return InTask(task, address.status());
      const auto [other, added] = taken.emplace(Canonical(*address), task);
      if (!added) {
        return InTask(task, InvalidArgument("address ", address->ToString(), " is also that of ",
                                            other->second.ToString()));
      }
      spec.jobs_[job].push_back(address->ToString());
    }
  }
  return spec;
}

absl::StatusOr<ClusterSpec> ClusterSpec::Parse(std::string_view json) {
  TROUPE_ASSIGN_OR_RETURN(const Json value, ParseJson(json, kMaxJsonBytes, kMaxDepth));
  const Json* cluster = value.Find("cluster");
  // A job may be called "cluster" too; its value is a list then.
  if (cluster != nullptr && cluster->kind == Json::Kind::kObject) {
    // {"cluster": {"0": "host:port"}} is a job with numbered tasks.
    const bool numbered =
        !cluster->members.empty() && TaskNumber(cluster->members.begin()->first) >= 0;
    if (!numbered) return FromJson(*cluster);
  }
  return FromJson(value);
}

absl::StatusOr<ClusterSpec> ClusterSpec::ReadFile(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::NotFoundError(StrCat("cluster file ", file, ": cannot be opened"));
  std::string text;
  char block[65536];
  while (text.size() <= kMaxJsonBytes && (in.read(block, sizeof(block)), in.gcount() > 0)) {
    text.append(block, static_cast<size_t>(in.gcount()));
  }
  absl::StatusOr<ClusterSpec> spec = Parse(text);
  if (spec.ok()) return spec;
  return absl::Status(spec.status().code(),
                      StrCat("file ", file, ": ", std::string(spec.status().message())));
}

int ClusterSpec::num_tasks(const std::string& job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : static_cast<int>(found->second.size());
}

std::vector<TaskId> ClusterSpec::tasks() const {
  std::vector<TaskId> all;
  for (const auto& [job, addresses] : jobs_) {
    for (size_t i = 0; i < addresses.size(); ++i) all.push_back({job, static_cast<int>(i)});
  }
  return all;
}

absl::StatusOr<std::string> ClusterSpec::Address(const TaskId& task) const {
  const auto found = jobs_.find(task.job);
  if (found == jobs_.end()) {
    std::string known;
    for (const auto& [job, addresses] : jobs_) known += (known.empty() ? "" : ", ") + job;
    return absl::NotFoundError(
        StrCat("the cluster has no job \"", task.job, "\"; its jobs are: ", known));
  }
  if (task.task < 0 || task.task >= static_cast<int>(found->second.size())) {
    return absl::NotFoundError(StrCat("the cluster has no task ", task.ToString(), "; job \"",
                                      task.job, "\" has tasks 0 to ", found->second.size() - 1));
  }
  return found->second[static_cast<size_t>(task.task)];
}

absl::StatusOr<TaskId> ClusterSpec::TaskAt(std::string_view address) const {
  TROUPE_ASSIGN_OR_RETURN(const HostPort wanted, ParseHostPort(address));
  const std::string canonical = Canonical(wanted);
  for (const auto& [job, addresses] : jobs_) {
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (Canonical(*ParseHostPort(addresses[i])) == canonical) {
        return TaskId{job, static_cast<int>(i)};
      }
    }
  }
  return absl::NotFoundError(StrCat("no task of the cluster has address ", address));
}

std::vector<TaskId> ClusterSpec::Matching(const DeviceName& pattern) const {
  std::vector<TaskId> matching;
  if (pattern.replica.value_or(0) != 0) return matching;
  for (TaskId& task : tasks()) {
    if (pattern.job.value_or(task.job) == task.job &&
        pattern.task.value_or(task.task) == task.task) {
      matching.push_back(std::move(task));
    }
  }
  return matching;
}

absl::Status ClusterSpec::AddTask(const TaskId& task, const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return InTask(task, parsed.status());
  if (!IsJobName(task.job)) {
    return InTask(task, InvalidArgument("\"", task.job, "\" is no job name"));
  }
  const int size = num_tasks(task.job);
  if (task.task >= 0 && task.task < size) {
    const std::string& known = jobs_[task.job][static_cast<size_t>(task.task)];
    if (Canonical(*ParseHostPort(known)) == Canonical(*parsed)) return absl::OkStatus();
    return absl::AlreadyExistsError(StrCat("cluster: task ", task.ToString(),
                                           " is there already, at ", known, ", not at ", address));
  }
  if (task.task != size) {
    return InTask(task,
                  InvalidArgument("tasks are numbered from 0 without gaps; the next of job \"",
                                  task.job, "\" is ", size));
  }
  const absl::StatusOr<TaskId> other = TaskAt(address);
  if (other.ok()) {
    return InTask(task,
                  InvalidArgument("address ", address, " is also that of ", other->ToString()));
  }
  jobs_[task.job].push_back(parsed->ToString());
  return absl::OkStatus();
}

std::string ClusterSpec::ToJson() const {
  std::string out = "{";
  for (const auto& [job, addresses] : jobs_) {
    if (out.size() > 1) out += ", ";
    out += JsonQuoted(job) + ": [";
    for (const std::string& address : addresses) {
      if (&address != addresses.data()) out += ", ";
      out += JsonQuoted(address);
    }
    out += "]";
  }
  return out + "}";
}

absl::StatusOr<TfConfig> ParseTfConfig(std::string_view json) {
  TROUPE_ASSIGN_OR_RETURN(const Json value, ParseJson(json, ClusterSpec::kMaxJsonBytes, kMaxDepth));
  const Json* cluster = value.Find("cluster");
  const Json* task = value.Find("task");
  if (cluster == nullptr || task == nullptr) {
    return InvalidArgument("TF_CONFIG: expected an object with \"cluster\" and \"task\"");
  }
  TfConfig config;
  TROUPE_ASSIGN_OR_RETURN(config.cluster, FromJson(*cluster));
  const Json* type = task->Find("type");
  const Json* index = task->Find("index");
  if (type == nullptr || type->kind != Json::Kind::kString || index == nullptr) {
    return InvalidArgument("TF_CONFIG: \"task\" is not {\"type\": JOB, \"index\": NUMBER}");
  }
  config.task.job = type->text;
  // Some launchers write the number as a string.
  int64_t number = index->kind == Json::Kind::kString ? TaskNumber(index->text)
                   : index->integral                  ? index->integer
                                                      : -1;
  if (number < 0 || number > ClusterSpec::kMaxTasks) {
    return InvalidArgument("TF_CONFIG: \"index\" of the task is no task number");
  }
  config.task.task = static_cast<int>(number);
  const absl::StatusOr<std::string> address = config.cluster.Address(config.task);
  if (!address.ok()) {
    return InvalidArgument("TF_CONFIG: ", std::string(address.status().message()));
  }
  return config;
}

}  // namespace troupe
