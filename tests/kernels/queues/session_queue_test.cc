// Queues and accumulators under sessions: steps that wait for other steps.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <vector>

#include "absl/time/time.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"

namespace troupe {
namespace {

using Code = absl::StatusCode;

class SessionQueueTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> NewSession() {
    SessionOptions options;
    options.threads = 1;  // Whoever waits must not hold a thread.
    EXPECT_TRUE(s_.ok()) << s_.status();
    auto session = Session::Create(s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  static std::future<absl::StatusOr<std::vector<Tensor>>> Start(Session* session, Output output) {
    return std::async(std::launch::async,
                      [=] { return session->Run(absl::MakeConstSpan(&output, 1)); });
  }

  Scope s_ = Scope::NewRoot();
};

TEST_F(SessionQueueTest, StepsFeedOneAnother) {
  const Output queue = ops::FIFOQueueV2(s_.WithOpName("q"), {ElementType::kFloat},
                                        {.shapes = {PartialShape(Shape())}, .capacity = 2});
  const Output x = ops::Placeholder(s_.WithOpName("x"), ElementType::kFloat);
  ops::QueueEnqueueV2(s_.WithOpName("put"), queue, {x});
  const Output taken = ops::QueueDequeueV2(s_, queue, {ElementType::kFloat})[0];
  const Output doubled = ops::Mul(s_, taken, 2.0f);
  auto session = NewSession();
  constexpr int kSteps = 20;
  std::vector<std::future<absl::StatusOr<std::vector<Tensor>>>> steps;
  for (int i = 0; i < kSteps; ++i) steps.push_back(Start(session.get(), doubled));
  for (int i = 0; i < kSteps; ++i) {
    const absl::Status put = session->Run(
        NamedTensors{{"x", Tensor::Scalar(static_cast<float>(i))}}, {}, {"put"}, nullptr);
    ASSERT_TRUE(put.ok()) << put;
  }
  float sum = 0;  // Who got which value is not known.
  for (auto& step : steps) {
    auto values = step.get();
    ASSERT_TRUE(values.ok()) << values.status();
    sum += (*values)[0].unchecked_scalar<float>();
  }
  EXPECT_EQ(sum, kSteps * (kSteps - 1));
}

TEST_F(SessionQueueTest, AStepWaitsNoLongerThanItsTimeout) {
  const Output queue = ops::FIFOQueue(s_.WithOpName("q"), {ElementType::kFloat});
  ops::QueueDequeue(s_.WithOpName("take"), queue, {ElementType::kFloat});
  ops::QueueEnqueue(s_.WithOpName("put"), queue, {ops::Const(s_, 3.0f)});
  auto session = NewSession();
  std::vector<Tensor> values;
  RunOptions options;
  options.timeout = absl::Milliseconds(20);
  EXPECT_EQ(session->Run(options, NamedTensors{}, {"take"}, {}, &values).code(),
            Code::kDeadlineExceeded);
  // It has left the line: the next one gets what comes.
  EXPECT_TRUE(session->Run(NamedTensors{}, {}, {"put"}, nullptr).ok());
  ASSERT_TRUE(session->Run(NamedTensors{}, {"take"}, {}, &values).ok());
  EXPECT_EQ(values[0].unchecked_scalar<float>(), 3);
}

TEST_F(SessionQueueTest, ClosingTheSessionEndsTheWait) {
  const Output sum = ops::ResourceConditionalAccumulator(s_.WithOpName("sum"), ElementType::kFloat,
                                                         PartialShape(Shape()));
  const Output taken = ops::ResourceAccumulatorTakeGradient(s_, sum, ops::Const(s_, int32_t{1}),
                                                            ElementType::kFloat);
  auto session = NewSession();
  auto waiting = Start(session.get(), taken);
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_TRUE(session->Close().ok());
  EXPECT_FALSE(waiting.get().ok());
}

}  // namespace
}  // namespace troupe
