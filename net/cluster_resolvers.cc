#include "net/cluster_resolvers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "devices/status_macros.h"
#include "net/address.h"

namespace troupe {
namespace {

constexpr int kMaxTasks = ClusterSpec::kMaxTasks;
/// What a variable may have: more is no environment of a scheduler.
constexpr size_t kMaxText = 1 << 20;

std::optional<int> Number(absl::string_view text, int limit) {
  return ParseDigits({text.data(), text.size()}, limit);
}

/// The first of the variables that is set.
absl::StatusOr<std::string> Variable(const Environment& environment,
                                     std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = environment(name);
    if (value == nullptr || *value == '\0') continue;
    if (absl::string_view(value).size() > kMaxText) {
      return InvalidArgument(name, " has more than ", kMaxText, " bytes");
    }
    return std::string(value);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(absl::StrJoin(names, " or "), " is not set in the environment"));
}

/// Splits at commas that are in no brackets.
std::vector<std::string> SplitOutsideBrackets(absl::string_view text) {
  std::vector<std::string> parts(1);
  bool inside = false;
  for (const char c : text) {
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    if (c == ',' && !inside) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// Adds what "a[1-2]b[07,09-11]" stands for; false: it is malformed, or more than kMaxTasks names.
bool ExpandHosts(absl::string_view text, const std::string& prefix,
                 std::vector<std::string>* hosts) {
  const size_t open = text.find('[');
  if (open == absl::string_view::npos) {
    if (text.find(']') != absl::string_view::npos || hosts->size() >= kMaxTasks) return false;
    hosts->push_back(absl::StrCat(prefix, text));
    return !hosts->back().empty();
  }
  const size_t close = text.find(']', open);
  if (close == absl::string_view::npos) return false;
  const std::string before = absl::StrCat(prefix, text.substr(0, open));
  for (absl::string_view range : absl::StrSplit(text.substr(open + 1, close - open - 1), ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
    constexpr int kLimit = 999'999'999;
    const std::optional<int> first = Number(ends.front(), kLimit),
                             last = Number(ends.back(), kLimit);
    if (!first || !last || *last < *first || *last - *first >= kMaxTasks) return false;
    for (int i = *first; i <= *last; ++i) {
      std::string digits = std::to_string(i);
      // Leading zeros are those of the range's first number.
      if (digits.size() < ends.front().size()) {
        digits.insert(0, ends.front().size() - digits.size(), '0');
      }
      if (!ExpandHosts(text.substr(close + 1), before + digits, hosts)) return false;
    }
  }
  return true;
}

/// Reads "2(x3),1": 2, 2, 2, 1.
std::optional<std::vector<int>> ExpandCounts(absl::string_view text) {
  std::vector<int> counts;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t open = part.find("(x");
    const std::optional<int> count = Number(part.substr(0, open), kMaxTasks);
    std::optional<int> times = 1;
    if (open != absl::string_view::npos) {
      if (!absl::ConsumeSuffix(&part, ")")) return std::nullopt;
      times = Number(part.substr(open + 2), kMaxTasks);
    }
    if (!count || !times || counts.size() + *times > kMaxTasks) return std::nullopt;
    counts.insert(counts.end(), *times, *count);
  }
  return counts;
}

/// The node of each process.
std::optional<std::vector<size_t>> Distribute(const std::vector<int>& counts,
                                              absl::string_view distribution) {
  std::vector<size_t> nodes;
  if (absl::StartsWith(distribution, "block")) {
    for (size_t node = 0; node < counts.size(); ++node) {
      nodes.insert(nodes.end(), counts[node], node);
    }
    return nodes;
  }
  if (!absl::StartsWith(distribution, "cyclic")) return std::nullopt;
  const int rounds = *std::max_element(counts.begin(), counts.end());
  for (int round = 0; round < rounds; ++round) {
    for (size_t node = 0; node < counts.size(); ++node) {
      if (round < counts[node]) nodes.push_back(node);
    }
  }
  return nodes;
}

absl::StatusOr<int> CountTasks(const JobSizes& jobs) {
  int64_t tasks = 0;
  for (const auto& [job, size] : jobs) tasks += size;
  if (jobs.empty() || tasks > kMaxTasks) {
    return InvalidArgument("jobs with ", tasks, " tasks; expected 1 to ", kMaxTasks);
  }
  return static_cast<int>(tasks);
}

}  // namespace

absl::StatusOr<JobSizes> ParseJobSizes(std::string_view text) {
  JobSizes jobs;
  for (absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    const std::optional<int> size = sides.size() == 2 ? Number(sides[1], kMaxTasks) : std::nullopt;
    if (!size || *size == 0 || sides[0].empty()) {
      return InvalidArgument("\"", std::string(part.substr(0, 80)),
                             "\" is not JOB=TASKS; expected something like ps=1,worker=4");
    }
    for (const auto& [job, unused] : jobs) {
      if (job == sides[0]) return InvalidArgument("job \"", job, "\" is there twice");
    }
    jobs.emplace_back(std::string(sides[0]), *size);
  }
  TROUPE_RETURN_IF_ERROR(CountTasks(jobs).status());
  return jobs;
}

absl::StatusOr<TfConfig> ResolveSlurm(const JobSizes& jobs, int port,
                                      const Environment& environment) {
  TROUPE_ASSIGN_OR_RETURN(const int tasks, CountTasks(jobs));
  TROUPE_ASSIGN_OR_RETURN(const std::string process_text, Variable(environment, {"SLURM_PROCID"}));
  TROUPE_ASSIGN_OR_RETURN(const std::string nodes_text,
                          Variable(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}));
  TROUPE_ASSIGN_OR_RETURN(
      const std::string counts_text,
      Variable(environment, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}));
  const std::string distribution = Variable(environment, {"SLURM_DISTRIBUTION"}).value_or("block");

  std::vector<std::string> hosts;
  for (const std::string& part : SplitOutsideBrackets(nodes_text)) {
    if (!ExpandHosts(part, "", &hosts)) {
      return InvalidArgument("Slurm's list of nodes \"", nodes_text.substr(0, 200),
                             "\" cannot be read");
    }
  }
  const std::optional<std::vector<int>> counts = ExpandCounts(counts_text);
  if (!counts || counts->size() != hosts.size()) {
    return InvalidArgument("Slurm's tasks per node \"", counts_text.substr(0, 200), "\" are not ",
                           hosts.size(), " numbers, one for each node of \"",
                           nodes_text.substr(0, 200), "\"");
  }
  int64_t processes = 0;
  for (const int count : *counts) processes += count;
  if (processes != tasks) {
    return InvalidArgument("the step has ", processes, " processes for ", tasks,
                           " tasks; start as many (srun --ntasks=", tasks, ")");
  }
  const std::optional<std::vector<size_t>> nodes = Distribute(*counts, distribution);
  if (!nodes) {
    return InvalidArgument("Slurm's distribution \"", distribution.substr(0, 80),
                           "\" is neither block nor cyclic");
  }
  const std::optional<int> process = Number(process_text, tasks - 1);
  if (!process) {
    return InvalidArgument("SLURM_PROCID is \"", process_text.substr(0, 80), "\"; expected 0 to ",
                           tasks - 1);
  }

  std::map<std::string, std::vector<std::string>> addresses;
  TfConfig config;
  std::vector<int> on_node(hosts.size());
  int number = 0;
  for (const auto& [job, size] : jobs) {
    for (int task = 0; task < size; ++task, ++number) {
      const size_t node = (*nodes)[number];
      addresses[job].push_back(absl::StrCat(hosts[node], ":", port + on_node[node]++));
      if (number == *process) config.task = {job, task};
    }
  }
  TROUPE_ASSIGN_OR_RETURN(config.cluster, ClusterSpec::Create(addresses));
  return config;
}

absl::StatusOr<TfConfig> ResolveKubernetes(const JobSizes& jobs, int port,
                                           const Environment& environment) {
  TROUPE_RETURN_IF_ERROR(CountTasks(jobs).status());
  TROUPE_ASSIGN_OR_RETURN(const std::string pod, Variable(environment, {"HOSTNAME"}));
  const std::string domain = Variable(environment, {"TROUPE_DOMAIN"}).value_or("");

  // Names of jobs have no dashes, so at most one fits.
  const size_t dash = pod.rfind('-');
  const std::optional<int> ordinal =
      dash == std::string::npos ? std::nullopt
                                : Number(absl::string_view(pod).substr(dash + 1), kMaxTasks);
  const std::string set = pod.substr(0, dash);
  const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const auto& candidate) {
    return set == candidate.first || absl::EndsWith(set, "-" + candidate.first);
  });
  if (!ordinal || job == jobs.end() || *ordinal >= job->second) {
    return InvalidArgument("the pod's name \"", pod.substr(0, 200),
                           "\" (HOSTNAME) is not JOB-NUMBER or PREFIX-JOB-NUMBER with a job and a "
                           "number that there are");
  }
  const std::string prefix = set.substr(0, set.size() - job->first.size());

  std::map<std::string, std::vector<std::string>> addresses;
  for (const auto& [name, size] : jobs) {
    const std::string service = prefix + name;
    const std::string host = domain.empty() ? service : absl::StrCat(service, ".", domain);
    for (int task = 0; task < size; ++task) {
      addresses[name].push_back(absl::StrCat(service, "-", task, ".", host, ":", port));
    }
  }
  TfConfig config;
  config.task = {job->first, *ordinal};
  TROUPE_ASSIGN_OR_RETURN(config.cluster, ClusterSpec::Create(addresses));
  return config;
}

}  // namespace troupe
