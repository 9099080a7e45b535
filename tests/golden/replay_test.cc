// What counts as a failure beside cases that fail.

#include "tests/golden/replay.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "gtest/gtest.h"

namespace troupe::golden {
namespace {

// An op of TensorFlow, of stage 5, that is not registered here.
constexpr char kMissing[] = "CollectiveReduce";

/// A file with one case, of one node without inputs.
CaseFile FileOf(const std::string& op) {
  GraphDef def;
  NodeDef* node = def.add_node();
  node->set_name("node");
  node->set_op(op);
  CaseFile file;
  Case* test = file.add_case_();
  test->set_name("the_case");
  test->set_op(op);
  test->set_graph(def.SerializeAsString());
  return file;
}

struct Printed {
  Counts counts;
  std::string text;
};

Printed Print(const CaseFile& file, const Selection& selection, bool named) {
  Printed printed;
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  printed.counts = Replay("file", named, file, selection, /*workers=*/nullptr, out);
  std::fclose(out);
  printed.text.assign(text, size);
  std::free(text);
  return printed;
}

TEST(ReplayTest, PrintsTheCounts) {
  EXPECT_EQ(Print(FileOf("NoOp"), Selection(), true).text, "file: 1 passed, 0 failed, 0 skipped\n");
}

TEST(ReplayTest, MissingOpIsSkippedWithoutStage) {
  ASSERT_FALSE(OpRegistry::Global()->LookUp(kMissing).ok());
  Selection selection;
  EXPECT_EQ(Print(FileOf(kMissing), selection, true).text, "file: 0 passed, 0 failed, 1 skipped\n");
  selection.list_skipped = true;
  EXPECT_TRUE(Print(FileOf(kMissing), selection, true)
                  .text.starts_with("SKIP file the_case: missing op: "));
}

TEST(ReplayTest, MissingOpOfTheStageFails) {
  Selection selection;
  selection.stage = 5;
  const Printed printed = Print(FileOf(kMissing), selection, true);
  EXPECT_EQ(printed.counts.failed, 1);
  EXPECT_EQ(printed.counts.skipped, 0);
  EXPECT_TRUE(printed.text.starts_with("FAIL file the_case: missing op of stage 5 or before: "))
      << printed.text;
}

TEST(ReplayTest, NamedFileOfWhichTheStageSelectsNothingFails) {
  Selection selection;
  selection.stage = 0;
  const Printed named = Print(FileOf("NoOp"), selection, /*named=*/true);
  EXPECT_EQ(named.counts.failed, 1);
  EXPECT_EQ(named.text,
            "FAIL file *: no case is of stage 0 or before\nfile: 0 passed, 1 failed, 0 skipped\n");
  EXPECT_EQ(Print(FileOf("NoOp"), selection, /*named=*/false).counts.failed, 0);
}

TEST(ReplayTest, CasesThatTakeLongFail) {
  Selection selection;
  selection.at_most = 60;
  EXPECT_EQ(Print(FileOf("NoOp"), selection, true).counts.failed, 0);
  selection.at_most = 0;
  const Printed printed = Print(FileOf("NoOp"), selection, true);
  EXPECT_EQ(printed.counts.failed, 1);
  EXPECT_TRUE(printed.text.starts_with("FAIL file the_case: took ")) << printed.text;
}

TEST(ReplayTest, SelectsByOpsAndName) {
  CaseFile file = FileOf("NoOp");
  Selection selection;
  selection.ops = {"Add", "NoOp"};
  selection.name = "the_case";
  EXPECT_EQ(Print(file, selection, true).counts.passed, 1);
  selection.ops = {"Add"};
  EXPECT_EQ(Print(file, selection, true).counts.passed, 0);
  selection.ops = {};
  selection.name = "another";
  EXPECT_EQ(Print(file, selection, true).counts.passed, 0);
  selection.name = "";
  selection.except = {"another"};
  EXPECT_EQ(Print(file, selection, true).counts.passed, 1);
  selection.except = {"another", "the_case"};
  EXPECT_EQ(Print(file, selection, true).counts.passed, 0);
}

TEST(CountsTest, SayWhichOpsNeverRanThereAndWhy) {
  Counts counts;
  EXPECT_EQ(counts.PercentThere(), 0);
  counts.Add({.ops = {{"Add", {.there = 2, .elsewhere = 1, .has_kernel = true}}}});
  EXPECT_EQ(counts.PlacedToString(), "2 of 3 nodes (66.7 %)");
  counts.Add({.ops = {{"Identity", {.elsewhere = 1, .has_kernel = true}}}});
  EXPECT_EQ(counts.PlacedToString(),
            "2 of 4 nodes (50.0 %); never there, whose kernels are for other element types, or "
            "which must be with such an op: Identity");
  counts.Add({.ops = {{"Print", {.elsewhere = 1}}, {"Add", {.there = 3, .has_kernel = true}}}});
  EXPECT_EQ(counts.PlacedToString(),
            "5 of 8 nodes (62.5 %); never there, as there is no kernel: Print; nor these, whose "
            "kernels are for other element types, or which must be with such an op: Identity");
  EXPECT_EQ(counts.PercentThere(), 62.5);
}

}  // namespace
}  // namespace troupe::golden
