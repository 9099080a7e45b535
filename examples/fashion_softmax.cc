// Softmax regression on Fashion-MNIST: the smallest model that learns to tell clothes apart.
//
//     build/release/bin/fashion_softmax --steps 6000
//
// An image is a row of 784 pixels. The model is one matrix and one vector: logits = pixels * W + b.
// Training lowers the cross entropy between softmax(logits) and the labels by gradient descent.

#include "examples/shared/fashion_training.h"

int main(int argc, char** argv) {
  using namespace troupe;  // NOLINT: a tutorial
  const fashion::Options options =
      fashion::ParseOptions(argc, argv, "Softmax regression on Fashion-MNIST.");

  // Everything below only describes the computation: a graph of ops. Errors are collected in the
  // scope.
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);

  // Placeholders stand for what each step is fed; -1 is a size that may differ from run to run.
  fashion::Model model;
  model.images = ops::Placeholder(s.WithOpName("images"), ElementType::kFloat,
                                  {.shape = PartialShape({-1, fashion::kPixels})});
  model.labels =
      ops::Placeholder(s.WithOpName("labels"), ElementType::kInt32, {.shape = PartialShape({-1})});

  // Variables keep their values from step to step. These start as zeros.
  ModelVariable weights(s, {fashion::kPixels, fashion::kClasses}, ZerosInitializer(), "weights");
  ModelVariable biases(s, {fashion::kClasses}, ZerosInitializer(), "biases");
  model.logits = ops::BiasAdd(s, ops::MatMul(s, model.images, weights.value()), biases.value());

  // The loss is summed over the batch, so the rate is small.
  auto entropy = ops::SparseSoftmaxCrossEntropyWithLogits(s, model.logits, model.labels);
  model.loss = ReduceSum(s, entropy.loss);

  // Minimize adds the gradient ops and the updates, and gives the node that runs them all.
  GradientDescentOptimizer optimizer(0.003f);
  model.train = optimizer.Minimize(s, model.loss);

  return fashion::TrainAndTest(s, model, options);
}
