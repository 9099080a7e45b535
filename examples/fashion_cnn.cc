// A convolutional network on Fashion-MNIST.
//
//     build/release/bin/fashion_cnn --steps 6000 --show 8
//
// Three convolutions (6x6 to 6 channels; 5x5 to 12, stride 2; 4x4 to 24, stride 2), a dense layer
// of 200 units with dropout, and 10 outputs.

#include "examples/fashion_mnist.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial

/// A rectified convolution with a square filter and SAME padding on images [batch, height, width,
/// channels].
Output Convolution(const Scope& scope, const Output& x, int64_t size, int64_t inputs,
                   int64_t outputs, int64_t stride) {
  ModelVariable filter(scope, {size, size, inputs, outputs}, TruncatedNormalInitializer(0.0, 0.1),
                       "filter");
  ModelVariable biases(scope, {outputs}, ConstantInitializer(0.1), "biases");
  const Output y = ops::Conv2D(scope, x, filter.value(), {1, stride, stride, 1}, "SAME");
  return ops::Relu(scope, ops::BiasAdd(scope, y, biases.value()));
}

/// x * W + b with `units` outputs.
Output Dense(const Scope& scope, const Output& x, int64_t inputs, int64_t units) {
  ModelVariable weights(scope, {inputs, units}, TruncatedNormalInitializer(0.0, 0.1), "weights");
  ModelVariable biases(scope, {units}, ConstantInitializer(0.1), "biases");
  return ops::BiasAdd(scope, ops::MatMul(scope, x, weights.value()), biases.value());
}

}  // namespace

int main(int argc, char** argv) {
  const fashion::Options options = fashion::ParseOptions(argc, argv);
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);

  fashion::Model model;
  model.images = ops::Placeholder(s.WithOpName("images"), ElementType::kFloat,
                                  {.shape = PartialShape({-1, fashion::kPixels})});
  model.labels =
      ops::Placeholder(s.WithOpName("labels"), ElementType::kInt32, {.shape = PartialShape({-1})});
  model.keep =
      ops::Placeholder(s.WithOpName("keep"), ElementType::kFloat, {.shape = PartialShape({})});
  model.keep_when_training = 0.75f;

  // Rows of pixels become pictures of one channel; strides halve them to 14x14 and 7x7.
  Output x = ops::Reshape(s, model.images, {-1, fashion::kSide, fashion::kSide, 1});
  x = Convolution(s.NewSubScope("conv1"), x, 6, 1, 6, 1);
  x = Convolution(s.NewSubScope("conv2"), x, 5, 6, 12, 2);
  x = Convolution(s.NewSubScope("conv3"), x, 4, 12, 24, 2);

  constexpr int64_t kFlat = 7 * 7 * 24;
  const Scope dense = s.NewSubScope("dense");
  x = ops::Relu(dense, Dense(dense, ops::Reshape(dense, x, {int64_t{-1}, kFlat}), kFlat, 200));
  x = Dropout(dense, x, model.keep);
  model.logits = Dense(s.NewSubScope("output"), x, 200, fashion::kClasses);
  auto entropy = ops::SparseSoftmaxCrossEntropyWithLogits(s, model.logits, model.labels);
  model.loss = ReduceMean(s, entropy.loss);

  ModelVariable step = GlobalStep(s);
  const Output progress =
      ops::RealDiv(s, ops::Cast(s, step.value(), ElementType::kFloat), -2000.0f);
  const Output rate = ops::Add(s, ops::Mul(s, ops::Exp(s, progress), 0.0029f), 0.0001f);
  AdamOptimizer optimizer(rate);
  model.train = optimizer.Minimize(s, model.loss, step);

  return fashion::TrainAndTest(s, model, options);
}
