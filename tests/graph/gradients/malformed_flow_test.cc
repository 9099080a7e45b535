// Differentiation of graphs whose control flow makes no sense: errors that name a node, no crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/gradients/add_gradients.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"
#include "tests/graph/gradients/gradient_test_util.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class MalformedFlow : public testing::Test {
 protected:
  Output Enter(Output x, const char* frame, bool constant = false) {
    return g_.Op("Enter", {x}, [&](NodeSpec& spec) {
      spec.Attr("frame_name", frame).Attr("is_constant", constant);
    });
  }
  absl::Status Differentiate(Output y, Output x) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    std::vector<Output> grads;
    return AddSymbolicGradients({y}, {x}, {}, &grads);
  }
  void ExpectInvalid(const absl::Status& status, const std::string& says) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }

  TestGraph g_;
  Output x_ = g_.Placeholder(kScalar);
};

TEST_F(MalformedFlow, ExitOutsideEveryLoop) {
  ExpectInvalid(Differentiate(g_.Op("Exit", {x_}), x_), "f/Exit");
}

TEST_F(MalformedFlow, InputsFromTwoLoops) {
  Output sum = g_.Op("AddV2", {Enter(x_, "a"), Enter(x_, "b")});
  ExpectInvalid(Differentiate(g_.Op("Exit", {sum}), x_), "'a'");
}

TEST_F(MalformedFlow, ALoopWithoutCondition) {
  ExpectInvalid(Differentiate(g_.Op("Exit", {g_.Op("Neg", {Enter(x_, "a")})}), x_), "'a'");
}

TEST_F(MalformedFlow, ALoopThatIsNotClosed) {
  Output merge = g_.ListOp("Merge", std::vector<Output>{Enter(x_, "loop"), Output()});
  Output go_on = g_.Op("LoopCond", {g_.Op("Less", {merge, Enter(g_.Scalar(3.0f), "loop", true)})});
  Node* choice = g_.Add("Switch", {merge, go_on});
  ExpectInvalid(Differentiate(g_.Op("Exit", {Output(choice, 0)}), x_), "'loop'");
}

TEST_F(MalformedFlow, ADerivativeByWhatEntersALoop) {
  Output enter = Enter(x_, "a");
  ExpectInvalid(Differentiate(g_.Op("Exit", {g_.Op("Neg", {enter})}), enter), "inside loop 'a'");
}

TEST_F(MalformedFlow, ABackEdgeToNowhere) {
  Output next = g_.Op("NextIteration", {g_.Op("Neg", {x_})});
  absl::Status status = Differentiate(g_.Op("Neg", {next}), x_);
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
}

TEST_F(MalformedFlow, AMergeOfOneBranch) {
  Node* choice = g_.Add("Switch", {x_, g_.Op("Greater", {x_, g_.Scalar(0.0f)})});
  Output y = g_.ListOp("Merge", std::vector<Output>{Output(choice, 0)});
  EXPECT_TRUE(Differentiate(y, x_).ok());
}

}  // namespace
}  // namespace troupe
