// Pictures in a folder, a sub-folder a class: read, decoded, varied and learned.
//
//     build/release/bin/image_folder --folder /data/flowers --steps 5000
//
// Without --folder it writes some pictures of Fashion-MNIST, PNG and JPEG, into a folder of its
// own. A `Dataset` shuffles the paths, draws a crop and a side for each picture, and has a function
// of a graph decode, resize, crop, flip and normalize it, several pictures at once. While the
// network learns from one batch, the next one is made. Every tenth picture is kept aside for the
// test.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "examples/fashion_cnn.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::Die;
using examples::OrDie;

constexpr int32_t kMargin = 4;  // A picture is so much larger than its crop.

/// Writes the first pictures of Fashion-MNIST into folders that are called as their classes.
void WriteSamples(const std::string& folder, const std::string& data, int32_t count) {
  Scope s = Scope::NewRoot();
  const Output pixels = ops::Placeholder(s, ElementType::kUint8);
  const Output png = ops::EncodePng(s, pixels), jpeg = ops::EncodeJpeg(s, pixels);
  const auto session = OrDie(Session::Create(s.graph()));
  const fashion::Dataset samples = fashion::ReadDataset(data, "train");
  for (int32_t i = 0; i < count; ++i) {
    const auto image = absl::MakeConstSpan(samples.pixels).subspan(i * fashion::kPixels);
    const Tensor tensor = *Tensor::FromValues<uint8_t>(image.first(fashion::kPixels),
                                                       {fashion::kSide, fashion::kSide, 1});
    const bool is_png = i % 2 == 0;
    const auto file = OrDie(session->Run({{pixels, tensor}}, {is_png ? png : jpeg}));
    const std::string where = folder + "/" + fashion::kClassNames[samples.labels[i]];
    std::filesystem::create_directories(where);
    std::ofstream(where + "/" + std::to_string(i) + (is_png ? ".png" : ".jpg"), std::ios::binary)
        << *file[0].scalar<std::string>();
  }
}

/// (path, label, corner [3], flipped dimensions) -> (pixels [784], label).
Function DefineDecode(const Scope& scope) {
  return DefineFunction(
      scope, "Decode",
      {ElementType::kString, ElementType::kInt32, ElementType::kInt32, ElementType::kInt32},
      [](const Scope& s, absl::Span<const Output> args) {
        constexpr int32_t kWhole = fashion::kSide + kMargin;
        const Output image = ops::DecodeImage(s, ops::ReadFile(s, args[0]),
                                              {.channels = 1, .expand_animations = false});
        const Output resized = ops::ResizeBilinear(s, ops::ExpandDims(s, image, 0),
                                                   {kWhole, kWhole}, {.half_pixel_centers = true});
        const Output crop = ops::Slice(s, ops::Reshape(s, resized, {kWhole, kWhole, 1}), args[2],
                                       {fashion::kSide, fashion::kSide, 1});
        const Output pixels =
            ops::Reshape(s, ops::ReverseV2(s, crop, args[3]), {int32_t{fashion::kPixels}});
        // A mean of 0 and a deviation of 1, unless the picture is of one color.
        const Output centered = ops::Sub(s, pixels, ops::Mean(s, pixels, {0}));
        const Output deviation = ops::Sqrt(s, ops::Mean(s, ops::Square(s, centered), {0}));
        return std::vector<Output>{ops::RealDiv(s, centered, ops::Maximum(s, deviation, 1.0f)),
                                   args[1]};
      });
}

/// What `Decode` takes, of an element that ends with path and label.
Tensors Place(const Tensors& element, int32_t y, int32_t x, bool flipped) {
  const size_t n = element.size();
  return {element[n - 2], element[n - 1], Tensor::Vector<int32_t>({y, x, 0}),
          flipped ? Tensor::Vector<int32_t>({1}) : Tensor::Vector<int32_t>({})};
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  int32_t samples = 6000;
  fashion::Options defaults;
  defaults.steps = 2000;
  const fashion::Options options = fashion::ParseOptions(
      argc, argv, "A network that learns pictures from a folder, a sub-folder a class.",
      [&](CommandLine& line) {
        AddValue(&line, "--folder DIR", &folder,
                 "Where the pictures are; absent: some are written");
        AddValue(&line, "--samples N", &samples, "So many are written")
            ->check(WholeNumber(100, 60'000));
      },
      defaults);
  const bool own = folder.empty();
  if (own) {
    folder = std::filesystem::temp_directory_path() / "troupe_pictures_XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) Die(absl::ErrnoToStatus(errno, folder));
    WriteSamples(folder, options.data, samples);
  }
  const ImageFiles files = OrDie(ListImageFolder(folder));
  const int64_t count = files.paths.num_elements();
  std::printf("%lld pictures of %zu classes\n", static_cast<long long>(count),
              files.classes.size());

  // The input. Elements are (number, path, label) at first.
  const Scope library = Scope::NewRoot();
  const Function decode = DefineDecode(library);
  OrDie(library.status());
  const Dataset all = Dataset::FromTensors({files.paths, files.labels}).Enumerate();
  const auto kept_aside = [](const Tensors& element) -> absl::StatusOr<bool> {
    return *element[0].scalar<int64_t>() % 10 == 0;
  };
  const auto seed = static_cast<uint64_t>(options.seed);
  const Dataset training =
      all.Filter(
             [=](const Tensors& element) -> absl::StatusOr<bool> { return !*kept_aside(element); })
          .Shuffle({.window = count, .seed = seed})
          .Repeat()
          .Enumerate()
          .Map([=](const Tensors& element) -> absl::StatusOr<Tensors> {
            // Of the element's number: the same whatever thread does it, another one in each pass.
            std::mt19937_64 random(seed + static_cast<uint64_t>(*element[0].scalar<int64_t>()));
            return Place(element, static_cast<int32_t>(random() % (kMargin + 1)),
                         static_cast<int32_t>(random() % (kMargin + 1)), random() % 2 == 0);
          })
          .Map(library.graph(), decode, {.parallel = kAuto})
          .Batch(options.batch)
          .Prefetch();
  const Dataset test = all.Filter(kept_aside)
                           .Map([](const Tensors& element) -> absl::StatusOr<Tensors> {
                             return Place(element, kMargin / 2, kMargin / 2, false);
                           })
                           .Map(library.graph(), decode, {.parallel = kAuto})
                           .Batch(options.batch);

  // The network.
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  fashion::Model model = fashion::CnnInputs(s);
  const fashion::Cnn cnn(s, static_cast<int64_t>(files.classes.size()));
  model.logits = cnn.Logits(s, cnn.Features(s, model.images), model.keep);
  model.loss = fashion::Cnn::Loss(s, model.logits, model.labels);
  const Output accuracy = Accuracy(s, model.logits, model.labels);
  ModelVariable step = GlobalStep(s);
  AdamOptimizer optimizer(fashion::LearningRate(s, step));
  model.train = optimizer.Minimize(s, model.loss, step);
  Node* const init = GlobalVariablesInitializer(s);
  OrDie(s.status());
  const auto session = OrDie(Session::Create(s.graph(), {.threads = options.threads}));
  OrDie(session->RunTargets({init}));

  const auto batches = OrDie(training.MakeIterator({.name = "training"}));
  fashion::ProgressBar progress(options.steps);
  Tensors batch;
  for (int64_t i = 1; i <= options.steps && OrDie(batches->Next(&batch)); ++i) {
    const auto values = OrDie(session->Run({{model.images, batch[0]},
                                            {model.labels, batch[1]},
                                            {model.keep, Tensor::Scalar(model.keep_when_training)}},
                                           {model.loss}, {model.train}));
    progress.Update(i, *values[0].scalar<float>());
  }

  double right = 0, seen = 0;
  const auto tests = OrDie(test.MakeIterator({.name = "test"}));
  while (OrDie(tests->Next(&batch))) {
    const auto n = static_cast<double>(batch[1].num_elements());
    const auto values = OrDie(session->Run(
        {{model.images, batch[0]}, {model.labels, batch[1]}, {model.keep, Tensor::Scalar(1.0f)}},
        {accuracy}));
    right += n * static_cast<double>(*values[0].scalar<float>());
    seen += n;
  }
  std::printf("test accuracy: %.2f %% of %.0f pictures\n", 100 * right / seen, seen);
  if (own) std::filesystem::remove_all(folder);
  return 0;
}
