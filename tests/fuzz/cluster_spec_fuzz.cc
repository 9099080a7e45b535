// Descriptions of clusters from outside, and lists of nodes: what is accepted is written and read
// again.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/cluster_resolvers.h"
#include "net/cluster_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)troupe::ParseTfConfig(text);
  (void)troupe::TaskId::FromDeviceName(text);
  const std::string value(text);
  const auto environment = [&value](const char* name) {
    return std::string_view(name) == "SLURM_PROCID" ? "0" : value.c_str();
  };
  (void)troupe::ParseJobSizes(text);
  (void)troupe::ResolveSlurm({{"worker", 1}}, 7000, environment);
  (void)troupe::ResolveKubernetes({{"worker", 1}}, 7000, environment);
  const absl::StatusOr<troupe::ClusterSpec> spec = troupe::ClusterSpec::Parse(text);
  if (!spec.ok()) return 0;
  for (const troupe::TaskId& task : spec->tasks()) {
    if (!spec->Address(task).ok()) std::abort();
  }
  const absl::StatusOr<troupe::ClusterSpec> copy = troupe::ClusterSpec::Parse(spec->ToJson());
  if (!copy.ok() || !(*copy == *spec)) std::abort();
  return 0;
}
