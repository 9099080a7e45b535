// A variational autoencoder on Fashion-MNIST: it learns to draw clothes that nobody has designed.
//
//     build/release/bin/variational_autoencoder --pictures /tmp/clothes
//
// The encoder says for an image which codes, 20 numbers, may stand for it: a normal distribution.
// The decoder says for a code which pixels are white, and how likely. Both learn together: a code
// is drawn as mean + deviation * noise, so that gradients reach the mean and the deviation (Kingma
// and Welling 2014). What is maximized is the ELBO, a lower bound of the logarithm of the
// probability of an image: how well codes give the image back, less the divergence of the codes
// from the standard normal distribution. A pixel's gray is taken as the probability that it is
// white: the bound is the mean over all black and white images that may be drawn so.
//
// 6,000 steps, ten times all images, take 100 s of processor time and reach a test ELBO of -242.0
// nats: reconstruction -228.4, divergence 13.7. The mean of all training images in place of a
// reconstruction would have -385 nats; the test images themselves, at no divergence, -190.

#include <cstdio>
#include <numeric>

#include "examples/shared/fashion_training.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::OrDie;

constexpr int kCode = 20, kHidden = 256;
constexpr int32_t kColumns = 16, kRows = 8;  // Of images in a picture.

struct Options : examples::Options {
  std::string data = "/usr/share/datasets/fashion-mnist", pictures;
};

/// A number drawn from the standard normal distribution for each element of `shape`.
Output Noise(const Scope& s, const Input& shape) {
  const OpSeed seed = OpSeed::For(s, std::nullopt);
  return ops::RandomStandardNormal(s, shape, ElementType::kFloat,
                                   {.seed = seed.seed, .seed2 = seed.seed2});
}

layers::ConvOptions<2> Halving(const char* name, const layers::Activation& activation) {
  layers::ConvOptions<2> options;
  options.name = name;
  options.activation = activation;
  options.strides = {2, 2};
  options.padding = "SAME";
  return options;
}

/// Logits of the pixels, [batch, 784], of codes [batch, kCode]. Later calls share the variables of
/// the first.
Output Decode(const Scope& root, const Output& codes) {
  const Scope s = VariableScope(root, "decoder", {.reuse = Reuse::kAuto});
  using layers::Relu;
  Output x = layers::Dense(s, codes, kHidden, {.name = "hidden", .activation = Relu});
  x = layers::Dense(s, x, 7 * 7 * 64, {.name = "image", .activation = Relu});
  x = ops::Reshape(s, x, {-1, 7, 7, 64});
  x = layers::Conv2DTranspose(s, x, 32, {3, 3}, Halving("to_14", Relu));
  x = layers::Conv2DTranspose(s, x, 1, {3, 3}, Halving("to_28", nullptr));
  return ops::Reshape(s, x, {-1, int32_t{fashion::kPixels}});
}

struct Model {
  Output images;          ///< float [batch, 784], fed.
  Output reconstruction;  ///< The decoder's probabilities, [batch, 784].
  /// Nats an image, means over the batch: E log p(image | code), KL(codes | prior).
  Output likelihood, divergence;
  Output loss;  ///< -ELBO.
  Node* train = nullptr;
};

Model Build(const Scope& s, int64_t steps) {
  Model m;
  m.images = ops::Placeholder(s.WithOpName("images"), ElementType::kFloat,
                              {.shape = PartialShape({-1, fashion::kPixels})});
  using layers::Relu;
  const Scope encoder = VariableScope(s, "encoder");
  Output x = ops::Reshape(encoder, m.images, {-1, fashion::kSide, fashion::kSide, 1});
  x = layers::Conv2D(encoder, x, 32, {3, 3}, Halving("to_14", Relu));
  x = layers::Conv2D(encoder, x, 64, {3, 3}, Halving("to_7", Relu));
  x = layers::Dense(encoder, layers::Flatten(encoder, x), kHidden,
                    {.name = "hidden", .activation = Relu});
  const Expr mean(s, layers::Dense(encoder, x, kCode, {.name = "mean"}));
  const Expr log_variance(s, layers::Dense(encoder, x, kCode, {.name = "log_variance"}));

  const Expr deviation(s, ops::Exp(s, 0.5 * log_variance));
  const Output logits = Decode(s, mean + deviation * Noise(s, ops::Shape(s, mean)));
  m.reconstruction = ops::Sigmoid(s, logits);
  // The mean over all pixels, times their number.
  const Expr loss(s, losses::SigmoidCrossEntropy(s, m.images, logits));
  m.likelihood = loss * -double{fashion::kPixels};
  const Output divergence = 0.5 * (mean * mean + deviation * deviation - log_variance - 1.0);
  m.divergence = ReduceMean(s, ReduceSum(s, divergence, {.axes = {{1}}}));
  m.loss = ops::Sub(s, m.divergence, m.likelihood);

  const ModelVariable step = GlobalStep(s);
  AdamOptimizer optimizer(CosineDecay(s, 1e-3f, step.value(), std::max<int64_t>(steps, 1), 0.01f));
  m.train = optimizer.Minimize(s, m.loss, step);
  return m;
}

/// The node that writes images [kRows, kColumns, 784] as one picture.
Node* WritePicture(const Scope& s, const Output& images, const std::string& file) {
  constexpr int32_t kSide = fashion::kSide;
  const Output tiles = ops::Reshape(s, images, {kRows, kColumns, kSide, kSide});
  const Output picture =
      ops::Reshape(s, ops::Transpose(s, tiles, {0, 2, 1, 3}), {kRows * kSide, kColumns * kSide, 1});
  const Output bytes =
      ops::Cast(s, ops::Add(s, ops::Mul(s, picture, 255.0f), 0.5f), ElementType::kUint8);
  return ops::WriteFile(s, file, ops::EncodePng(s, bytes));
}

struct Elbo {
  double likelihood = 0, divergence = 0;
  double value() const { return likelihood - divergence; }
};

/// Over all images of `data`, with one code for each.
Elbo Test(Session* session, const Model& m, const fashion::Dataset& data) {
  Elbo sum;
  for (int64_t begin = 0; begin < data.size(); begin += 1000) {
    std::vector<int32_t> batch(std::min<int64_t>(1000, data.size() - begin));
    std::iota(batch.begin(), batch.end(), static_cast<int32_t>(begin));
    const auto values =
        OrDie(session->Run({{m.images, data.Images(batch)}}, {m.likelihood, m.divergence}));
    const double share = static_cast<double>(batch.size()) / static_cast<double>(data.size());
    sum.likelihood += share * static_cast<double>(*values[0].scalar<float>());
    sum.divergence += share * static_cast<double>(*values[1].scalar<float>());
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  Options options{{.steps = 6000, .batch = 100}};
  examples::CommandLine line(argv, "A variational autoencoder on Fashion-MNIST.", &options);
  AddValue(&line, "--data DIR", &options.data, "Where the four files of the data are");
  AddValue(&line, "--pictures DIR", &options.pictures,
           "Gets reconstructions.png, test images over what the model makes of them, and "
           "samples.png, what it makes of codes drawn at random");
  line.ReadOrExit(argc, argv);

  const Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  const Model m = Build(s, options.steps);
  std::vector<Node*> pictures;
  if (!options.pictures.empty()) {
    // Rows of images and rows of their reconstructions, in turn.
    const auto rows = [&](const Output& x) {
      return ops::Reshape(s, x, {kRows / 2, kColumns, int32_t{fashion::kPixels}});
    };
    const Output pairs = ops::Pack(s, {rows(m.images), rows(m.reconstruction)}, {.axis = 1});
    const Output samples = ops::Sigmoid(s, Decode(s, Noise(s, {kRows * kColumns, kCode})));
    pictures = {WritePicture(s, pairs, options.pictures + "/reconstructions.png"),
                WritePicture(s, samples, options.pictures + "/samples.png")};
  }
  Node* const init = GlobalVariablesInitializer(s);
  OrDie(s.status());

  const fashion::Dataset training = fashion::ReadDataset(options.data, "train");
  const fashion::Dataset test = fashion::ReadDataset(options.data, "t10k");
  const auto session = OrDie(Session::Create(s.graph(), {.threads = options.threads}));
  OrDie(session->RunTargets({init}));
  const auto step = OrDie(session->MakeCallable({m.images}, {m.loss}, {m.train}));
  fashion::Batches batches(training, options.batch, options.seed);
  double loss = 0;
  const int64_t report = std::max<int64_t>(1, options.steps / 10);
  for (int64_t i = 1; i <= options.steps; ++i) {
    Tensor result;
    OrDie(step({training.Images(batches.Next())}, absl::MakeSpan(&result, 1)));
    loss += static_cast<double>(*result.scalar<float>());
    if (i % report == 0) {
      std::printf("step %6lld  training ELBO %8.2f  test ELBO %8.2f\n", static_cast<long long>(i),
                  -loss / static_cast<double>(report), Test(session.get(), m, test).value());
      std::fflush(stdout);
      loss = 0;
    }
  }

  if (!pictures.empty()) {
    std::vector<int32_t> first(kRows / 2 * kColumns);
    std::iota(first.begin(), first.end(), 0);
    OrDie(session->RunTargets(pictures, {{m.images, test.Images(first)}}));
  }
  const Elbo elbo = Test(session.get(), m, test);
  std::printf("test ELBO: %.2f nats: reconstruction %.2f, divergence %.2f\n", elbo.value(),
              elbo.likelihood, elbo.divergence);
  return 0;
}
