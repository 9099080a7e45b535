#include "net/cluster_spec.h"

#include <cctype>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_join.h"
#include "devices/device_name.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "net/address.h"
#include "net/json.h"

namespace troupe {
namespace {

using nlohmann::json;

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
  return WithContext(StrCat("cluster: task ", task.ToString(), ": "), status);
}

/// A number as a key of an object, or -1.
int TaskNumber(const std::string& text) {
  if (text.size() > 1 && text[0] == '0') return -1;
  return ParseDigits(text, 999999).value_or(-1);
}

absl::Status ReadJob(const std::string& job, const json& value,
                     std::vector<std::string>* addresses) {
  const auto wrong = [&](const auto&... why) {
    return InvalidArgument("cluster: job \"", job.substr(0, 200), "\": ", why...);
  };
  if (!value.is_structured()) {
    return wrong("expected a list of addresses, [\"HOST:PORT\", ...]");
  }
  addresses->resize(value.size());
  for (const auto& [key, item] : value.items()) {  // The keys of a list are its numbers.
    const int number = TaskNumber(key);
    if (number < 0) return wrong("\"", key.substr(0, 80), "\" is no task number");
    if (!item.is_string()) {
      return wrong("task ", number, " is no string; expected \"HOST:PORT\"");
    }
    if (number >= static_cast<int>(addresses->size())) {
      int missing = 0;
      while (value.contains(std::to_string(missing))) ++missing;
      return wrong("task ", missing, " is missing although task ", number,
                   " is there; tasks are numbered from 0 without gaps");
    }
    (*addresses)[static_cast<size_t>(number)] = item.get<std::string>();
  }
  return absl::OkStatus();
}

absl::StatusOr<ClusterSpec> FromJson(const json& value) {
  if (!value.is_object()) {
    return InvalidArgument("cluster: expected an object of jobs, {\"worker\": [\"HOST:PORT\"]}");
  }
  std::map<std::string, std::vector<std::string>> jobs;
  for (const auto& [job, tasks] : value.items()) {
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

absl::StatusOr<ClusterSpec> ClusterSpec::Parse(std::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(const json value, ParseJson(text, kMaxJsonBytes, kMaxDepth));
  // A job may be called "cluster" too; its value is a list then, or has numbered tasks.
  const auto cluster = value.is_object() ? value.find("cluster") : value.end();
  const bool is_whole = cluster != value.end() && cluster->is_object() &&
                        (cluster->empty() || TaskNumber(cluster->begin().key()) < 0);
  return FromJson(is_whole ? *cluster : value);
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
  return WithContext(StrCat("file ", file, ": "), spec.status());
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
    const auto name = [](std::string* out, const auto& job) { out->append(job.first); };
    return absl::NotFoundError(StrCat("the cluster has no job \"", task.job,
                                      "\"; its jobs are: ", absl::StrJoin(jobs_, ", ", name)));
  }
  if (task.task < 0 || task.task >= static_cast<int>(found->second.size())) {
    return absl::NotFoundError(StrCat("the cluster has no task ", task.ToString(), "; job \"",
                                      task.job, "\" has tasks 0 to ", found->second.size() - 1));
  }
  return found->second[static_cast<size_t>(task.task)];
}

std::string ClusterSpec::ToJson() const {
  return json(jobs_).dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<TfConfig> ParseTfConfig(std::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(const json value, ParseJson(text, ClusterSpec::kMaxJsonBytes, kMaxDepth));
  if (!value.is_object() || !value.contains("cluster") || !value.contains("task")) {
    return InvalidArgument("TF_CONFIG: expected an object with \"cluster\" and \"task\"");
  }
  TfConfig config;
  TROUPE_ASSIGN_OR_RETURN(config.cluster, FromJson(value["cluster"]));
  const json& task = value["task"];
  if (!task.is_object() || !task.contains("type") || !task["type"].is_string() ||
      !task.contains("index")) {
    return InvalidArgument("TF_CONFIG: \"task\" is not {\"type\": JOB, \"index\": NUMBER}");
  }
  config.task.job = task["type"].get<std::string>();
  // Some launchers write the number as a string.
  const json& index = task["index"];
  config.task.task = TaskNumber(index.is_string() ? index.get<std::string>() : index.dump());
  if (config.task.task < 0 || config.task.task > ClusterSpec::kMaxTasks) {
    return InvalidArgument("TF_CONFIG: \"index\" of the task is no task number");
  }
  const absl::StatusOr<std::string> address = config.cluster.Address(config.task);
  if (!address.ok()) {
    return InvalidArgument("TF_CONFIG: ", std::string(address.status().message()));
  }
  return config;
}

}  // namespace troupe
