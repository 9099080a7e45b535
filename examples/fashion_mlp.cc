// A multi-layer perceptron on Fashion-MNIST: 200-100-60-30-10 units, ReLU, dropout and Adam.
//
//     build/release/bin/fashion_mlp --steps 6000

#include "examples/shared/fashion_training.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial

/// x * W + b with `units` outputs.
Output Dense(const Scope& scope, const Output& x, int64_t inputs, int64_t units) {
  // A sub-scope groups the names of a layer: "layer1/weights".
  ModelVariable weights(scope, {inputs, units}, TruncatedNormalInitializer(0.0, 0.1), "weights");
  ModelVariable biases(scope, {units}, ConstantInitializer(0.1), "biases");
  return ops::BiasAdd(scope, ops::MatMul(scope, x, weights.value()), biases.value());
}

}  // namespace

int main(int argc, char** argv) {
  const fashion::Options options =
      fashion::ParseOptions(argc, argv, "A multi-layer perceptron on Fashion-MNIST.");
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);

  fashion::Model model;
  model.images = ops::Placeholder(s.WithOpName("images"), ElementType::kFloat,
                                  {.shape = PartialShape({-1, fashion::kPixels})});
  model.labels =
      ops::Placeholder(s.WithOpName("labels"), ElementType::kInt32, {.shape = PartialShape({-1})});

  // Dropout keeps three quarters of the units when training and all when testing: the same graph,
  // another feed.
  model.keep =
      ops::Placeholder(s.WithOpName("keep"), ElementType::kFloat, {.shape = PartialShape({})});
  model.keep_when_training = 0.75f;

  // Four hidden layers. Each is a rectified linear map, of which dropout hides some units.
  Output x = model.images;
  int64_t inputs = fashion::kPixels;
  for (int64_t units : {200, 100, 60, 30}) {
    const Scope layer = s.NewSubScope("layer");
    x = Dropout(layer, ops::Relu(layer, Dense(layer, x, inputs, units)), model.keep);
    inputs = units;
  }
  model.logits = Dense(s.NewSubScope("output"), x, inputs, fashion::kClasses);
  auto entropy = ops::SparseSoftmaxCrossEntropyWithLogits(s, model.logits, model.labels);
  model.loss = ReduceMean(s, entropy.loss);

  // The learning rate is part of the graph: 0.0001 + 0.0029 exp(-step / 2000).
  ModelVariable step = GlobalStep(s);
  const Output progress =
      ops::RealDiv(s, ops::Cast(s, step.value(), ElementType::kFloat), -2000.0f);
  const Output rate = ops::Add(s, ops::Mul(s, ops::Exp(s, progress), 0.0029f), 0.0001f);
  AdamOptimizer optimizer(rate);
  model.train = optimizer.Minimize(s, model.loss, step);

  return fashion::TrainAndTest(s, model, options);
}
