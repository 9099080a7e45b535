// ResNet-20 on images of CIFAR-10's shape: 32 x 32 pixels, three channels, ten classes.
// (He et al., "Deep Residual Learning for Image Recognition", 2015, section 4.2.)
//
//     build/release/bin/resnet_cifar --data /data/cifar-10-batches-bin --steps 64000 --batch 128
//     build/release/bin/resnet_cifar
//
// Without --data it learns Fashion-MNIST in that shape: gray pictures with a black margin. A
// `Dataset` shifts and flips the training images while the network learns; a monitored session
// trains, and after each pass over the images the network is tested with the moving averages of its
// batch normalizations. With --dir it keeps checkpoints there, and goes on from the last one.

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <random>

#include "examples/shared/fashion_data.h"
#include "examples/shared/options.h"
#include "examples/shared/picture.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::OrDie;

constexpr int32_t kSide = 32, kChannels = 3, kClasses = 10;
constexpr int32_t kMargin = 4;  // Images are shifted by so many pixels at most.

struct Data {
  LabelledImages training, test;
  std::vector<std::string> classes;
};

/// CIFAR-10's binary files.
Data ReadCifar10(const std::string& folder) {
  std::vector<std::string> files;
  for (const char* part : {"1", "2", "3", "4", "5"}) {
    files.push_back(folder + "/data_batch_" + part + ".bin");
  }
  return {.training = OrDie(ReadCifar(files)),
          .test = OrDie(ReadCifar({folder + "/test_batch.bin"})),
          .classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
                      "ship", "truck"}};
}

/// Fashion-MNIST with a margin, in three equal channels.
Data ReadFashion() {
  Scope s = Scope::NewRoot();
  const Output gray = ops::Placeholder(s, ElementType::kUint8);
  constexpr int32_t kBorder = (kSide - fashion::kSide) / 2;
  const Tensor border =
      *Tensor::FromValues<int32_t>({0, 0, kBorder, kBorder, kBorder, kBorder, 0, 0}, {4, 2});
  const Output images = ops::Tile(s, ops::Pad(s, gray, border), {1, 1, 1, kChannels});
  OrDie(s.status());
  const auto session = OrDie(Session::Create(s.graph()));
  const auto read = [&](const std::string& part) {
    LabelledImages data = OrDie(ReadMnist(fashion::kFolder, part));
    data.images = OrDie(session->Run({{gray, data.images}}, {images}))[0];
    return data;
  };
  return {.training = read("train"),
          .test = read("t10k"),
          .classes = {std::begin(fashion::kClassNames), std::end(fashion::kClassNames)}};
}

/// (image, label, corner [3], flipped axes) -> (image, label).
Function DefineVary(const Scope& scope) {
  return DefineFunction(
      scope, "Vary",
      {ElementType::kUint8, ElementType::kInt32, ElementType::kInt32, ElementType::kInt32},
      [](const Scope& s, absl::Span<const Output> args) {
        const Tensor margin =
            *Tensor::FromValues<int32_t>({kMargin, kMargin, kMargin, kMargin, 0, 0}, {3, 2});
        const Output crop =
            ops::Slice(s, ops::Pad(s, args[0], margin), args[2], {kSide, kSide, kChannels});
        return std::vector<Output>{ops::ReverseV2(s, crop, args[3]), args[1]};
      });
}

/// Batches without end, in another order and with other shifts and sides in each pass.
Dataset TrainingBatches(const LabelledImages& data, int64_t batch, uint64_t seed) {
  const Scope library = Scope::NewRoot();
  const Function vary = DefineVary(library);
  OrDie(library.status());
  return Dataset::FromTensors({data.images, data.labels})
      .Shuffle({.window = data.labels.num_elements(), .seed = seed})
      .Repeat()
      .Enumerate()
      .Map([seed](const Tensors& element) -> absl::StatusOr<Tensors> {
        // Of the element's number: the same whatever thread does it.
        std::mt19937_64 random(seed + static_cast<uint64_t>(*element[0].scalar<int64_t>()));
        const auto y = static_cast<int32_t>(random() % (2 * kMargin + 1));
        const auto x = static_cast<int32_t>(random() % (2 * kMargin + 1));
        return Tensors{
            element[1], element[2], Tensor::Vector<int32_t>({y, x, 0}),
            random() % 2 == 0 ? Tensor::Vector<int32_t>({1}) : Tensor::Vector<int32_t>({})};
      })
      .Map(library.graph(), vary, {.parallel = kAuto})
      .Batch(batch)
      .Prefetch();
}

/// A convolution of 3 x 3, normalized.
Output Convolution(const Scope& s, const Output& x, int64_t filters, int64_t stride,
                   const Output& training) {
  layers::ConvOptions<2> options;
  options.strides = {stride, stride};
  options.padding = "SAME";
  options.use_bias = false;                   // The normalization has one.
  const Regularizer none = L2Regularizer(0);  // Weights of convolutions decay only.
  return layers::BatchNormalization(
      s, layers::Conv2D(s, x, filters, {3, 3}, options), training,
      {.momentum = 0.9, .gamma_regularizer = none, .beta_regularizer = none});
}

/// relu(x + F(x)), where F is two convolutions. If these halve the sides and double the channels, x
/// goes by as every other pixel, with zeros in the new channels (the paper's option A).
Output ResidualBlock(const Scope& s, const Output& x, int64_t filters, int64_t stride,
                     const Output& training) {
  Output y = layers::Relu(s, Convolution(s, x, filters, stride, training));
  y = Convolution(s, y, filters, 1, training);
  Output shortcut = x;
  if (stride > 1) {
    const SliceItem every_other = Range(std::nullopt, std::nullopt, stride);
    const auto more = static_cast<int32_t>(filters - x.shape().dim(3));
    shortcut = ops::Pad(s, SliceOf(s, x, {All(), every_other, every_other}),
                        *Tensor::FromValues<int32_t>({0, 0, 0, 0, 0, 0, 0, more}, {4, 2}));
  }
  return layers::Relu(s, ops::Add(s, y, shortcut));
}

/// Images uint8 [batch, 32, 32, 3] -> logits [batch, 10]; 6 * blocks + 2 layers with weights.
Output ResNet(const Scope& root, const Output& images, const Output& training, int64_t blocks) {
  const Scope s = VariableScope(root, "resnet",
                                {.initializer = VarianceScalingInitializer({.scale = 2.0}),
                                 .regularizer = L2Regularizer(1e-4)});
  // This normalization learns mean and deviation of the data.
  Output x = layers::BatchNormalization(s, ops::Cast(s, images, ElementType::kFloat), training,
                                        {.momentum = 0.9, .center = false, .scale = false});
  x = layers::Relu(s, Convolution(s, x, 16, 1, training));
  for (int64_t filters : {16, 32, 64}) {
    for (int64_t block = 0; block < blocks; ++block) {
      x = ResidualBlock(s, x, filters, filters > 16 && block == 0 ? 2 : 1, training);
    }
  }
  return layers::Dense(s, layers::GlobalAveragePooling(s, x), kClasses);
}

struct Model {
  Output images, labels, training;  ///< Fed.
  Output logits, loss, step;
  Node* train = nullptr;
  metrics::Metric accuracy;
  Node* reset_metrics = nullptr;
};

Model BuildModel(const Scope& s, int64_t blocks, const examples::Options& options) {
  Model model;
  model.images = ops::Placeholder(s.WithOpName("images"), ElementType::kUint8,
                                  {.shape = PartialShape({-1, kSide, kSide, kChannels})});
  model.labels =
      ops::Placeholder(s.WithOpName("labels"), ElementType::kInt32, {.shape = PartialShape({-1})});
  model.training =
      ops::Placeholder(s.WithOpName("training"), ElementType::kBool, {.shape = PartialShape({})});
  model.logits = ResNet(s, model.images, model.training, blocks);
  OrDie(s.status());
  std::printf("%s", layers::Summary(*s.graph()).c_str());

  losses::SparseSoftmaxCrossEntropy(s, model.labels, model.logits);
  model.loss = losses::TotalLoss(s);  // With the regularization losses.

  // The paper's 0.1 for batches of 128; a tenth of it from a half, and from three quarters on.
  const float rate = 0.1f * static_cast<float>(options.batch) / 128.0f;
  const auto steps = static_cast<double>(std::max<int64_t>(options.steps, 1));
  ModelVariable step = GlobalStep(s);
  model.step = step.value();
  MomentumOptimizer optimizer(
      PiecewiseConstant(s, model.step, {steps / 2, steps * 3 / 4}, {rate, rate / 10, rate / 100}),
      0.9f);
  // The averages of batch normalization move with each step.
  model.train =
      optimizer.Minimize(s.WithControlDependencies(UpdateOps(*s.graph())), model.loss, step);

  const Output guesses = ops::Cast(s, ops::ArgMax(s, model.logits, 1), ElementType::kInt32);
  model.accuracy = metrics::Accuracy(s, model.labels, guesses);
  model.reset_metrics = LocalVariablesInitializer(s);
  OrDie(s.status());
  return model;
}

/// The share of images, in percent, that the network takes for what they are.
double Evaluate(Session& session, const Model& model, const Dataset& batches) {
  OrDie(session.RunTargets({model.reset_metrics}));
  const auto iterator = OrDie(batches.MakeIterator({.name = "test"}));
  Tensors batch;
  while (OrDie(iterator->Next(&batch))) {
    OrDie(session.Run({{model.images, batch[0]},
                       {model.labels, batch[1]},
                       {model.training, Tensor::Scalar(false)}},
                      {model.accuracy.update}));
  }
  const auto values = OrDie(session.Run({model.accuracy.value}));
  return 100.0 * static_cast<double>(*values[0].scalar<float>());
}

/// Draws the first images of a batch, with what the network takes them for.
void Show(Session& session, const Model& model, const Dataset& batches, int64_t count,
          const std::vector<std::string>& classes) {
  Tensors batch;
  OrDie(OrDie(batches.MakeIterator())->Next(&batch));
  const Tensor logits = OrDie(session.Run(
      {{model.images, batch[0]}, {model.training, Tensor::Scalar(false)}}, {model.logits}))[0];
  for (int64_t i = 0; i < std::min(count, batch[1].num_elements()); ++i) {
    constexpr int64_t kPixels = kSide * kSide * kChannels;
    examples::DrawPicture(batch[0].unchecked_values<uint8_t>().subspan(i * kPixels, kPixels), kSide,
                          kChannels);
    const auto row = logits.unchecked_values<float>().subspan(i * kClasses, kClasses);
    const auto guess = std::max_element(row.begin(), row.end()) - row.begin();
    const int32_t truth = batch[1].unchecked_values<int32_t>()[i];
    std::printf("  -> %s%s%s\n\n", classes[guess].c_str(), guess == truth ? "" : ", but it is a ",
                guess == truth ? "" : classes[truth].c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options{.steps = 1500, .batch = 64};
  std::string folder, checkpoints;
  int64_t blocks = 3, show = 0;
  examples::CommandLine line(argv, "ResNet-20 on images of CIFAR-10's shape.", &options);
  AddValue(&line, "--data DIR", &folder, "CIFAR-10's binary files; absent: Fashion-MNIST");
  AddValue(&line, "--dir DIR", &checkpoints, "Where checkpoints are kept; absent: nowhere");
  AddValue(&line, "--blocks N", &blocks, "Residual blocks a stage: 6 N + 2 layers")
      ->check(WholeNumber(1, 200));
  AddValue(&line, "--show N", &show, "Draws so many test images at the end")
      ->check(WholeNumber(0, 1000));
  line.ReadOrExit(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // Lines come in order, with those of the progress.

  const Data data = folder.empty() ? ReadFashion() : ReadCifar10(folder);
  const int64_t count = data.training.labels.num_elements();
  std::printf("%" PRId64 " training images, %" PRId64 " test images\n", count,
              data.test.labels.num_elements());
  const auto training =
      OrDie(TrainingBatches(data.training, options.batch, static_cast<uint64_t>(options.seed))
                .MakeIterator({.name = "training"}));
  const Dataset test = Dataset::FromTensors({data.test.images, data.test.labels}).Batch(250);

  Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  const Model model = BuildModel(s, blocks, options);
  const auto session = OrDie(MonitoredTrainingSession(
      s.graph(),
      {.session = {.threads = options.threads},
       .checkpoint_dir = checkpoints,
       .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(options.steps)),
                 std::make_shared<NanTensorHook>(model.loss),
                 std::make_shared<ProgressHook>(
                     ProgressHook::Options{.last_step = options.steps, .loss = model.loss})},
       .save_summaries = {},
       .log_step_count_steps = 0}));
  const int64_t steps_a_pass = std::max<int64_t>(count / options.batch, 1);
  // After steps of an earlier run, if there is a checkpoint.
  int64_t i = *OrDie(session->session()->Run({model.step}))[0].scalar<int64_t>();
  Tensors batch;
  while (!session->should_stop()) {
    OrDie(training->Next(&batch));
    OrDie(session->Run({{model.images, batch[0]},
                        {model.labels, batch[1]},
                        {model.training, Tensor::Scalar(true)}},
                       {}, {model.train}));
    if (++i % steps_a_pass == 0 && !session->should_stop()) {
      std::printf("after %" PRId64 " steps: %.2f %%\n", i,
                  Evaluate(*session->session(), model, test));
    }
  }
  Show(*session->session(), model, test, show, data.classes);
  std::printf("test accuracy: %.2f %%\n", Evaluate(*session->session(), model, test));
  OrDie(session->Close());
  return 0;
}
