/// Spreading a case's graph over devices.
#ifndef TROUPE_TESTS_GOLDEN_SPREAD_H_
#define TROUPE_TESTS_GOLDEN_SPREAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe {
class GraphDef;
}

namespace troupe::golden {

/// Over what cases are spread. Set before any runs.
struct Spread {
  std::vector<std::string> devices;  ///< Names for `NodeDef::device`; empty: graphs are left alone.
  std::string device_type = "CPU";
  uint64_t seed = 0;
  bool optimize = true;  ///< Of sessions.
  std::string target;  ///< The master of the worker processes; empty: this process runs the cases.
};
Spread& CurrentSpread();

/// Has this process know the simulated accelerator, and kernels for it. `fast`: placement is told
/// that it is worth going there.
void UseSimulatedDevices(uint64_t seed, bool fast = false);

/// Gives every group of nodes that must be together (by reference and resource edges, and by
/// `_class`) a device of the spread, at random by seed and case. Devices named in the graph are
/// overwritten, unless `keep_named`. Does nothing to a graph that cannot be imported.
void SpreadGraph(const std::string& case_name, bool keep_named, GraphDef* def);

}  // namespace troupe::golden

#endif  // TROUPE_TESTS_GOLDEN_SPREAD_H_
