#include "api/config.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "api/internal/not_honored.h"
#include "devices/device_registry.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "graph/message_file.h"

namespace troupe {
namespace {

template <typename Message>
absl::StatusOr<Message> Read(std::string_view file_or_text) {
  return CatchExceptions([&]() -> absl::StatusOr<Message> {
    Message message;
    const std::string name(file_or_text);
    const absl::StatusOr<FileSystem*> files = FileSystems().Find(name);
    if (files.ok() && !name.empty() && (*files)->Exists(name).ok()) {
      TROUPE_RETURN_IF_ERROR(ReadMessage(name, UnknownFields::kRefuse, &message));
      return message;
    }
    const absl::Status status = ParseTextMessage(file_or_text, UnknownFields::kRefuse, &message);
    if (status.ok()) return message;
    return InvalidArgument("'", file_or_text, "' is neither a file nor a ",
                           Message::descriptor()->name(),
                           " in text form: ", std::string(status.message()));
  });
}

/// "0,2" as numbers.
absl::StatusOr<std::vector<int>> VisibleDevices(const std::string& list) {
  std::vector<int> numbers;
  for (const absl::string_view text : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
    if (!absl::SimpleAtoi(text, &numbers.emplace_back())) {
      return InvalidArgument("gpu_options.visible_device_list: '", list,
                             "' is no list of numbers with commas between them");
    }
  }
  return numbers;
}

/// How many devices of a type the machine has; 0, and a warning that says why, if it has none.
int Available(const std::string& type) {
  const absl::StatusOr<int> available = DeviceRegistry::Global()->NumAvailable(type);
  if (available.ok()) return *available;
  WriteLog(LogLevel::kWarning, "", {"no devices", type}, "ConfigProto: no ", type,
           " devices: ", std::string(available.status().message()));
  return 0;
}

absl::Status ApplyGpuOptions(const config::GPUOptions& gpu, DeviceOptionsByType* devices) {
  const auto found = devices->find("GPU");
  if (!gpu.visible_device_list().empty()) {
    TROUPE_ASSIGN_OR_RETURN(std::vector<int> visible, VisibleDevices(gpu.visible_device_list()));
    const int listed = static_cast<int>(visible.size());
    if (found == devices->end() && Available("GPU") > 0) (*devices)["GPU"].count = listed;
    const auto entry = devices->find("GPU");
    if (entry != devices->end()) {
      entry->second.count = std::min(entry->second.count, listed);
      entry->second.visible = std::move(visible);
    }
  }
  const double fraction = gpu.per_process_gpu_memory_fraction();
  if (fraction < 0 || fraction > 1) {
    return InvalidArgument("gpu_options.per_process_gpu_memory_fraction is ", fraction,
                           "; expected a number from 0 to 1");
  }
  const auto entry = devices->find("GPU");
  if (fraction > 0 && entry != devices->end() && entry->second.count > 0) {
    const int first = entry->second.visible.empty() ? 0 : entry->second.visible[0];
    const absl::StatusOr<int64_t> total = DeviceRegistry::Global()->TotalMemory("GPU", first);
    TROUPE_RETURN_IF_ERROR(
        WithContext("gpu_options.per_process_gpu_memory_fraction: ", total.status()));
    entry->second.memory_limit = static_cast<int64_t>(fraction * static_cast<double>(*total));
  }
  return absl::OkStatus();
}

absl::Status ApplyDevices(const config::ConfigProto& config, int* num_cpu_devices,
                          DeviceOptionsByType* devices) {
  for (const auto& [type, count] : config.device_count()) {
    if (count < 0) {
      return InvalidArgument("device_count: ", count, " devices of type ", type);
    }
    if (type == "CPU") {
      // As in TensorFlow a process is not without one.
      *num_cpu_devices = std::max(count, 1);
      if (const auto cpu = devices->find("CPU"); cpu != devices->end()) {
        cpu->second.count = *num_cpu_devices;
      }
    } else {
      const int there = count == 0 ? 0 : std::min(count, Available(type));
      if (there == 0) {
        devices->erase(type);
      } else {
        (*devices)[type].count = there;
      }
    }
  }
  return ApplyGpuOptions(config.gpu_options(), devices);
}

/// One pool computes what TensorFlow's two pools compute.
absl::Status ApplyThreads(const config::ConfigProto& config, int* threads) {
  const int intra = config.intra_op_parallelism_threads();
  const int inter = config.inter_op_parallelism_threads();
  if (intra < 0) {
    return InvalidArgument("intra_op_parallelism_threads is ", intra,
                           "; expected 0 (one thread for each core) or more");
  }
  // A negative number of threads between ops stands for the caller's thread, which computes anyway.
  if (intra > 0 || inter > 0) *threads = std::max(intra, inter);
  return absl::OkStatus();
}

/// Fields that are honored, or that ask for what is done anyway.
constexpr std::string_view kDeviceFields[] = {
    "device_count", "intra_op_parallelism_threads", "inter_op_parallelism_threads",
    "use_per_session_threads", "gpu_options.visible_device_list",
    "gpu_options.per_process_gpu_memory_fraction",
    // Memory is taken as it is needed, and kept.
    "gpu_options.allow_growth"};
constexpr std::string_view kSessionFields[] = {
    "device_filters", "allow_soft_placement", "log_device_placement", "operation_timeout_in_ms",
    "graph_options.optimizer_options.opt_level",
    "graph_options.rewrite_options.disable_meta_optimizer",
    "graph_options.enable_bfloat16_sendrecv",
    // Always so.
    "graph_options.enable_recv_scheduling", "graph_options.infer_shapes",
    "graph_options.place_pruned_graph",
    "graph_options.optimizer_options.do_common_subexpression_elimination",
    "graph_options.optimizer_options.do_constant_folding",
    "graph_options.optimizer_options.do_function_inlining"};

absl::Duration Milliseconds(int64_t ms) {
  return ms > 0 ? absl::Milliseconds(ms) : absl::InfiniteDuration();
}

}  // namespace

absl::StatusOr<config::ConfigProto> ReadConfigProto(std::string_view file_or_text) {
  return Read<config::ConfigProto>(file_or_text);
}
absl::StatusOr<config::RunOptions> ReadRunOptions(std::string_view file_or_text) {
  return Read<config::RunOptions>(file_or_text);
}
absl::StatusOr<config::ServerDef> ReadServerDef(std::string_view file_or_text) {
  return Read<config::ServerDef>(file_or_text);
}

absl::StatusOr<SessionOptions> SessionOptionsFrom(const config::ConfigProto& config,
                                                  SessionOptions options) {
  TROUPE_RETURN_IF_ERROR(ApplyThreads(config, &options.threads));
  TROUPE_RETURN_IF_ERROR(ApplyDevices(config, &options.num_cpu_devices, &options.devices));
  const auto& filters = config.device_filters();
  if (!filters.empty()) options.device_filters.assign(filters.begin(), filters.end());
  if (config.allow_soft_placement()) options.allow_soft_placement = true;
  if (config.log_device_placement()) options.log_device_placement = true;
  if (config.operation_timeout_in_ms() < 0) {
    return InvalidArgument("operation_timeout_in_ms is ", config.operation_timeout_in_ms(),
                           "; expected 0 (none) or more");
  }
  if (config.operation_timeout_in_ms() > 0) {
    options.operation_timeout = Milliseconds(config.operation_timeout_in_ms());
  }
  const config::GraphOptions& graph = config.graph_options();
  if (graph.optimizer_options().opt_level() == config::OptimizerOptions::L0 ||
      graph.rewrite_options().disable_meta_optimizer()) {
    options.optimize = false;
  }
  if (graph.enable_bfloat16_sendrecv()) options.lossy_transfers = true;
  std::vector<std::string_view> honored(std::begin(kDeviceFields), std::end(kDeviceFields));
  honored.insert(honored.end(), std::begin(kSessionFields), std::end(kSessionFields));
  SayNotHonored(config, honored);
  return options;
}

absl::StatusOr<RunOptions> RunOptionsFrom(const config::RunOptions& given, RunOptions options) {
  if (given.timeout_in_ms() < 0) {
    return InvalidArgument("timeout_in_ms is ", given.timeout_in_ms(),
                           "; expected 0 (none) or more");
  }
  if (given.timeout_in_ms() > 0) options.timeout = Milliseconds(given.timeout_in_ms());
  if (given.trace_level() != config::RunOptions::NO_TRACE) options.trace = true;
  SayNotHonored(given, {"timeout_in_ms", "trace_level"});
  return options;
}

absl::Status ApplyConfig(const config::ConfigProto& config, ServerOptions* options) {
  TROUPE_RETURN_IF_ERROR(ApplyThreads(config, &options->threads));
  TROUPE_RETURN_IF_ERROR(ApplyDevices(config, &options->num_cpu_devices, &options->devices));
  SayNotHonored(config,
                std::vector<std::string_view>(std::begin(kDeviceFields), std::end(kDeviceFields)),
                "ServerDef.default_session_config");
  return absl::OkStatus();
}

absl::StatusOr<ServerOptions> ServerOptionsFrom(const config::ServerDef& server,
                                                ServerOptions options) {
  std::map<std::string, std::vector<std::string>> jobs;
  for (const config::JobDef& job : server.cluster().job()) {
    if (jobs.count(job.name()) > 0) {
      return InvalidArgument("ServerDef: job '", job.name(), "' is there twice");
    }
    std::vector<std::string>& addresses = jobs[job.name()];
    const std::map<int, std::string> tasks(job.tasks().begin(), job.tasks().end());
    for (const auto& [number, address] : tasks) {
      if (number != static_cast<int>(addresses.size())) {
        return InvalidArgument("ServerDef: job '", job.name(), "' has task ", number,
                               " and no task ", addresses.size());
      }
      addresses.push_back(address);
    }
  }
  TROUPE_ASSIGN_OR_RETURN(options.cluster, ClusterSpec::Create(jobs));
  options.job = server.job_name();
  options.task = server.task_index();
  TROUPE_ASSIGN_OR_RETURN(const std::string address,
                          options.cluster.Address({options.job, options.task}));
  if (server.replica() != 0) {
    return InvalidArgument("ServerDef: replica is ", server.replica(), "; there is replica 0 only");
  }
  const std::string port = address.substr(address.rfind(':') + 1);
  if (server.port() != 0 && StrCat(server.port()) != port) {
    return InvalidArgument("ServerDef: port is ", server.port(), ", and the cluster has ", address,
                           " for the task");
  }
  TROUPE_RETURN_IF_ERROR(ApplyConfig(server.default_session_config(), &options));
  std::vector<std::string_view> honored = {"cluster", "job_name", "task_index",
                                           "port",    "replica",  "default_session_config"};
  // TensorFlow's default, in whose place is Troupe's own protocol.
  if (server.protocol() == "grpc" || server.protocol() == "troupe") honored.push_back("protocol");
  SayNotHonored(server, honored);
  return options;
}

}  // namespace troupe
