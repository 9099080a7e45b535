#ifndef TROUPE_TESTS_API_UNKNOWN_OPS_GRAPH_H_
#define TROUPE_TESTS_API_UNKNOWN_OPS_GRAPH_H_

#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

/// A training graph of TensorFlow 1.x whose saver and summaries are of ops that nobody has
/// registered: NobodysSaveV2, NobodysRestoreV2, NobodysScalarSummary and so on.
inline GraphDef TrainingGraphWithUnknownOps() {
  GraphDef def;
  EXPECT_TRUE(ReadGraphDef("examples/tensorflow_graphs/training_v1.pbtxt", &def).ok());
  for (NodeDef& node : *def.mutable_node()) {
    const bool saver = node.op() == "SaveV2" || node.op() == "RestoreV2";
    if (saver || absl::EndsWith(node.op(), "Summary")) node.set_op("Nobodys" + node.op());
  }
  return def;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_API_UNKNOWN_OPS_GRAPH_H_
