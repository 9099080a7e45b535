// Gradients through calls and functional control flow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/session.h"
#include "devices/status_macros.h"
#include "graph/gradients/add_gradients.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using testing::HasSubstr;

/// f(x) = x^2 and, once, adds 1 to a variable; g(x) = 3 x, whose gradient the library says is 7 dy;
/// loops(n, x) = x^(2^n); endless calls itself.
constexpr char kGraph[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } }
node { name: "p" op: "Placeholder"
  attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape {} } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape {} } } attr { key: "shared_name" value { s: "v" } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
node { name: "init" op: "AssignVariableOp" input: "v" input: "one"
  attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "read" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "called" op: "StatefulPartitionedCall" input: "x" input: "v"
  attr { key: "Tin" value { list { type: [DT_FLOAT, DT_RESOURCE] } } }
  attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "f" } } } }
node { name: "after" op: "Neg" input: "called" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "chosen" op: "If" input: "p" input: "x"
  attr { key: "Tcond" value { type: DT_BOOL } }
  attr { key: "Tin" value { list { type: DT_FLOAT } } }
  attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "then_branch" value { func { name: "square" } } }
  attr { key: "else_branch" value { func { name: "g" } } } }
node { name: "own" op: "PartitionedCall" input: "x"
  attr { key: "Tin" value { list { type: DT_FLOAT } } }
  attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "g" } } } }
node { name: "slope" op: "SymbolicGradient" input: "x" input: "one"
  attr { key: "Tin" value { list { type: [DT_FLOAT, DT_FLOAT] } } }
  attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "cube" } } } }
node { name: "loop" op: "While" input: "zero" input: "x"
  attr { key: "T" value { list { type: [DT_INT32, DT_FLOAT] } } }
  attr { key: "cond" value { func { name: "less" } } }
  attr { key: "body" value { func { name: "step" } } } }
node { name: "again" op: "PartitionedCall" input: "x"
  attr { key: "Tin" value { list { type: DT_FLOAT } } }
  attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "endless" } } } }
node { name: "none" op: "PartitionedCall" input: "x"
  attr { key: "Tin" value { list { type: DT_FLOAT } } }
  attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "not_there" } } } }
library {
  function {
    signature { name: "f" is_stateful: true input_arg { name: "a" type: DT_FLOAT }
      input_arg { name: "v" type: DT_RESOURCE } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
    node_def { name: "count" op: "AssignAddVariableOp" input: "v" input: "one:output:0"
      attr { key: "dtype" value { type: DT_FLOAT } } }
    node_def { name: "y" op: "Mul" input: "a" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "r" value: "y:z:0" }
    control_ret { key: "count" value: "count" }
  }
  function {
    signature { name: "square" input_arg { name: "a" type: DT_FLOAT }
      output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "y" op: "Square" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "r" value: "y:y:0" }
  }
  function {
    signature { name: "g" input_arg { name: "a" type: DT_FLOAT }
      output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "three" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 } } } }
    node_def { name: "y" op: "Mul" input: "a" input: "three:output:0"
      attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "r" value: "y:z:0" }
  }
  function {
    signature { name: "g_grad" input_arg { name: "a" type: DT_FLOAT }
      input_arg { name: "dy" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "seven" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 7 } } } }
    node_def { name: "y" op: "Mul" input: "dy" input: "seven:output:0"
      attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "r" value: "y:z:0" }
  }
  function {
    signature { name: "cube" input_arg { name: "a" type: DT_FLOAT }
      output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "s" op: "Square" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "y" op: "Mul" input: "a" input: "s:y:0"
      attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "r" value: "y:z:0" }
  }
  function {
    signature { name: "less" input_arg { name: "i" type: DT_INT32 }
      input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_BOOL } }
    node_def { name: "n" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 3 } } } }
    node_def { name: "y" op: "Less" input: "i" input: "n:output:0"
      attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "r" value: "y:z:0" }
  }
  function {
    signature { name: "step" input_arg { name: "i" type: DT_INT32 }
      input_arg { name: "a" type: DT_FLOAT } output_arg { name: "j" type: DT_INT32 }
      output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
    node_def { name: "next" op: "AddV2" input: "i" input: "one:output:0"
      attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "y" op: "square" input: "a" }
    ret { key: "j" value: "next:z:0" }
    ret { key: "r" value: "y:r:0" }
  }
  function {
    signature { name: "endless" input_arg { name: "a" type: DT_FLOAT }
      output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "y" op: "PartitionedCall" input: "a"
      attr { key: "Tin" value { list { type: DT_FLOAT } } }
      attr { key: "Tout" value { list { type: DT_FLOAT } } }
      attr { key: "f" value { func { name: "endless" } } } }
    ret { key: "r" value: "y:output:0" }
  }
  gradient { function_name: "g" gradient_func: "g_grad" }
}
versions { producer: 2474 }
)";

class CallGradient : public testing::Test {
 protected:
  void SetUp() override {
    GraphDef def;
    ASSERT_TRUE(ParseGraphDef(kGraph, &def).ok());
    graph_ = std::make_shared<Graph>();
    const absl::Status imported = ImportGraphDef(def, {}, graph_.get());
    ASSERT_TRUE(imported.ok()) << imported;
    auto session = Session::Create(graph_);
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }

  Output Find(const std::string& name) { return *graph_->FindOutput(name); }

  absl::StatusOr<Output> Gradient(const std::string& y) { return Gradient(Find(y)); }
  absl::StatusOr<Output> Gradient(Output y) {
    std::vector<Output> grads;
    const absl::Status status = AddSymbolicGradients({y}, {Find("x")}, {}, &grads);
    if (!status.ok()) return status;
    return grads[0];
  }

  std::vector<float> Run(const std::vector<Output>& fetches, float x, bool p = false) {
    auto values =
        session_->Run({{Find("x"), Tensor::Scalar(x)}, {Find("p"), Tensor::Scalar(p)}}, fetches);
    EXPECT_TRUE(values.ok()) << values.status();
    std::vector<float> numbers;
    if (values.ok()) {
      for (const Tensor& value : *values) numbers.push_back(value.unchecked_scalar<float>());
    }
    return numbers;
  }

  std::shared_ptr<Graph> graph_;
  std::unique_ptr<Session> session_;
};

TEST_F(CallGradient, WhatItBecameRunsOnceInItsPlace) {
  std::vector<Tensor> none;
  ASSERT_TRUE(session_->Run(RunOptions(), {}, {}, {"init"}, &none).ok());
  const auto grad = Gradient("after");
  ASSERT_TRUE(grad.ok()) << grad.status();
  ASSERT_NE(Find("called").node->replacement(), nullptr);
  // The call, what uses it and its gradient, all in one run.
  EXPECT_THAT(Run({Find("called"), Find("after"), *grad}, 3), testing::ElementsAre(9, -9, -6));
  EXPECT_THAT(Run({Find("read")}, 0), testing::ElementsAre(2));
  EXPECT_THAT(Run({Find("after")}, 4), testing::ElementsAre(-16));
  EXPECT_THAT(Run({Find("read")}, 0), testing::ElementsAre(3));
}

TEST_F(CallGradient, TheBranchTaken) {
  const auto grad = Gradient("chosen");
  ASSERT_TRUE(grad.ok()) << grad.status();
  EXPECT_THAT(Run({Find("chosen"), *grad}, 5, true), testing::ElementsAre(25, 10));
  EXPECT_THAT(Run({Find("chosen"), *grad}, 5, false), testing::ElementsAre(15, 3));
  const auto second = Gradient(*grad);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(Run({*second}, 5, true), testing::ElementsAre(2));
}

TEST_F(CallGradient, Loops) {
  const auto grad = Gradient("loop:1");
  ASSERT_TRUE(grad.ok()) << grad.status();
  EXPECT_THAT(Run({Find("loop:1"), *grad}, 2), testing::ElementsAre(256, 8 * 128));
  const auto second = Gradient(*grad);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(Run({*second}, 2), testing::ElementsAre(8 * 7 * 64));
}

TEST_F(CallGradient, TheLibraryGivesTheGradient) {
  const auto grad = Gradient("own");
  ASSERT_TRUE(grad.ok()) << grad.status();
  EXPECT_EQ(Find("own").node->replacement(), nullptr);
  EXPECT_THAT(Run({Find("own"), *grad}, 2), testing::ElementsAre(6, 7));
}

TEST_F(CallGradient, OfAGradient) {
  const auto grad = Gradient("slope");
  ASSERT_TRUE(grad.ok()) << grad.status();
  EXPECT_THAT(Run({Find("slope"), *grad}, 2), testing::ElementsAre(12, 12));
}

TEST_F(CallGradient, ErrorsNameTheNode) {
  absl::Status status = Gradient("again").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("again"));
  status = Gradient("none").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("none"));
}

}  // namespace
}  // namespace troupe
