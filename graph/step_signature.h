/// What a run asks for: feeds, fetches, targets.
#ifndef TROUPE_GRAPH_STEP_SIGNATURE_H_
#define TROUPE_GRAPH_STEP_SIGNATURE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "devices/tensor.h"
#include "graph/graph.h"

namespace troupe {

/// Tensors of a graph, looked up. A value.
struct StepSignature {
  std::vector<Output> feeds;
  std::vector<Output> fetches;
  std::vector<Node*> targets;

  /// Looks names up: "node:port" or "node" for feeds and fetches, "node" or "^node" for targets.
  /// NotFound for what does not exist, InvalidArgument for malformed names, ports that do not
  /// exist, duplicate feeds, a fetch that is fed, nothing to fetch or to run.
  static absl::StatusOr<StepSignature> FromNames(const Graph& graph,
                                                 const std::vector<std::string>& feeds,
                                                 const std::vector<std::string>& fetches,
                                                 const std::vector<std::string>& targets);
  /// The checks of `FromNames` on tensors that are there.
  absl::Status Check(const Graph& graph) const;
};

/// InvalidArgument if `value` is none or of another type or shape than the fed tensor `name`.
absl::Status CheckFedValue(std::string_view name, ElementType type, const PartialShape& shape,
                           const Tensor& value);

}  // namespace troupe

#endif  // TROUPE_GRAPH_STEP_SIGNATURE_H_
