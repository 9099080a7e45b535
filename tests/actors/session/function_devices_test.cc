// Functions whose bodies work on several devices of a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/gradients.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "tests/actors/session/spread_functions.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FunctionDevicesTest : public testing::TestWithParam<int> {  // Threads.
 protected:
  void SetUp() override {
    const GraphDef def =
        SpreadFunctions("/device:CPU:1", {"/device:CPU:0", "/device:CPU:1", "/device:CPU:2"});
    const absl::Status status = ImportGraphDef(def, {}, graph_.get());
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_NE(graph_->FindNode("x"), nullptr);
    session_ = NewSession(3);
  }
  std::unique_ptr<Session> NewSession(int devices) {
    SessionOptions options;
    options.threads = GetParam();
    options.num_cpu_devices = devices;
    return *Session::Create(graph_, options);
  }
  absl::StatusOr<int> Run(const std::string& fetch, NamedTensors feeds) {
    std::vector<Tensor> values;
    RunOptions options;
    options.timeout = absl::Seconds(30);
    const absl::Status status = session_->Run(options, feeds, {fetch}, {}, &values);
    if (!status.ok()) return status;
    return values[0].unchecked_scalar<int32_t>();
  }
  /// What has been put on each device.
  std::vector<int> Sizes() {
    std::vector<int> sizes;
    for (int i = 0; i < 3; ++i) sizes.push_back(*Run("size_" + std::to_string(i), {}));
    return sizes;
  }
  static Tensor I(int32_t value) { return Tensor::Scalar(value); }

  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::unique_ptr<Session> session_;
};
INSTANTIATE_TEST_SUITE_P(Threads, FunctionDevicesTest, testing::Values(1, 2));

TEST_P(FunctionDevicesTest, BodiesAreOnTheDevicesThatTheyAskFor) {
  EXPECT_EQ(*Run("call", {{"x", I(4)}}), 5);
  EXPECT_THAT(Sizes(), ElementsAre(0, 1, 0));
  EXPECT_EQ(*Run("if", {{"p", Tensor::Scalar(true)}, {"x", I(4)}}), 5);
  EXPECT_EQ(*Run("if", {{"p", Tensor::Scalar(false)}, {"x", I(4)}}), 4);
  EXPECT_THAT(Sizes(), ElementsAre(0, 2, 0));
  EXPECT_EQ(*Run("while", {{"x", I(0)}, {"y", I(10)}}), 10);
  EXPECT_THAT(Sizes(), ElementsAre(0, 12, 0));
}

// Their bodies cannot be put into the graph.
TEST_P(FunctionDevicesTest, SoAreThoseOfFunctionsThatCallThemselves) {
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(*Run("recursive", {{"x", I(50)}}), 0);
    EXPECT_THAT(Sizes(), ElementsAre(0, 50 * i, 0));
  }
}

TEST_P(FunctionDevicesTest, RemoteCallsGoToTheirTargets) {
  EXPECT_EQ(*Run("remote", {{"x", I(4)}}), 5);
  EXPECT_THAT(Sizes(), ElementsAre(0, 1, 0));
  EXPECT_EQ(*Run("nested", {{"x", I(4)}}), 5);
  EXPECT_THAT(Sizes(), ElementsAre(0, 2, 0));
  for (int device : {2, 0, 2, 1}) {
    const std::string name = "/device:CPU:" + std::to_string(device);
    EXPECT_EQ(*Run("dynamic", {{"target", Tensor::Scalar(name)}, {"x", I(device)}}), device + 1);
  }
  EXPECT_THAT(Sizes(), ElementsAre(1, 3, 2));
}

TEST_P(FunctionDevicesTest, TargetsThatDoNotExistAreRefused) {
  EXPECT_EQ(Run("lost", {{"x", I(4)}}).status().code(), absl::StatusCode::kInvalidArgument);
  const Tensor nowhere = Tensor::Scalar(std::string("/job:moon/task:3"));
  const absl::Status status = Run("dynamic", {{"target", nowhere}, {"x", I(4)}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:moon/task:3"));
  // With one device, too.
  session_ = NewSession(1);
  EXPECT_EQ(Run("lost", {{"x", I(4)}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Run("remote", {{"x", I(4)}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(*Run("size_0", {}), 0);
}

TEST(RemoteCallTest, HasGradients) {
  Scope s = Scope::NewRoot();
  GraphDef def;
  ASSERT_TRUE(
      ParseGraphDef(
          "library { function { signature { name: 'Cube' "
          "input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } } "
          "node_def { name: 's' op: 'Square' input: 'x' "
          "attr { key: 'T' value { type: DT_FLOAT } } } "
          "node_def { name: 'm' op: 'Mul' input: 's:y:0' input: 'x' "
          "attr { key: 'T' value { type: DT_FLOAT } } } "
          "ret { key: 'y' value: 'm:z:0' } } }",
          &def)
          .ok());
  ASSERT_TRUE(s.graph()->AddLibrary(def.library()).ok());
  Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({})});
  Output target = Const(s, Tensor::Scalar(std::string("/device:CPU:1")));
  NodeSpec spec("RemoteCall", "remote");
  AttrValue cube;
  cube.mutable_func()->set_name("Cube");
  spec.Input(target)
      .Input(std::vector<Output>{x})
      .Attr("Tin", std::vector{ElementType::kFloat})
      .Attr("Tout", std::vector{ElementType::kFloat})
      .Attr("f", cube);
  absl::StatusOr<Node*> remote = s.graph()->AddNode(spec);
  ASSERT_TRUE(remote.ok()) << remote.status();
  const std::vector<Output> grads = Gradients(s, {Output(*remote)}, {x});
  ASSERT_TRUE(s.ok()) << s.status();
  SessionOptions options;
  options.num_cpu_devices = 2;
  auto session = *Session::Create(s.graph(), options);
  auto values = session->Run({{x, Tensor::Scalar(2.0f)}}, {Output(*remote), grads[0]});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<float>(), 8);
  EXPECT_EQ((*values)[1].unchecked_scalar<float>(), 12);
}

}  // namespace
}  // namespace troupe
