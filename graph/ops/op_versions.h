/// Ops that come in two versions with much in common, such as `QueueSize` and `QueueSizeV2`.
#ifndef TROUPE_GRAPH_OPS_OP_VERSIONS_H_
#define TROUPE_GRAPH_OPS_OP_VERSIONS_H_

namespace troupe {

/// The names of both, written out: whoever searches for an op finds its definition.
struct OpVersions {
  const char* first;
  const char* second;

  const char* Name(bool of_second) const { return of_second ? second : first; }
};

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_OP_VERSIONS_H_
