// From one matrix to a normalized convolutional network: the ladder of Martin Görner's "TensorFlow
// and deep learning, without a PhD". Each rung changes one thing of the rung below.
//
//     build/release/bin/mnist_ladder
//     build/release/bin/mnist_ladder --rung cnn --steps 10000 --data /data/mnist
//
// It learns from Fashion-MNIST, or from the files of MNIST in the folder that --data names. At the
// end it prints the accuracies on the test images. scripts/bench/mnist_ladder.py is the same in
// TensorFlow; docs/training.md has the figures of both.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "examples/shared/fashion_training.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial

struct Convolution {
  int64_t filters, size, stride;
};

struct Rung {
  const char* name;
  const char* description;
  std::vector<Convolution> convolutions = {};
  std::vector<int64_t> units = {};  ///< Of hidden dense layers.
  layers::Activation activation = layers::Relu;
  double bias = 0.1;
  bool decay = false;    ///< Of the learning rate.
  double dropout = 0.0;  ///< The rate, after hidden dense layers.
  bool batch_normalization = false;
};

const std::vector<int64_t> kUnits = {200, 100, 60, 30};
const std::vector<Convolution> kSmall = {{4, 5, 1}, {8, 5, 2}, {12, 4, 2}};
const std::vector<Convolution> kBig = {{6, 6, 1}, {12, 5, 2}, {24, 4, 2}};

const std::vector<Rung> kRungs = {
    {.name = "softmax", .description = "one layer, gradient descent"},
    {.name = "sigmoid",
     .description = "hidden layers of 200, 100, 60, 30 units; Adam",
     .units = kUnits,
     .activation = layers::Sigmoid,
     .bias = 0.0},
    {.name = "relu", .description = "the same with ReLU", .units = kUnits},
    {.name = "decay", .description = "a learning rate that decays", .units = kUnits, .decay = true},
    {.name = "dropout",
     .description = "dropout of a quarter",
     .units = kUnits,
     .decay = true,
     .dropout = 0.25},
    {.name = "cnn",
     .description = "convolutions to 4, 8, 12 channels, 200 units",
     .convolutions = kSmall,
     .units = {200},
     .decay = true},
    {.name = "bigger_cnn",
     .description = "convolutions to 6, 12, 24 channels, dropout",
     .convolutions = kBig,
     .units = {200},
     .decay = true,
     .dropout = 0.25},
    {.name = "batch_norm",
     .description = "the same with batch normalization",
     .convolutions = kBig,
     .units = {200},
     .decay = true,
     .dropout = 0.25,
     .batch_normalization = true},
};

/// Images [batch, 784] -> logits [batch, 10].
Output Logits(const Scope& root, const Rung& rung, const Output& images, const Output& training) {
  const Scope s =
      VariableScope(root, rung.name, {.initializer = TruncatedNormalInitializer(0, 0.1)});
  // Batch normalization has a bias of its own.
  const layers::WeightOptions weights = {.use_bias = !rung.batch_normalization,
                                         .bias_initializer = ConstantInitializer(rung.bias)};
  const auto activate = [&](const Output& x) {
    return rung.activation(
        s, rung.batch_normalization ? layers::BatchNormalization(s, x, training) : x);
  };
  Output x = ops::Reshape(s, images, {-1, fashion::kSide, fashion::kSide, 1});
  for (const auto& [filters, size, stride] : rung.convolutions) {
    layers::ConvOptions<2> options = {weights};
    options.strides = {stride, stride};
    options.padding = "SAME";
    x = activate(layers::Conv2D(s, x, filters, {size, size}, options));
  }
  x = layers::Flatten(s, x);
  for (int64_t units : rung.units) {
    x = activate(layers::Dense(s, x, units, weights));
    x = layers::DropoutLayer(s, x, rung.dropout, training);
  }
  if (rung.units.empty()) {
    return layers::Dense(s, x, fashion::kClasses, {.kernel_initializer = ZerosInitializer()});
  }
  return layers::Dense(s, x, fashion::kClasses);
}

/// The share of test images, in percent, that the rung's network takes for what they are, once it
/// is trained.
double TrainAndMeasure(const Rung& rung, const fashion::Options& options,
                       const fashion::Dataset& training, const fashion::Dataset& test) {
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  fashion::Model model;
  model.images = ops::Placeholder(s.WithOpName("images"), ElementType::kFloat,
                                  {.shape = PartialShape({-1, fashion::kPixels})});
  model.labels =
      ops::Placeholder(s.WithOpName("labels"), ElementType::kInt32, {.shape = PartialShape({-1})});
  model.training =
      ops::Placeholder(s.WithOpName("training"), ElementType::kBool, {.shape = PartialShape({})});
  model.logits = Logits(s, rung, model.images, model.training);

  // Gradient descent is given the sum over the batch, as the book has it.
  const bool is_softmax = rung.units.empty();
  model.loss = losses::SparseSoftmaxCrossEntropy(
      s, model.labels, model.logits,
      {.reduction = is_softmax ? losses::Reduction::kSum : losses::Reduction::kMean});

  // From 0.0031 to 0.0001; the book's 2,000 steps are a fifth of its training, too.
  ModelVariable step = GlobalStep(s);
  Input rate = 0.003f;
  if (rung.decay) {
    const Output decaying = ExponentialDecay(
        s, 0.003f, step.value(), static_cast<float>(std::max<int64_t>(options.steps / 5, 1)),
        std::exp(-1.0f));
    rate = ops::Add(s, decaying, 0.0001f);
  }
  // The averages of batch normalization move with each step.
  const Scope after_updates = s.WithControlDependencies(UpdateOps(*s.graph()));
  if (is_softmax) {
    model.train = GradientDescentOptimizer(rate).Minimize(after_updates, model.loss, step);
  } else {
    model.train = AdamOptimizer(rate).Minimize(after_updates, model.loss, step);
  }
  const auto session = fashion::Train(s, model, training, options);
  return fashion::Accuracy(*session, model, test);
}

}  // namespace

int main(int argc, char** argv) {
  std::string chosen = "all";
  fashion::Options options;
  options.steps = 3000;
  examples::CommandLine line(argv, "From softmax regression to a normalized CNN.", &options);
  std::vector<std::string> names = {chosen};
  for (const Rung& rung : kRungs) names.emplace_back(rung.name);
  AddValue(&line, "--rung NAME", &chosen, "Which network")->check(CLI::IsMember(names));
  AddValue(&line, "--data DIR", &options.data, "Where the four files of the data are");
  line.ReadOrExit(argc, argv);

  const fashion::Dataset training = fashion::ReadDataset(options.data, "train");
  const fashion::Dataset test = fashion::ReadDataset(options.data, "t10k");
  std::string table;
  for (const Rung& rung : kRungs) {
    if (chosen != "all" && chosen != rung.name) continue;
    std::printf("%s: %s\n", rung.name, rung.description);
    const auto start = std::chrono::steady_clock::now();
    const double accuracy = TrainAndMeasure(rung, options, training, test);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::array<char, 80> row;
    std::snprintf(row.data(), row.size(), "%-12s %5.2f %%  %6.1f s\n", rung.name, accuracy,
                  seconds.count());
    table += row.data();
  }
  std::printf("\ntest accuracy after %lld steps:\n%s", static_cast<long long>(options.steps),
              table.c_str());
  return 0;
}
