// Against what tf.keras's LSTM, GRU and SimpleRNN (TensorFlow 2.21) give for the same weights, in
// the order of gates of tf.nn.rnn_cell: sum, sum weighted by a wave, first and last element.
#include "api/layers/rnn.h"

#include <array>
#include <cmath>
#include <functional>

#include <gmock/gmock.h>

#include "api/gradients.h"
#include "api/nn.h"
#include "tests/api/layers/run_graph.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Wave(int64_t n, double frequency) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(static_cast<float>(std::sin(static_cast<double>(i) * frequency + 0.5)));
  }
  return values;
}

class RnnTest : public RunGraph {
 protected:
  /// Kernels are cosines, biases .1.
  Scope Given() {
    return VariableScope(
        s_, "given", {.getter = [](const Scope& scope, VariableRequest request, const auto& next) {
          request.options.initializer = [bias = request.name.ends_with("bias")](
                                            const Scope& at, const Shape& shape, ElementType) {
            std::vector<float> values;
            for (int64_t i = 0; i < shape.num_elements(); ++i) {
              values.push_back(
                  bias ? 0.1f : static_cast<float>(std::cos(static_cast<double>(i) * 0.7)) * 0.5f);
            }
            return Const(at, Floats(values, shape));
          };
          return next(scope, request);
        }});
  }
  const Tensor values_ = Floats(Wave(24, .37), {2, 4, 3});
  /// Neither batch nor time is known.
  const Output x_ = Fed({-1, -1, 3});

  void Expect(const Output& y, std::array<double, 4> expected) {
    const std::vector<float> got = Numbers(y, {{x_, values_}});
    const std::vector<float> wave = Wave(static_cast<int64_t>(got.size()), .3);
    double sum = 0, weighted = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      sum += got[i];
      weighted += static_cast<double>(got[i]) * wave[i];
    }
    EXPECT_NEAR(sum, expected[0], 2e-5);
    EXPECT_NEAR(weighted, expected[1], 2e-5);
    EXPECT_NEAR(got.front(), expected[2], 2e-6);
    EXPECT_NEAR(got.back(), expected[3], 2e-6);
  }
};

TEST_F(RnnTest, EqualsTensorFlows) {
  const Scope given = Given();
  const LstmCell lstm(5);
  const RnnResult all = DynamicRnn(given, lstm, x_, {.name = "all"});
  const RnnResult some =
      DynamicRnn(given, lstm, x_,
                 {.sequence_length = Const(s_, Tensor::Vector<int64_t>({4, 2})), .name = "some"});
  const RnnResult gru = DynamicRnn(given, GruCell(5), x_, {.name = "gru"});
  const RnnResult basic = DynamicRnn(given, BasicRnnCell(5), x_, {.name = "basic"});
  const RnnResult time_major = DynamicRnn(given, lstm, ops::Transpose(s_, x_, {1, 0, 2}),
                                          {.time_major = true, .name = "time"});
  const Output turned = ops::Transpose(s_, time_major.outputs, {1, 0, 2});
  Start();
  Expect(all.outputs, {2.716326, -0.675922, 0.126296, 0.054251});
  Expect(turned, {2.716326, -0.675922, 0.126296, 0.054251});
  Expect(all.state[1], {0.868639, 0.602301, -0.046344, 0.054251});
  Expect(all.state[0], {1.448697, 1.021883, -0.112022, 0.099868});
  Expect(some.state[1], {0.156486, 0.382538, -0.046344, -0.097579});
  Expect(some.state[0], {0.114201, 0.640359, -0.112022, -0.218871});
  Expect(gru.outputs, {3.661764, -0.447238, 0.179443, -0.01717});
  Expect(basic.outputs, {4.088742, -0.136637, 0.326001, -0.049444});
  const std::vector<float> outputs = Numbers(some.outputs, {{x_, values_}});
  EXPECT_THAT(std::vector<float>(outputs.begin() + 30, outputs.end()), ::testing::Each(0.0f));
}

TEST_F(RnnTest, NamesAreTensorFlows) {
  const auto lstm = std::make_shared<LstmCell>(
      4, LstmOptions{.use_peepholes = true, .cell_clip = 3, .projection = 2});
  const StackedCell stack({lstm, std::make_shared<GruCell>(3)});
  DynamicRnn(s_, stack, x_);
  DynamicRnn(s_, stack, x_);  // Shares them.
  std::vector<std::string> names;
  for (const ModelVariable& variable : ModelVariable::Trainable(*s_.graph())) {
    names.push_back(variable.name() + variable.shape().ToString());
  }
  const std::string cell_0 = "rnn/multi_rnn_cell/cell_0/lstm_cell/";
  const std::string cell_1 = "rnn/multi_rnn_cell/cell_1/gru_cell/";
  EXPECT_THAT(names, ElementsAre(cell_0 + "kernel[5,16]", cell_0 + "bias[16]",
                                 cell_0 + "w_f_diag[4]", cell_0 + "w_i_diag[4]",
                                 cell_0 + "w_o_diag[4]", cell_0 + "projection/kernel[4,2]",
                                 cell_1 + "gates/kernel[5,6]", cell_1 + "gates/bias[6]",
                                 cell_1 + "candidate/kernel[5,3]", cell_1 + "candidate/bias[3]"));
  Start();
}

TEST_F(RnnTest, AnotherCellDoesNotShareUnasked) {
  const auto refused = [&](const std::function<void(const Scope&, const RnnCell&)>& run) {
    const Scope s = Scope::NewRoot();
    run(s, LstmCell(4));
    EXPECT_TRUE(s.ok()) << s.status();
    run(s, LstmCell(4));
    EXPECT_EQ(s.status().code(), absl::StatusCode::kAlreadyExists) << s.status();
    EXPECT_THAT(std::string(s.status().message()), HasSubstr("lstm_cell/kernel"));
    EXPECT_THAT(std::string(s.status().message()), HasSubstr("Reuse::kYes"));
  };
  refused([&](const Scope& s, const RnnCell& cell) { DynamicRnn(s, cell, Const(s, values_)); });
  refused([&](const Scope& s, const RnnCell& cell) {
    const Output x = Const(s, Floats(Wave(6, .37), {2, 3}));
    const StaticRnnResult r = StaticRnn(s, cell, {x, x, x});
    EXPECT_EQ(r.outputs.size(), s.ok() ? 3u : 0u);
  });
  refused([&](const Scope& s, const RnnCell& cell) {
    const Output x = Const(s, Floats(Wave(6, .37), {2, 3}));
    cell.Call(s, x, cell.ZeroState(s, 2, ElementType::kFloat));
  });
}

// As is one that is assigned to, and one cell has variables in each graph.
TEST_F(RnnTest, WhatIsAssignedToIsAnotherCell) {
  const auto num_variables = [](const Scope& s) {
    return s.graph()->Collection(collections::kVariables).size();
  };
  const Output x = Const(s_, values_);
  LstmCell cell(4);
  DynamicRnn(VariableScope(s_, "a"), cell, x);
  DynamicRnn(VariableScope(s_, "a_again"), cell, x);
  EXPECT_EQ(num_variables(s_), 2u);
  const Scope other = Scope::NewRoot();
  DynamicRnn(other, cell, Const(other, values_));
  EXPECT_EQ(num_variables(other), 2u);
  cell = LstmCell(4);
  DynamicRnn(VariableScope(s_, "b"), cell, x);
  EXPECT_TRUE(s_.ok() && other.ok()) << s_.status() << other.status();
  EXPECT_EQ(num_variables(s_), 4u);
}

TEST_F(RnnTest, CellsShareWhereTheScopeReuses) {
  const Output x = Const(s_, values_);
  const Scope given = Given();
  DynamicRnn(given, LstmCell(4), x);
  DynamicRnn(given, LstmCell(4), x, {.reuse = Reuse::kYes});
  DynamicRnn(VariableScope(s_, "given", {.reuse = Reuse::kAuto}), LstmCell(4), x);
  EXPECT_EQ(ModelVariable::Trainable(*s_.graph()).size(), 2u);
  DynamicRnn(given, LstmCell(4), x, {.name = "other"});
  EXPECT_EQ(ModelVariable::Trainable(*s_.graph()).size(), 4u);
  EXPECT_TRUE(s_.ok()) << s_.status();
}

// The same object has the same variables wherever it is called, as tf.nn.rnn_cell's once built.
TEST_F(RnnTest, ACellCalledAgainIsTheSame) {
  const Scope given = Given();
  const Output x = Const(s_, values_);
  const auto lstm = std::make_shared<LstmCell>(4, LstmOptions{.use_peepholes = true});
  const RnnResult first = DynamicRnn(given, *lstm, x);
  const RnnResult same = DynamicRnn(given, *lstm, x);
  const RnnResult elsewhere = DynamicRnn(s_, StackedCell({lstm}), x);
  EXPECT_EQ(ModelVariable::Trainable(*s_.graph()).size(), 5u);
  const LstmCell copy = *lstm;
  DynamicRnn(s_, copy, x, {.name = "copy"});
  EXPECT_EQ(ModelVariable::Trainable(*s_.graph()).size(), 10u) << "a copy is another cell";
  Start();
  EXPECT_EQ(Numbers(first.outputs), Numbers(same.outputs));
  EXPECT_EQ(Numbers(first.outputs), Numbers(elsewhere.outputs));
}

TEST_F(RnnTest, KernelsAreInPartsAsTheScopeSays) {
  const Scope net = VariableScope(Given(), "net", {.partitioner = FixedSizePartitioner(2)});
  const LstmCell cell(4);
  const Output x = Const(s_, values_);
  const RnnResult r = DynamicRnn(net, cell, x), again = DynamicRnn(s_, cell, x);
  const std::vector<ModelVariable> variables = ModelVariable::Trainable(*s_.graph());
  ASSERT_EQ(variables.size(), 4u) << s_.status();
  EXPECT_EQ(variables[0].name(), "given/net/rnn/lstm_cell/kernel/part_0");
  EXPECT_EQ(variables[0].shape(), PartialShape({4, 16}));
  Start();
  EXPECT_EQ(Numbers(r.outputs), Numbers(again.outputs));
}

// As TensorFlow's DropoutWrapper, which keeps the memory of an LSTM.
TEST_F(RnnTest, DropoutOfStates) {
  s_.SetGraphSeed(2);
  const auto lstm = std::make_shared<LstmCell>(50);
  const auto cell =
      std::make_shared<StackedCell>(std::vector<RnnCellPtr>{lstm, std::make_shared<GruCell>(50)});
  const Output training = Fed({}, ElementType::kBool);
  const DropoutCell dropped(cell, 0, 0, training, .5);
  EXPECT_THAT(dropped.droppable_states(), ElementsAre(false, true, true));
  const Output x = Const(s_, Floats(Wave(6, .37), {2, 3}));
  const std::vector<Output> zero = cell->ZeroState(s_, 2, ElementType::kFloat);
  const RnnStep plain = cell->Call(s_, x, zero), step = dropped.Call(s_, x, zero);
  Start();
  for (const bool trains : {false, true}) {
    const FeedMap feeds = {{training, Tensor::Scalar(trains)}};
    EXPECT_EQ(Numbers(step.output, feeds), Numbers(plain.output));
    EXPECT_EQ(Numbers(step.state[0], feeds), Numbers(plain.state[0]));
    for (size_t i = 1; i < 3; ++i) {
      const std::vector<float> kept = Numbers(plain.state[i]), got = Numbers(step.state[i], feeds);
      int zeros = 0;
      for (size_t j = 0; j < kept.size(); ++j) {
        zeros += got[j] == 0 ? 1 : 0;
        if (got[j] == 0) continue;
        EXPECT_FLOAT_EQ(got[j], kept[j] * (trains ? 2 : 1));
      }
      EXPECT_NEAR(zeros, trains ? 50 : 0, trains ? 20 : 0);
    }
  }
}

// The loop is the same as its steps one after another, wrapped cells and gradients included.
TEST_F(RnnTest, TheLoopIsItsSteps) {
  const Scope given = Given();
  const Output training = Const(s_, false);
  const auto inner = std::make_shared<LstmCell>(3, LstmOptions{.use_peepholes = true});
  const StackedCell cell({std::make_shared<DropoutCell>(inner, .5, .5, training),
                          std::make_shared<ResidualCell>(std::make_shared<GruCell>(3))});
  const Output x = Const(s_, values_);
  const RnnResult loop = DynamicRnn(given, cell, x);
  const Scope steps = VariableScope(given, "rnn", {.reuse = Reuse::kYes});
  std::vector<Output> state = cell.ZeroState(s_, 2, ElementType::kFloat);
  Output sum;
  for (int t = 0; t < 4; ++t) {
    const Output at = ops::Reshape(s_, ops::Slice(s_, x, {0, t, 0}, {2, 1, 3}), {2, 3});
    const RnnStep step = cell.Call(steps, at, state);
    ASSERT_TRUE(s_.ok()) << s_.status();
    state = step.state;
    const Output one = ReduceSum(s_, ops::Square(s_, step.output));
    sum = sum.valid() ? ops::Add(s_, sum, one) : one;
  }
  const Output loop_sum = ReduceSum(s_, ops::Square(s_, loop.outputs));
  std::vector<Output> variables;
  for (const ModelVariable& v : ModelVariable::Trainable(*s_.graph()))
    variables.push_back(v.value());
  const Output loop_sums[] = {loop_sum}, sums[] = {sum};
  const OutputList of_loop = Gradients(s_, loop_sums, variables);
  const OutputList of_steps = Gradients(s_, sums, variables);
  Start();
  EXPECT_NEAR(Number(loop_sum), Number(sum), 1e-5);
  for (size_t i = 0; i < variables.size(); ++i) {
    const std::vector<float> a = Numbers(of_loop[i]), b = Numbers(of_steps[i]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t j = 0; j < a.size(); ++j) EXPECT_NEAR(a[j], b[j], 1e-5) << variables[i].name();
  }
}

TEST_F(RnnTest, WhatDoesNotFitIsRefused) {
  const LstmCell cell(5);
  const auto refused = [&](const PartialShape& shape, const RnnOptions& options,
                           const std::string& says) {
    const Scope s = Scope::NewRoot();
    DynamicRnn(s, cell, ops::Placeholder(s, ElementType::kFloat, {.shape = shape}), options);
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << s.status();
    EXPECT_THAT(std::string(s.status().message()), HasSubstr(says));
  };
  refused({-1, -1, -1}, {}, "DynamicRnn");
  refused({-1, 3}, {}, "DynamicRnn");
  refused({2, 4, 3}, {.initial_state = {x_}}, "2 states");
}

}  // namespace
}  // namespace troupe
