// Against what TensorFlow 2.21's tf.compat.v1.nn gives for a cell of the same weights: results, and
// gradients of the sum of the outputs weighted by a wave.
#include "api/layers/bidirectional_rnn.h"

#include <gmock/gmock.h>

#include "api/gradients.h"
#include "api/layers/raw_rnn.h"
#include "api/training/optimizers.h"
#include "tests/api/layers/recorded.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NetworksTest : public RecordedTest {
 protected:
  const Tensor values_ = WaveOf({2, 4, 3});
  const Output fed_ = Fed({-1, -1, 3}), known_ = Const(s_, values_);
  const FeedMap feeds_ = {{fed_, values_}};
  const Output lengths_ = Const(s_, Tensor::Vector<int64_t>({4, 2}));

  /// By x and by the kernels, in the order in which they were made.
  void ExpectGradients(const std::string& name, const Output& x, const Output& y,
                       const Shape& shape) {
    std::vector<Output> by = {x};
    for (const ModelVariable& variable : ModelVariable::Trainable(*s_.graph())) {
      if (variable.name().ends_with("kernel")) by.push_back(variable.value());
    }
    const Output sums[] = {WaveSum(y, shape)};
    const OutputList gradients = Gradients(s_, sums, by);
    Start();
    for (size_t i = 0; i < by.size(); ++i) {
      ExpectRecorded(StrCat(name, "/gradient_", i), Value(gradients[i], feeds_));
    }
  }
};

TEST_F(NetworksTest, BothWaysEqualTensorFlows) {
  for (const bool is_known : {true, false}) {
    for (const bool all : {true, false}) {
      s_ = Scope::NewRoot();
      const Output x = is_known ? Const(s_, values_) : Fed({-1, -1, 3});
      const FeedMap feeds = is_known ? FeedMap() : FeedMap{{x, values_}};
      BidirectionalRnnOptions options;
      if (!all) options.sequence_length = Const(s_, Tensor::Vector<int32_t>({4, 2}));
      const BidirectionalRnnResult r =
          BidirectionalDynamicRnn(Given(), BasicRnnCell(5), BasicRnnCell(4), x, options);
      const Output y = ops::ConcatV2(s_, {r.forward.outputs, r.backward.outputs}, 2);
      options.time_major = true;
      options.name = "time";
      const BidirectionalRnnResult t = BidirectionalDynamicRnn(
          Given(), BasicRnnCell(5), BasicRnnCell(4), ops::Transpose(s_, x, {1, 0, 2}), options);
      const Output turned = ops::Transpose(
          s_, ops::ConcatV2(s_, {t.forward.outputs, t.backward.outputs}, 2), {1, 0, 2});
      Start();
      const std::string name = all ? "bidirectional/all" : "bidirectional/some";
      ExpectRecorded(name, Value(y, feeds));
      ExpectRecorded(name, Value(turned, feeds));
      ExpectRecorded(name + "/forward", Value(r.forward.state[0], feeds));
      ExpectRecorded(name + "/backward", Value(r.backward.state[0], feeds));
    }
  }
}

TEST_F(NetworksTest, BothWaysHaveTensorFlowsGradients) {
  const BidirectionalRnnResult r = BidirectionalDynamicRnn(
      Given(), BasicRnnCell(5), BasicRnnCell(4), fed_, {.sequence_length = lengths_});
  ExpectGradients("bidirectional/some", fed_,
                  ops::ConcatV2(s_, {r.forward.outputs, r.backward.outputs}, 2), {2, 4, 9});
}

TEST_F(NetworksTest, StackedBothWaysEqualTensorFlows) {
  const auto cell = [](int64_t units) { return std::make_shared<BasicRnnCell>(units); };
  const StackedBidirectionalRnnResult r = StackedBidirectionalDynamicRnn(
      Given(), {cell(5), cell(2)}, {cell(4), cell(3)}, fed_,
      {.sequence_length = lengths_, .name = "stack_bidirectional_rnn"});
  std::vector<std::string> names;
  for (const ModelVariable& variable : ModelVariable::Trainable(*s_.graph())) {
    if (variable.name().ends_with("kernel")) names.push_back(variable.name());
  }
  const std::string stack = "given/stack_bidirectional_rnn/";
  EXPECT_THAT(names, ElementsAre(stack + "cell_0/bidirectional_rnn/fw/basic_rnn_cell/kernel",
                                 stack + "cell_0/bidirectional_rnn/bw/basic_rnn_cell/kernel",
                                 stack + "cell_1/bidirectional_rnn/fw/basic_rnn_cell/kernel",
                                 stack + "cell_1/bidirectional_rnn/bw/basic_rnn_cell/kernel"));
  Start();
  ExpectRecorded("stacked_bidirectional", Value(r.outputs, feeds_));
  EXPECT_EQ(r.forward_states.size(), 2u);
  EXPECT_EQ(Value(r.backward_states[1][0], feeds_).shape(), Shape({2, 3}));
}

TEST_F(NetworksTest, StepsWithoutALoopEqualTensorFlows) {
  std::vector<Output> steps;
  for (int t = 0; t < 4; ++t) steps.push_back(ops::GatherV2(s_, fed_, t, 1));
  const StaticRnnResult r =
      StaticRnn(Given(), BasicRnnCell(5), steps, {.sequence_length = lengths_});
  const Output all = ops::Pack(s_, r.outputs, {.axis = 1});
  Start();
  ExpectRecorded("static", Value(all, feeds_));
  ExpectRecorded("static/state", Value(r.state[0], feeds_));
}

/// Each step reads its input plus half of what the step before gave; the loop's own state is the
/// sum of all outputs.
RawRnnResult OfOwnOutput(const Scope& scope, const Output& x, const Output& lengths) {
  const BasicRnnCell cell(3);
  const Output batch = ops::GatherV2(scope, ops::Shape(scope, x), 0, 0);
  const Output limits = ops::Cast(scope, lengths, ElementType::kInt32);
  return RawRnn(scope, cell, [&](const Scope& s, const RawRnnState& now) {
    RawRnnStep next;
    next.finished = ops::GreaterEqual(s, now.time, limits);
    next.input = ops::GatherV2(s, x, ops::Minimum(s, now.time, 3), 1);
    if (!now.output.valid()) {
      next.state = cell.ZeroState(s, batch, ElementType::kFloat);
      next.loop_state = {ops::ZerosLike(s, ops::Cast(s, limits, ElementType::kFloat))};
      return next;
    }
    next.input = ops::Add(s, next.input, ops::Mul(s, now.output, 0.5));
    next.state = now.state;
    next.emit = {ops::Mul(s, now.output, 2.0)};
    next.loop_state = {ops::Add(s, now.loop_state[0], ReduceSum(s, now.output, {.axes = {{1}}}))};
    return next;
  });
}

TEST_F(NetworksTest, RawEqualsTensorFlows) {
  for (const Output& x : {known_, fed_}) {
    const RawRnnResult r = OfOwnOutput(Given(Reuse::kAuto), x, lengths_);
    const Output y = r.emit[0].Stack(s_);
    Start();
    ExpectRecorded("raw", Value(y, feeds_));
    ExpectRecorded("raw/state", Value(r.state[0], feeds_));
    ExpectRecorded("raw/loop_state", Value(r.loop_state[0], feeds_));
  }
}

TEST_F(NetworksTest, RawHasTensorFlowsGradients) {
  const RawRnnResult r = OfOwnOutput(Given(), fed_, lengths_);
  ExpectGradients("raw", fed_, r.emit[0].Stack(s_), {4, 2, 3});
}

TEST_F(NetworksTest, RawKeepsATensorArrayOfItsOwn) {
  const BasicRnnCell cell(3);
  const TensorArray array(s_, 4, ElementType::kFloat);
  const RawRnnResult r = RawRnn(Given(), cell, [&](const Scope& s, const RawRnnState& now) {
    RawRnnStep next;
    next.finished = ops::GreaterEqual(s, now.time, Tensor::Vector<int32_t>({4, 4}));
    next.input = ops::GatherV2(s, known_, ops::Minimum(s, now.time, 3), 1);
    if (!now.output.valid()) {
      next.state = cell.ZeroState(s, 2, ElementType::kFloat);
      next.loop_state = {array.flow()};
      return next;
    }
    next.state = now.state;
    next.emit = {now.output};
    next.loop_state = {
        array.WithFlow(now.loop_state[0]).Write(s, ops::Sub(s, now.time, 1), now.output).flow()};
    return next;
  });
  const Output emitted = r.emit[0].Stack(s_);
  const Output written = array.WithFlow(r.loop_state[0]).Stack(s_);
  const RnnResult dynamic = DynamicRnn(VariableScope(s_, "given", {.reuse = Reuse::kYes}), cell,
                                       ops::Transpose(s_, known_, {1, 0, 2}), {.time_major = true});
  Start();
  EXPECT_EQ(Numbers(written), Numbers(emitted));
  EXPECT_EQ(Numbers(emitted), Numbers(dynamic.outputs));
}

TEST_F(NetworksTest, Train) {
  s_.SetGraphSeed(3);
  const BidirectionalRnnResult r =
      BidirectionalDynamicRnn(s_, LstmCell(4), GruCell(4), fed_, {.sequence_length = lengths_});
  const RawRnnResult raw = OfOwnOutput(s_, fed_, lengths_);
  const Output loss =
      ops::Add(s_, ReduceMean(s_, ops::Square(s_, ops::Sub(s_, r.forward.outputs, 0.5))),
               ops::Add(s_, ReduceMean(s_, ops::Square(s_, ops::Sub(s_, r.backward.state[0], 0.5))),
                        ReduceMean(s_, ops::Square(s_, raw.emit[0].Stack(s_)))));
  GradientDescentOptimizer optimizer(0.2f);
  Node* train = optimizer.Minimize(s_, loss);
  Start();
  float before = Number(loss, feeds_);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(session_->Run(feeds_, {}, {train}).ok());
    const float after = Number(loss, feeds_);
    EXPECT_LT(after, before) << i;
    before = after;
  }
}

TEST_F(NetworksTest, WhatDoesNotFitIsRefused) {
  const auto refused = [](const std::string& says, const std::function<void(const Scope&)>& add) {
    const Scope s = Scope::NewRoot();
    add(s);
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << s.status();
    EXPECT_THAT(std::string(s.status().message()), HasSubstr(says));
  };
  const auto x = [](const Scope& s) { return Const(s, WaveOf({2, 4, 3})); };
  refused("as many cells", [&](const Scope& s) {
    StackedBidirectionalDynamicRnn(s, {std::make_shared<GruCell>(2)}, {}, x(s));
  });
  refused("no inputs", [&](const Scope& s) { StaticRnn(s, GruCell(2), {}); });
  refused("2 states", [&](const Scope& s) {
    StaticRnn(s, LstmCell(2), {Const(s, WaveOf({2, 3}))}, {.initial_state = {x(s)}});
  });
  refused("who has finished", [&](const Scope& s) {
    RawRnn(s, GruCell(2), [](const Scope&, const RawRnnState&) { return RawRnnStep(); });
  });
  refused("0 tensors to emit", [&](const Scope& s) {
    const GruCell cell(2);
    RawRnn(s, cell, [&](const Scope& at, const RawRnnState& now) {
      RawRnnStep next;
      next.finished = Const(at, Tensor::Vector<bool>({false, false}));
      next.input = Const(at, WaveOf({2, 3}));
      next.state = cell.ZeroState(at, 2, ElementType::kFloat);
      if (!now.output.valid()) next.loop_state = {next.input};
      return next;
    });
  });
}

}  // namespace
}  // namespace troupe
