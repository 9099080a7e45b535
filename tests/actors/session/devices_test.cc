// Steps that several devices of a process take part in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "api/control_flow.h"
#include "api/gradients.h"
#include "api/nn.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/optimizers.h"
#include "api/training/variables.h"
#include "graph/protos/stats.pb.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class DevicesTest : public testing::TestWithParam<int> {  // Threads.
 protected:
  std::unique_ptr<Session> NewSession(int devices = 3) {
    EXPECT_TRUE(s_.ok()) << s_.status();
    SessionOptions options;
    options.threads = GetParam();
    options.num_cpu_devices = devices;
    auto session = Session::Create(s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  Scope On(int device) const { return s_.WithDevice("/device:CPU:" + std::to_string(device)); }
  Scope s_ = Scope::NewRoot();
};
INSTANTIATE_TEST_SUITE_P(Threads, DevicesTest, testing::Values(1, 2));

TEST_P(DevicesTest, ValuesCrossAndAreShared) {
  Output x = ops::Placeholder(On(0), ElementType::kFloat);
  Output y = ops::Mul(On(1), x, 3.0f);
  Output a = ops::Neg(On(2), y), b = ops::Square(On(2), y);
  Output z = ops::Add(On(0), a, b);
  auto session = NewSession();
  for (int i = 0; i < 3; ++i) {
    auto values = session->Run({{x, Tensor::Scalar(static_cast<float>(i))}},
                               {z, y, x.node == nullptr ? y : a});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_scalar<float>(), 9.0f * i * i - 3.0f * i);
    EXPECT_EQ((*values)[1].unchecked_scalar<float>(), 3.0f * i);
    EXPECT_EQ((*values)[2].unchecked_scalar<float>(), -3.0f * i);
  }
}

TEST_P(DevicesTest, PartialRunsCrossDevices) {
  Output a = ops::Placeholder(On(0).WithOpName("a"), ElementType::kFloat);
  Output b = ops::Placeholder(On(1).WithOpName("b"), ElementType::kFloat);
  Output x = ops::Neg(On(1).WithOpName("x"), a);
  ops::Add(On(2).WithOpName("y"), ops::Mul(On(0), x, b), a);
  ModelVariable count(s_.WithDevice("/device:CPU:0"), Const(s_, 0.0f), "count");
  Node* add = count.AssignAdd(On(0).WithOpName("add"), b);
  auto session = NewSession();
  ASSERT_TRUE(session->RunTargets({count.initializer()}).ok());
  std::vector<Tensor> values;
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(session->PartialRunSetup({"a", "b"}, {"x:0", "x"}, {}).ok()) << "fetched twice";
    auto handle = session->PartialRunSetup({"a", "b:0"}, {"x:0", "y"}, {add->name()});
    ASSERT_TRUE(handle.ok()) << handle.status();
    EXPECT_EQ(session->PartialRun(*handle, {}, {"x"}, &values).code(),
              absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(session->PartialRun(*handle, {{"a:0", Tensor::Scalar(2.0f)}}, {"x"}, &values).ok());
    EXPECT_EQ(values[0].unchecked_scalar<float>(), -2);
    const absl::Status twice =
        session->PartialRun(*handle, {{"a", Tensor::Scalar(2.0f)}}, {"y"}, &values);
    EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument) << twice;
    const absl::Status last =
        session->PartialRun(*handle, {{"b", Tensor::Scalar(5.0f)}}, {"y:0"}, &values);
    ASSERT_TRUE(last.ok()) << last;
    EXPECT_EQ(values[0].unchecked_scalar<float>(), -8);
    EXPECT_EQ((*session->Run({count.value()}))[0].unchecked_scalar<float>(), 5.0f * (i + 1))
        << "the last piece waits for the targets";
    EXPECT_FALSE(session->PartialRun(*handle, {}, {"y"}, &values).ok());
  }
}

TEST_P(DevicesTest, TraceNamesTheDevices) {
  Output x = ops::Placeholder(On(0), ElementType::kFloat);
  Output y = ops::Neg(On(1), ops::Exp(On(0), x));
  auto session = NewSession();
  RunOptions options;
  options.trace = true;
  RunMetadata metadata;
  auto values = session->Run({{x, Tensor::Scalar(0.0f)}}, {y}, {}, options, &metadata);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<float>(), -1);
  EXPECT_THAT(metadata.DebugString(), HasSubstr("CPU:1"));
}

TEST_P(DevicesTest, AStepWithoutMemorySaysWhatItHolds) {
  Output x = ops::Placeholder(On(0).WithOpName("x"), ElementType::kFloat);
  ModelVariable w(On(0),
                  Const(On(0), *Tensor::FromValues<float>(std::vector<float>(1000), Shape({1000}))),
                  "w");
  Output a = ops::Abs(On(0).WithOpName("a"), x);
  Output product = ops::MatMul(On(0).WithOpName("product"), a, a);
  auto session = NewSession(1);
  ASSERT_TRUE(session->RunTargets({w.initializer()}).ok());
  const Tensor ones =
      *Tensor::FromValues<float>(std::vector<float>(300 * 300, 1.0f), Shape({300, 300}));
  ASSERT_TRUE(session->Run({{x, ones}}, {product}).ok());
  // Room for one matrix of the two.
  HostAllocator()->set_limit(HostAllocator()->stats().bytes_in_use + 500000);
  const absl::Status status = session->Run({{x, ones}}, {a, product}).status();
  HostAllocator()->set_limit(0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  for (const char* part :
       {"[[node product = MatMul", "shape [300,300] (360000 bytes) by allocator host",
        "The largest values of the step and of variables: 360000 bytes (float [300,300], node ",
        "360000 bytes (float [300,300], node a (Abs)), 4000 bytes (float [1000], variable w"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  EXPECT_TRUE(session->Run({{x, ones}}, {product}).ok());
}

TEST_P(DevicesTest, TrainsAcrossDevices) {
  Output x = ops::Placeholder(On(0), ElementType::kFloat, {.shape = PartialShape({4})});
  ModelVariable w(On(1), Const(On(1), 0.0f), "w"), b(On(2), Const(On(2), 0.0f), "b");
  Output y = ops::Add(On(0), ops::Mul(On(0), x, w.value()), b.value());
  Output target = ops::Add(On(0), ops::Mul(On(0), x, 2.0f), 1.0f);
  Output loss = ReduceMean(On(0), ops::Square(On(0), ops::Sub(On(0), y, target)));
  AdamOptimizer optimizer(0.1f);
  Node* train = optimizer.Minimize(s_, loss);
  Node* init = GlobalVariablesInitializer(s_);
  auto session = NewSession();
  const FeedMap feeds = {{x, Tensor::Vector<float>({0, 1, 2, 3})}};
  absl::Status status = session->RunTargets({init});
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < 400; ++i) {
    status = session->RunTargets({train}, feeds);
    ASSERT_TRUE(status.ok()) << status;
  }
  auto fitted = session->Run({w.value(), b.value()});
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_NEAR((*fitted)[0].unchecked_scalar<float>(), 2, 0.02);
  EXPECT_NEAR((*fitted)[1].unchecked_scalar<float>(), 1, 0.05);
}

TEST_P(DevicesTest, LoopsSpanDevicesAndHaveGradients) {
  Output x = ops::Placeholder(On(0), ElementType::kFloat, {.shape = PartialShape({})});
  std::vector<Output> results = WhileLoop(
      s_, {Const(s_, int32_t{0}), x},
      [&](const Scope& scope, absl::Span<const Output> v) {
        return ops::Less(scope.WithDevice("/device:CPU:0"), v[0], int32_t{5});
      },
      [&](const Scope& scope, absl::Span<const Output> v) {
        return std::vector<Output>{ops::Add(scope.WithDevice("/device:CPU:1"), v[0], int32_t{1}),
                                   ops::Mul(scope.WithDevice("/device:CPU:2"), v[1], x)};
      });
  std::vector<Output> grads;
  ASSERT_TRUE(s_.ok()) << s_.status();
  absl::Status added = AddSymbolicGradients({results[1]}, {x}, {}, &grads);
  ASSERT_TRUE(added.ok()) << added;
  auto session = NewSession();
  auto values = session->Run({{x, Tensor::Scalar(2.0f)}}, {results[1], grads[0]});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<float>(), 64);   // x^6
  EXPECT_EQ((*values)[1].unchecked_scalar<float>(), 192);  // 6 x^5
}

TEST_P(DevicesTest, FailureOnOneEndsAll) {
  Output x = ops::Placeholder(On(0), ElementType::kFloat);
  Output bad = ops::CheckNumerics(On(1), x, "not a number");
  Output after = ops::Neg(On(2), bad);
  Output sum = ops::Add(On(0), after, x);
  auto session = NewSession();
  for (int i = 0; i < 3; ++i) {
    auto failed = session->Run({{x, Tensor::Scalar(std::nanf(""))}}, {sum});
    EXPECT_EQ(failed.status().code(), absl::StatusCode::kInvalidArgument) << failed.status();
    EXPECT_THAT(std::string(failed.status().message()), HasSubstr("CPU:1"));
    auto good = session->Run({{x, Tensor::Scalar(2.0f)}}, {sum});
    ASSERT_TRUE(good.ok()) << good.status();
    EXPECT_EQ((*good)[0].unchecked_scalar<float>(), 0);
  }
}

TEST_P(DevicesTest, EndlessLoopAcrossDevicesObeysTheDeadline) {
  std::vector<Output> results = WhileLoop(
      s_, {Const(s_, int32_t{1})},
      [&](const Scope& scope, absl::Span<const Output> v) {
        return ops::Greater(scope.WithDevice("/device:CPU:0"), v[0], int32_t{0});
      },
      [&](const Scope& scope, absl::Span<const Output> v) {
        return std::vector<Output>{ops::Identity(scope.WithDevice("/device:CPU:1"), v[0])};
      });
  auto session = NewSession();
  RunOptions options;
  options.timeout = absl::Milliseconds(50);
  const auto start = std::chrono::steady_clock::now();
  auto late = session->Run({}, {results[0]}, {}, options);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

TEST_P(DevicesTest, ImpossiblePlacementsAreRefused) {
  Output x = ops::Placeholder(On(0), ElementType::kFloat);
  Output far = ops::Neg(On(7), x);
  auto session = NewSession();
  auto failed = session->Run({{x, Tensor::Scalar(1.0f)}}, {far});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInvalidArgument) << failed.status();
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("CPU:7"));
}

TEST_P(DevicesTest, StateStaysWhereItIs) {
  Output handle =
      ops::VarHandleOp(On(1), ElementType::kFloat, PartialShape({}), {.shared_name = "v"});
  Node* set = ops::AssignVariableOp(s_, handle, 5.0f);
  Output read = ops::ReadVariableOp(s_, handle, ElementType::kFloat);
  Output y = ops::Mul(On(2), read, 2.0f);
  auto session = NewSession();
  ASSERT_TRUE(session->RunTargets({set}).ok());
  auto values = session->Run({y});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<float>(), 10);
}

}  // namespace
}  // namespace troupe
