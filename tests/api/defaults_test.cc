#include "api/defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "api/ops.h"

namespace troupe {
namespace {

TEST(Defaults, InteractiveSessionEvaluatesWhatIsAddedLater) {
  auto graph = std::make_shared<Graph>();
  AsDefaultGraph as_default(graph);
  InteractiveSession session;
  ASSERT_TRUE(session.status().ok()) << session.status();
  Scope s = DefaultScope();
  EXPECT_EQ(s.graph(), graph);
  Output x = ops::Placeholder(s, ElementType::kFloat);
  Output y = ops::Mul(s, x, 2.0f);
  auto value = Eval(y, {{x, Tensor::Scalar(21.0f)}});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->unchecked_scalar<float>(), 42);
  EXPECT_FALSE(RunNode(y.node).ok());  // x is not fed.
  EXPECT_TRUE(RunNode(y.node, {{x, Tensor::Scalar(1.0f)}}).ok());
}

TEST(Defaults, AreStacksOfTheirThread) {
  const std::shared_ptr<Graph> own = DefaultGraph();
  EXPECT_EQ(DefaultGraph(), own);
  auto outer = std::make_shared<Graph>(), inner = std::make_shared<Graph>();
  {
    AsDefaultGraph a(outer);
    {
      AsDefaultGraph b(inner);
      EXPECT_EQ(DefaultGraph(), inner);
      std::thread([&] {
        EXPECT_NE(DefaultGraph(), inner);
        EXPECT_EQ(DefaultSession(), nullptr);
      }).join();
    }
    EXPECT_EQ(DefaultGraph(), outer);
  }
  EXPECT_EQ(DefaultGraph(), own);
}

TEST(Defaults, SaysWhatIsMissing) {
  Scope s = Scope::NewRoot();
  Output one = ops::Const(s, 1.0f);
  EXPECT_EQ(Eval(one).status().code(), absl::StatusCode::kFailedPrecondition);
  auto session = Session::Create(std::make_shared<Graph>());
  ASSERT_TRUE(session.ok());
  AsDefaultSession as_default(session->get());
  EXPECT_EQ(DefaultGraph(), (*session)->graph());
  EXPECT_EQ(Eval(one).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Eval(Output()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
