#include "api/training/replica_device_setter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/troupe.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

const std::string& Device(const Output& output) { return output.node->requested_device(); }

ModelVariable Zeros(const Scope& s, const Shape& shape, std::string_view name) {
  return ModelVariable(s, shape, ZerosInitializer(), name);
}

/// Where variables of these sizes go.
std::vector<std::string> Spread(PlacementStrategy strategy, const std::vector<int64_t>& sizes) {
  const Scope s = Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter(
      {.ps_tasks = 3, .worker_device = "/job:worker/task:1", .strategy = std::move(strategy)}));
  std::vector<std::string> tasks;
  for (const int64_t size : sizes) {
    const std::string& device = Device(Zeros(s, {size}, "w").handle());
    EXPECT_THAT(device, StartsWith("/job:ps/task:"));
    tasks.push_back(device.substr(device.rfind(':') + 1));
  }
  EXPECT_TRUE(s.ok()) << s.status();
  return tasks;
}

TEST(ReplicaDeviceSetter, OneAfterTheOther) {
  EXPECT_THAT(Spread(nullptr, {1000, 1, 1, 1, 1}), ElementsAre("0", "1", "2", "0", "1"));
}

TEST(ReplicaDeviceSetter, ToTheLeastLoaded) {
  EXPECT_THAT(Spread(GreedyLoadBalancing(3), {1000, 300, 200, 50, 100, 100}),
              ElementsAre("0", "1", "2", "2", "2", "1"));
}

TEST(ReplicaDeviceSetter, ByAnotherLoad) {
  const auto one = [](const NodeToPlace&) { return int64_t{1}; };
  EXPECT_THAT(Spread(GreedyLoadBalancing(3, one), {1000, 300, 200, 50}),
              ElementsAre("0", "1", "2", "0"));
}

TEST(ReplicaDeviceSetter, BytesOfVariables) {
  NodeToPlace variable{.op = "VarHandleOp", .name = "", .shape = PartialShape({3, -1, 4})};
  variable.type = ElementType::kDouble;
  EXPECT_EQ(ByteSize(variable), 3 * 4 * 8);
  variable.shape = PartialShape();
  EXPECT_EQ(ByteSize(variable), 8);
}

TEST(ReplicaDeviceSetter, VariablesAndAllElse) {
  const auto cluster =
      ClusterSpec::Create({{"ps", {"h:1", "h:2"}}, {"worker", {"h:3", "h:4", "h:5"}}});
  ASSERT_TRUE(cluster.ok());
  const Scope s = Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter(*cluster, 2));
  const std::string worker = "/job:worker/task:2", ps0 = "/job:ps/task:0", ps1 = "/job:ps/task:1";
  const ModelVariable v = Zeros(s, {2}, "v"), w = Zeros(s, {2}, "w");
  const Output x = Const(s, Tensor::Vector<float>({1, 2}));
  const Output loss = ReduceSum(s, ops::Mul(s, ops::Add(s, v.value(), w.value()), x));
  const ModelVariable step = GlobalStep(s);
  AdamOptimizer optimizer(0.1f);
  const auto gradients = optimizer.ComputeGradients(s, loss);
  Node* train = optimizer.ApplyGradients(s, gradients, step);
  ASSERT_TRUE(s.ok()) << s.status();

  EXPECT_EQ(Device(x), worker);
  EXPECT_EQ(Device(loss), worker);
  EXPECT_EQ(Device(v.handle()), ps0);
  EXPECT_EQ(Device(w.handle()), ps1);
  // What takes a variable's handle is with it.
  EXPECT_EQ(Device(w.value()), ps1);
  EXPECT_EQ(w.initializer()->requested_device(), ps1);
  EXPECT_EQ(Device(w.Read(s)), ps1);
  EXPECT_EQ(Device(ops::VarIsInitializedOp(s, w.handle())), ps1);
  EXPECT_EQ(Device(optimizer.GetSlot(w, "m").handle()), ps1);
  // Gradients are computed where the loss is.
  for (const auto& [gradient, variable] : gradients) EXPECT_EQ(Device(gradient.values), worker);
  // The step, and Adam's two powers, are variables like others.
  EXPECT_EQ(Device(step.handle()), ps0);
  EXPECT_EQ(train->requested_device(), ps0);
  const Graph& graph = *s.graph();
  ASSERT_NE(graph.FindNode("beta1_power/handle"), nullptr);
  EXPECT_EQ(graph.FindNode("beta1_power/handle")->requested_device(), ps1);
  EXPECT_EQ(graph.FindNode("beta2_power/handle")->requested_device(), ps0);
}

TEST(ReplicaDeviceSetter, InnerScopesWin) {
  const Scope s = Scope::NewRoot().WithDeviceFunction(
      ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:0"}));
  // Another job: it does not count.
  const Scope own = s.WithDevice("/job:worker/task:0");
  EXPECT_EQ(Device(Zeros(own, {2}, "mine").handle()), "/job:worker/task:0");
  EXPECT_EQ(Device(Zeros(s.WithDevice("/cpu:1"), {2}, "a").handle()),
            "/job:ps/task:0/device:CPU:1");
  EXPECT_EQ(Device(Zeros(s.WithDevice("/job:ps/task:7"), {2}, "b").handle()), "/job:ps/task:7");
  EXPECT_EQ(Device(Zeros(s, {2}, "c").handle()), "/job:ps/task:0");
  EXPECT_EQ(Device(Const(s.WithDevice("/cpu:1"), 1.0f)), "/job:worker/task:0/device:CPU:1");
  EXPECT_EQ(Device(Const(s.WithDevice(""), 1.0f)), "");
  EXPECT_EQ(Device(ModelVariable::Local(s, Const(s, 1.0f), "local").handle()),
            "/job:worker/task:0");
  EXPECT_TRUE(s.ok()) << s.status();
}

TEST(ReplicaDeviceSetter, OuterScopesGiveWhatIsOpen) {
  const Scope s =
      Scope::NewRoot()
          .WithDevice("/job:outer/device:CPU:3")
          .WithDeviceFunction(ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = "/task:5"}));
  EXPECT_EQ(Device(Const(s, 1.0f)), "/job:outer/task:5/device:CPU:3");
  EXPECT_EQ(Device(Zeros(s, {2}, "a").handle()), "/job:ps/task:0/device:CPU:3");
  const Scope other = Scope::NewRoot().WithDevicesOf(s);
  EXPECT_EQ(Device(Const(other, 1.0f)), "/job:outer/task:5/device:CPU:3");
  EXPECT_EQ(s.DeviceOf("NoOp"), "/job:outer/task:5/device:CPU:3");
}

TEST(ReplicaDeviceSetter, WithoutParameterServersAllIsOnTheWorker) {
  const Scope s = Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter({}));
  EXPECT_EQ(Device(Zeros(s, {2}, "a").handle()), "/job:worker");
}

TEST(ReplicaDeviceSetter, BadNamesAreTheScopesError) {
  for (const auto& options : {ReplicaDeviceOptions{.ps_tasks = 1, .ps_device = "/jobps"},
                              ReplicaDeviceOptions{.worker_device = "/job:"}}) {
    const Scope s = Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter(options));
    Zeros(s, {2}, "a");
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << s.status();
  }
}

}  // namespace
}  // namespace troupe
