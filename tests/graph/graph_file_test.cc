// Graphs read from files and written to them.

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "graph/graph.h"
#include "graph/graph_def.h"

namespace troupe {
namespace {

using Code = absl::StatusCode;

std::string Contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(GraphFile, ComesBackInBothForms) {
  Graph graph;
  const auto node = graph.AddNode(NodeSpec("Placeholder", "x")
                                      .Attr("dtype", ElementType::kFloat)
                                      .Attr("shape", PartialShape()));
  ASSERT_TRUE(node.ok()) << node.status();
  for (const char* suffix : {".pb", ".pbtxt"}) {
    const std::string file = testing::TempDir() + "graph_file_test" + suffix;
    ASSERT_EQ(WriteGraph(graph, file), absl::OkStatus());
    const bool text = Contents(file).find("node {") == 0;
    EXPECT_EQ(text, std::string(suffix) == ".pbtxt");
    const auto read = ReadGraph(file);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_NE((*read)->FindNode("x"), nullptr);
    const auto prefixed = ReadGraph(file, {.prefix = "twin"});
    ASSERT_TRUE(prefixed.ok()) << prefixed.status();
    EXPECT_NE((*prefixed)->FindNode("twin/x"), nullptr);
    std::remove(file.c_str());
  }
}

TEST(GraphFile, ErrorsNameTheFile) {
  const std::string file = testing::TempDir() + "graph_file_test_bad.pbtxt";
  std::ofstream(file) << "node { name: 'y' op: 'Neg' input: 'nobody' }";
  const absl::Status bad = ReadGraph(file).status();
  EXPECT_EQ(bad.code(), Code::kInvalidArgument);
  EXPECT_NE(std::string(bad.message()).find(file), std::string::npos) << bad;
  std::remove(file.c_str());
  EXPECT_EQ(ReadGraph(file).status().code(), Code::kNotFound);
  EXPECT_EQ(WriteGraph(Graph(), "/no/such/folder/g.pb").code(), Code::kNotFound);
}

TEST(GraphFile, FullDiskIsAnError) {
  Graph graph;
  ASSERT_TRUE(graph.AddNode(NodeSpec("NoOp", "a")).ok());
  EXPECT_EQ(WriteGraph(graph, "/dev/full").code(), Code::kDataLoss);
}

}  // namespace
}  // namespace troupe
