// What central differences do not show of the gradients of recurrent cells.
#include <vector>

#include <gtest/gtest.h>

#include "api/session.h"
#include "tests/graph/gradients/gradient_test_util.h"

namespace troupe {
namespace {

Tensor Filled(const Shape& shape, float first) {
  Tensor value = Tensor::Uninitialized(ElementType::kFloat, shape);
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    value.mutable_data<float>()[i] = first + 0.1f * static_cast<float>(i % 7);
  }
  return value;
}

std::vector<Tensor> RunGraph(TestGraph& g, const FeedMap& feeds,
                             const std::vector<Output>& fetches) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  auto session = Session::Create(g.shared_graph());
  EXPECT_TRUE(session.ok()) << session.status();
  auto values = (*session)->Run(feeds, fetches);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *std::move(values) : std::vector<Tensor>(fetches.size());
}

// TensorFlow passes the gradient of a cell state on as if it were not clipped: the gradient of the
// last cell state is the forget gate.
TEST(RecurrentGradient, ClipsAreLeftOutOfAccount) {
  TestGraph g;
  auto input = [&](const Shape& shape) { return g.Const(Filled(shape, 0.5f)); };
  const Output cs_prev = input({2, 3});
  Node* lstm = g.Add("LSTMBlockCell",
                     {input({2, 4}), cs_prev, input({2, 3}), input({7, 12}), input({3}), input({3}),
                      input({3}), input({12})},
                     [](NodeSpec& spec) { spec.Attr("cell_clip", 0.25f); });
  ASSERT_NE(lstm, nullptr) << g.status();
  const Output cs(lstm, 1), f(lstm, 2);
  const Output grad = g.Gradients({cs}, {cs_prev})[0];
  const std::vector<Tensor> values = RunGraph(g, {}, {cs, f, grad});
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(values[0].unchecked_data<float>()[i], 0.25f);
    EXPECT_FLOAT_EQ(values[2].unchecked_data<float>()[i], values[1].unchecked_data<float>()[i]);
  }
}

// Sizes that are first known in a step give the same gradients.
TEST(RecurrentGradient, UnknownShapes) {
  const std::vector<Shape> lstm_shapes = {{2, 4}, {2, 3}, {2, 3}, {7, 12}, {3}, {3}, {3}, {12}};
  const std::vector<Shape> gru_shapes = {{2, 4}, {2, 3}, {7, 6}, {7, 3}, {6}, {3}};
  for (const bool is_lstm : {true, false}) {
    const std::vector<Shape>& shapes = is_lstm ? lstm_shapes : gru_shapes;
    std::vector<Tensor> grads[2];
    for (const bool known : {true, false}) {
      TestGraph g;
      std::vector<Output> inputs;
      FeedMap feeds;
      for (const Shape& shape : shapes) {
        inputs.push_back(g.Placeholder(known ? PartialShape(shape) : PartialShape()));
        feeds.emplace_back(inputs.back(), Filled(shape, -0.3f));
      }
      Node* cell = g.Add(is_lstm ? "LSTMBlockCell" : "GRUBlockCell", inputs);
      ASSERT_NE(cell, nullptr) << g.status();
      grads[known] = RunGraph(g, feeds, g.Gradients({Output(cell, is_lstm ? 6 : 3)}, inputs));
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      ASSERT_EQ(grads[0][i].shape(), shapes[i]) << i;
      ASSERT_EQ(grads[1][i].shape(), shapes[i]) << i;
      for (int64_t j = 0; j < shapes[i].num_elements(); ++j) {
        EXPECT_EQ(grads[0][i].unchecked_data<float>()[j], grads[1][i].unchecked_data<float>()[j]);
      }
    }
  }
}

// BlockLSTMGradV2 is the derivative of BlockLSTMV2, by central differences of <h, 1> + <cs, 1>.
TEST(RecurrentGradient, BlockLstmGradV2) {
  const std::vector<Shape> shapes = {{3, 2, 3}, {2, 2}, {2, 2}, {5, 8}, {2}, {2}, {2}, {8}};
  for (const bool use_peephole : {false, true}) {
    auto attrs = [&](NodeSpec& spec) { spec.Attr("use_peephole", use_peephole); };
    TestGraph g;
    std::vector<Output> inputs = {g.Const(Tensor::Scalar<int64_t>(2))};
    std::vector<Tensor> values;
    for (const Shape& shape : shapes) {
      inputs.push_back(g.Placeholder(shape));
      values.push_back(Filled(shape, -0.5f + 0.03f * static_cast<float>(values.size())));
    }
    Node* lstm = g.Add("BlockLSTMV2", inputs, attrs);
    ASSERT_NE(lstm, nullptr) << g.status();
    const Output cs(lstm, 1), h(lstm, 6), ones = g.OnesLike(h);
    std::vector<Output> all = inputs;
    for (int i = 0; i < 7; ++i) all.emplace_back(lstm, i);
    all.insert(all.end(), {ones, ones});
    Node* backward = g.Add("BlockLSTMGradV2", all, attrs);
    ASSERT_NE(backward, nullptr) << g.status();
    std::vector<Output> fetches = {cs, h};
    for (int i = 0; i < 8; ++i) fetches.emplace_back(backward, i);
    auto session = Session::Create(g.shared_graph());
    ASSERT_TRUE(session.ok()) << session.status();
    auto run = [&] {
      FeedMap feeds;
      for (size_t i = 0; i < values.size(); ++i) feeds.emplace_back(inputs[i + 1], values[i]);
      auto results = (*session)->Run(feeds, fetches);
      EXPECT_TRUE(results.ok()) << results.status();
      return results.ok() ? *std::move(results) : std::vector<Tensor>(fetches.size());
    };
    auto loss = [&] {
      const std::vector<Tensor> results = run();
      double sum = 0;
      for (const Tensor& y : {results[0], results[1]}) {
        for (int64_t i = 0; i < y.num_elements(); ++i) sum += y.unchecked_data<float>()[i];
      }
      return sum;
    };
    const std::vector<Tensor> grads = run();
    constexpr float kStep = 1e-2f;
    for (size_t i = 0; i < values.size(); ++i) {
      const Tensor original = values[i];
      for (int64_t j = 0; j < original.num_elements(); ++j) {
        double at[2];
        for (const int side : {0, 1}) {
          values[i] = *original.Clone();
          values[i].mutable_data<float>()[j] += side == 0 ? -kStep : kStep;
          at[side] = loss();
        }
        EXPECT_NEAR(grads[i + 2].unchecked_data<float>()[j], (at[1] - at[0]) / (2 * kStep), 1e-3)
            << "input " << i + 1 << ", element " << j;
      }
      values[i] = original;
    }
  }
}

}  // namespace
}  // namespace troupe
