// The same seed gives the same bits on any number of threads.

#include <gtest/gtest.h>

#include <cstring>

#include "api/troupe.h"

namespace troupe {
namespace {

/// Trains a small convolutional network on made-up images, large enough for kernels to be split,
/// and gives all its variables.
std::vector<Tensor> Train(int threads, int steps) {
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(11);
  const Output images = RandomUniformInitializer(0, 1)(s, {96, 28, 28, 1}, ElementType::kFloat);
  std::vector<int32_t> classes(96);
  for (int i = 0; i < 96; ++i) classes[i] = i % 10;
  auto variable = [&](const Shape& shape, const char* name) {
    return ModelVariable(s, shape, TruncatedNormalInitializer(0, 0.1), name);
  };
  ModelVariable f1 = variable({5, 5, 1, 8}, "f1"), f2 = variable({3, 3, 8, 16}, "f2");
  ModelVariable w1 = variable({7 * 7 * 16, 200}, "w1"), w2 = variable({200, 10}, "w2");
  ModelVariable b1 = variable({200}, "b1");
  Output x = ops::Relu(s, ops::Conv2D(s, images, f1.value(), {1, 1, 1, 1}, "SAME"));
  x = ops::MaxPool(s, x, {1, 2, 2, 1}, {1, 2, 2, 1}, "SAME");
  x = ops::Relu(s, ops::Conv2D(s, x, f2.value(), {1, 2, 2, 1}, "SAME"));
  x = ops::Reshape(s, x, {-1, 7 * 7 * 16});
  x = ops::Relu(s, ops::BiasAdd(s, ops::MatMul(s, x, w1.value()), b1.value()));
  x = ops::MatMul(s, Dropout(s, x, 0.75f), w2.value());
  const Output labels = Const(s, Tensor::Vector<int32_t>(classes));
  const Output loss = ReduceMean(s, ops::SparseSoftmaxCrossEntropyWithLogits(s, x, labels).loss);
  AdamOptimizer optimizer(0.01f);
  Node* train = optimizer.Minimize(s, loss);
  Node* init = GlobalVariablesInitializer(s);
  EXPECT_TRUE(s.ok()) << s.status();
  SessionOptions options;
  options.threads = threads;
  auto session = *Session::Create(s.graph(), options);
  EXPECT_TRUE(session->RunTargets({init}).ok());
  for (int i = 0; i < steps; ++i) {
    const absl::Status status = session->RunTargets({train});
    EXPECT_TRUE(status.ok()) << status;
  }
  auto values = session->Run({f1.value(), f2.value(), w1.value(), w2.value(), b1.value(), loss});
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<Tensor>();
}

TEST(SameBitsTest, OnOneTwoAndFiveThreads) {
  constexpr int kSteps = 12;
  const std::vector<Tensor> one = Train(1, kSteps);
  for (int threads : {2, 5}) {
    const std::vector<Tensor> many = Train(threads, kSteps);
    ASSERT_EQ(one.size(), many.size());
    for (size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i].bytes(), many[i].bytes());
      EXPECT_EQ(std::memcmp(one[i].raw_data(), many[i].raw_data(), one[i].bytes()), 0)
          << "variable " << i << " on " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace troupe
