/// What nodes cost: estimated from ops and shapes, replaced by what earlier steps measured.
#ifndef TROUPE_GRAPH_PASSES_COST_MODEL_H_
#define TROUPE_GRAPH_PASSES_COST_MODEL_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "devices/device_figures.h"
#include "graph/passes/subgraph.h"

namespace troupe {

/// An estimate from the op and the inferred shapes; unknown dimensions count as `kAssumedDim`.
struct StaticCost {
  static constexpr int64_t kAssumedDim = 32;
  double flops = 0;
  double bytes = 0;  ///< Read and written. 0: the op only passes values or references on.
  /// Without what any node costs.
  double work_us(const DeviceFigures& figures = {}) const;
  double time_us(const DeviceFigures& figures = {}) const {
    return figures.node_us + work_us(figures);
  }
};
StaticCost EstimateCost(const Node& node);

/// Bytes of one output by its inferred shape; of a handle, those of its variable.
int64_t EstimateOutputBytes(const Node& node, int port);

/// True for ops whose cost does not depend on their inputs' sizes: control flow, Identity, Reshape,
/// Shape, ... They are best where their data is.
bool IsTrivialOp(const Node& node);

/// What a session knows of its nodes, by name. Thread-safe.
class CostModel {
 public:
  /// Adds a measurement to the node's running average on devices of a type (the last 16 or so
  /// count). `output_bytes` has one element per output, -1 where the size is not known; it may be
  /// empty.
  void Record(const std::string& node, double time_us, absl::Span<const int64_t> output_bytes,
              const std::string& device_type = "CPU");

  struct Measured {
    std::string device_type;                  ///< Where it ran last.
    double time_us = 0;                       ///< There.
    std::map<std::string, double> elsewhere;  ///< Averages on devices of other types.
    std::vector<int64_t> output_bytes;        ///< Per output; -1: not known.
    int64_t times = 0;
  };
  /// False if the node was never measured.
  bool Lookup(const std::string& node, Measured* measured) const;

  /// Measured, or estimated. Feeds and constants cost nothing. Where it ran last:
  double TimeUs(const SubNode& node) const;
  /// On a device; if it was measured on the CPU only, its work takes less as the estimate does.
  double TimeUs(const SubNode& node, const std::string& device_type,
                const DeviceFigures& figures) const;
  int64_t OutputBytes(const SubNode& node, int port) const;

  /// Forgets everything, or one node.
  void Clear();
  void Forget(const std::string& node);
  int64_t num_measured() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Measured> nodes_;
};

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_COST_MODEL_H_
