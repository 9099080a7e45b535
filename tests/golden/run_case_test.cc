// The runner must notice every way in which a case can be wrong.

#include "tests/golden/run_case.h"

#include <string>
#include <vector>

#include "devices/tensor_proto.h"
#include "google/protobuf/text_format.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/tensor.pb.h"
#include "gtest/gtest.h"
#include "tests/golden/case_file.h"
#include "tests/source_dir.h"

namespace troupe::golden {
namespace {

std::string Bytes(const Tensor& tensor) {
  TensorProto proto;
  TensorToProto(tensor, &proto);
  return proto.SerializeAsString();
}

std::string GraphBytes(const std::string& text) {
  GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  return def.SerializeAsString();
}

constexpr char kGraph[] = R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "unused" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { } } } }
    node { name: "y" op: "Mul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } })";

/// A case that passes: y = x * x with its shape, a run that works, one that does not, a gradient.
Case GoodCase() {
  Case test;
  test.set_name("square");
  test.set_graph(GraphBytes(kGraph));
  ShapeCheck* shape = test.add_shape();
  shape->set_tensor("y:0");
  TensorShapeProto dims;
  dims.add_dim()->set_size(2);
  shape->set_shape(dims.SerializeAsString());
  Step* step = test.add_step();
  NamedTensor* feed = step->add_feed();
  feed->set_name("x:0");
  feed->set_tensor(Bytes(Tensor::Vector<float>({2, 3})));
  step->add_fetch("y:0");
  step->add_expected(Bytes(Tensor::Vector<float>({4, 9})));
  Step* bad = test.add_step();
  bad->add_fetch("y:0");
  bad->set_error("INVALID_ARGUMENT");
  GradientCheck* gradient = test.add_gradient();
  gradient->add_y("y:0");
  gradient->add_x("x:0");
  gradient->add_x("unused:0");
  *gradient->add_feed() = *feed;
  gradient->add_grad_y(Bytes(Tensor::Vector<float>({1, 10})));
  gradient->add_expected(Bytes(Tensor::Vector<float>({4, 60})));
  gradient->add_expected("");
  return test;
}

std::string FirstFailure(const Case& test) {
  const Outcome outcome = RunCase(test);
  EXPECT_EQ(outcome.verdict, Verdict::kFailed);
  return outcome.failures.empty() ? "" : outcome.failures[0];
}

TEST(RunCase, PassesWhatIsRight) {
  const Outcome outcome = RunCase(GoodCase());
  EXPECT_EQ(outcome.verdict, Verdict::kPassed);
  for (const std::string& failure : outcome.failures) ADD_FAILURE() << failure;
}

TEST(RunCase, NoticesEveryMutation) {
  Case test = GoodCase();
  test.mutable_step(0)->set_expected(0, Bytes(Tensor::Vector<float>({4, 9.5})));
  EXPECT_TRUE(
      FirstFailure(test).starts_with("step 0 y:0: got float[2] [4 9], want float[2] [4 9.5]"));
  test = GoodCase();
  test.mutable_step(0)->set_expected(0, Bytes(Tensor::Vector<double>({4, 9})));
  FirstFailure(test);
  test = GoodCase();
  test.mutable_step(0)->set_error("INVALID_ARGUMENT");
  FirstFailure(test);
  test = GoodCase();
  test.mutable_step(1)->set_error("NOT_FOUND");
  FirstFailure(test);
  test = GoodCase();
  test.mutable_step(1)->clear_error();
  FirstFailure(test);
  test = GoodCase();
  test.mutable_shape(0)->clear_shape();
  EXPECT_EQ(FirstFailure(test), "shape y:0: got [2], want []");
  test = GoodCase();
  TensorShapeProto unknown;
  unknown.add_dim()->set_size(-1);
  test.mutable_shape(0)->set_shape(unknown.SerializeAsString());
  EXPECT_EQ(FirstFailure(test), "shape y:0: got [2], want [?]");
  test = GoodCase();
  test.mutable_shape(0)->set_tensor("nobody:0");
  FirstFailure(test);
  test = GoodCase();
  test.set_build_error("INVALID_ARGUMENT|NOT_FOUND");
  test.set_graph(GraphBytes(R"(node { name: "n" op: "NoOp" })"));
  FirstFailure(test);
  test = GoodCase();
  test.mutable_gradient(0)->set_expected(0, Bytes(Tensor::Vector<float>({4, 61})));
  FirstFailure(test);
  test = GoodCase();
  test.mutable_gradient(0)->clear_grad_y();
  FirstFailure(test);
  test = GoodCase();
  test.mutable_gradient(0)->set_expected(0, "");
  FirstFailure(test);
  test = GoodCase();
  test.mutable_gradient(0)->set_expected(1, Bytes(Tensor::Scalar(0.0f)));
  FirstFailure(test);
  test = GoodCase();
  test.mutable_gradient(0)->set_error("NOT_FOUND");
  FirstFailure(test);
}

TEST(RunCase, FedFetchesAreTheFeeds) {
  Case test = GoodCase();
  Step* step = test.mutable_step(0);
  step->add_fetch("x");
  step->add_expected(Bytes(Tensor::Vector<float>({2, 3})));
  EXPECT_EQ(RunCase(test).verdict, Verdict::kPassed);
  step->set_expected(1, Bytes(Tensor::Vector<float>({2, 4})));
  FirstFailure(test);
}

TEST(RunCase, BuildErrorsMayComeWhenTheGraphIsRun) {
  Case test;
  test.set_graph(GraphBytes(kGraph));  // imports, and cannot run without a feed
  test.set_build_error("INVALID_ARGUMENT");
  EXPECT_EQ(RunCase(test).verdict, Verdict::kPassed);
  test.set_graph("\xff\xff\xff not a graph");
  EXPECT_EQ(RunCase(test).verdict, Verdict::kPassed);
  test.set_graph(GraphBytes(R"(node { name: "n" op: "NoSuchOpAnywhere" })"));
  test.set_build_error("NOT_FOUND");
  EXPECT_EQ(RunCase(test).verdict, Verdict::kPassed);
}

TEST(RunCase, UnknownOpsAreNoReasonToSkip) {
  Case test;
  test.set_graph(GraphBytes(R"(node { name: "n" op: "NoSuchOpAnywhere" })"));
  test.add_step()->add_target("n");
  EXPECT_EQ(MissingOp(test), "");
  EXPECT_EQ(RunCase(test).verdict, Verdict::kFailed);
}

TEST(Stage, IsThatOfTheLatestOp) {
  Case test;
  EXPECT_EQ(Stage(test), 0);
  test.set_graph(GraphBytes(kGraph));
  EXPECT_EQ(Stage(test), 1);
  test.set_graph(GraphBytes(R"(
      node { name: "a" op: "NoSuchOpAnywhere" }
      library { function { node_def { name: "b" op: "Switch" } } })"));
  EXPECT_EQ(Stage(test), 2);
}

TEST(CaseFiles, AreFoundAndRead) {
  const auto files = ListCaseFiles(std::string(TROUPE_SOURCE_DIR) + "/tests/golden");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->size(), 28u);
  const auto cases = ReadCaseFile(files->front());
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_GT(cases->case__size(), 1000);
  EXPECT_EQ(ReadCaseFile("/nowhere").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(
      ReadCaseFile(std::string(TROUPE_SOURCE_DIR) + "/tests/golden/run_case.cc").status().code(),
      absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace troupe::golden
