// What the recorded cases differentiate.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "graph/protos/graph.pb.h"
#include "tests/golden/case_file.h"
#include "tests/golden/run_case.h"
#include "tests/graph/gradients/checked_elsewhere.h"
#include "tests/source_dir.h"

namespace troupe::golden {
namespace {

// Of each op that the table of gradients leaves to these cases there is one whose gradients
// TensorFlow gave, in the graph or in a function of it, and that the tests replay.
TEST(RecordedGradients, AreOfTheOpsThatAreLeftToThem) {
  std::set<std::string> differentiated;
  const auto files = ListCaseFiles(TROUPE_SOURCE_DIR "/tests/golden");
  ASSERT_TRUE(files.ok()) << files.status();
  for (const std::string& name : *files) {
    const absl::StatusOr<CaseFile> file = ReadCaseFile(name);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const Case& test : file->case_()) {
      bool asks = false;
      for (const GradientCheck& check : test.gradient()) asks = asks || check.error().empty();
      if (!asks) continue;
      GraphDef graph;
      ASSERT_TRUE(graph.ParseFromString(test.graph()));
      for (const NodeDef& node : graph.node()) differentiated.insert(node.op());
      for (const FunctionDef& function : graph.library().function()) {
        for (const NodeDef& node : function.node_def()) differentiated.insert(node.op());
      }
    }
  }
  for (const char* op : kCheckedByGoldenCases) {
    EXPECT_TRUE(differentiated.count(op)) << op << " is in no case with gradients";
  }
}

}  // namespace
}  // namespace troupe::golden
