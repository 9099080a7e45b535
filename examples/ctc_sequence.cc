// Reading: images of clothes stand side by side in a strip; what are they, from left to right?
//
//     build/release/bin/ctc_sequence --show 3
//
// Nobody tells where in a strip a piece of clothing is, nor how many there are: connectionist
// temporal classification (Graves et al. 2006) sums over all the ways in which the labels may lie
// along the strip. The network is that of Shi, Bai and Yao (2015): convolutions turn four columns
// of pixels at a time into a frame, an LSTM goes over the frames from the left and another one from
// the right, and each frame gets logits of the classes and of "nothing new". Strips are of several
// lengths; labels are sparse.
//
// 2,000 steps take 75 s of processor time and reach a label error rate of 16.5 % on strips of test
// images (by beam search 16.4 %); 55 % of the strips, of 2 to 5 images, have no error.

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

#include "examples/shared/fashion_training.h"
#include "examples/shared/picture.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::OrDie;
using fashion::kSide;

constexpr int kUnits = 64;  // Of each LSTM.
constexpr int kFrame = 4;   // Columns of pixels.
constexpr int kMinItems = 2, kMaxItems = 5, kMaxGap = 8;
constexpr int kTestBatches = 20, kTestBatch = 50;

/// Some images side by side, with gaps of random width before, between and behind them.
struct Strip {
  std::vector<uint8_t> pixels;  ///< [kSide, width].
  int64_t width = 0;            ///< A multiple of kFrame.
  std::vector<int32_t> labels;
};

/// Draws strips of a set's images.
class Strips {
 public:
  Strips(const fashion::Dataset& data, int64_t seed)
      : data_(data), random_(static_cast<uint64_t>(seed)) {}

  std::vector<Strip> Next(int64_t count) {
    std::vector<Strip> strips(count);
    for (Strip& strip : strips) strip = Draw();
    return strips;
  }

 private:
  int64_t Between(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }

  Strip Draw() {
    Strip strip;
    std::vector<std::pair<int64_t, int64_t>> items;  // Image, first column.
    int64_t end = 0;
    for (int64_t n = Between(kMinItems, kMaxItems); n > 0; --n) {
      items.emplace_back(Between(0, data_.size() - 1), end + Between(0, kMaxGap));
      end = items.back().second + kSide;
    }
    end += Between(0, kMaxGap);
    strip.width = (end + kFrame - 1) / kFrame * kFrame;
    strip.pixels.resize(kSide * strip.width);
    for (const auto& [image, column] : items) {
      strip.labels.push_back(data_.labels[image]);
      for (int64_t y = 0; y < kSide; ++y) {
        std::copy_n(&data_.pixels[image * fashion::kPixels + y * kSide], kSide,
                    &strip.pixels[y * strip.width + column]);
      }
    }
    return strip;
  }

  const fashion::Dataset& data_;
  std::mt19937_64 random_;
};

/// What is fed for strips, in the order of `Model::Inputs`. Strips are padded to the longest.
std::vector<Tensor> Feeds(const std::vector<Strip>& strips) {
  const auto batch = static_cast<int64_t>(strips.size());
  int64_t width = 0, longest = 0;
  std::vector<int32_t> frames, labels;
  std::vector<int64_t> indices;
  for (int64_t b = 0; b < batch; ++b) {
    const Strip& strip = strips[b];
    width = std::max(width, strip.width);
    longest = std::max(longest, static_cast<int64_t>(strip.labels.size()));
    frames.push_back(static_cast<int32_t>(strip.width / kFrame));
    for (size_t i = 0; i < strip.labels.size(); ++i) {
      indices.insert(indices.end(), {b, static_cast<int64_t>(i)});
      labels.push_back(strip.labels[i]);
    }
  }
  std::vector<float> pixels(batch * kSide * width);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t y = 0; y < kSide; ++y) {
      std::transform(&strips[b].pixels[y * strips[b].width],
                     &strips[b].pixels[y * strips[b].width] + strips[b].width,
                     &pixels[(b * kSide + y) * width],
                     [](uint8_t pixel) { return static_cast<float>(pixel) * (1.0f / 255.0f); });
    }
  }
  const auto count = static_cast<int64_t>(labels.size());
  return {*Tensor::FromValues<float>(pixels, {batch, kSide, width, 1}),
          Tensor::Vector<int32_t>(frames), *Tensor::FromValues<int64_t>(indices, {count, 2}),
          Tensor::Vector<int32_t>(labels), Tensor::Vector<int64_t>({batch, longest})};
}

/// A sparse matrix [batch, position] of classes.
struct Labels {
  Output indices, values, shape;
};

struct Model {
  Output images;                    ///< float [batch, 28, width, 1], fed.
  Output frames;                    ///< int32 [batch], fed: how many each strip has.
  Labels truth;                     ///< Fed; its values are int32.
  Output loss;                      ///< Mean of -log(probability of the truth).
  Labels greedy, beam;              ///< What is read: by the likeliest class of each frame, and by
                                    ///< beam search.
  Output greedy_wrong, beam_wrong;  ///< float [batch]: labels to be put in, left out or changed.
  Node* train = nullptr;

  std::vector<Output> Inputs() const {
    return {images, frames, truth.indices, truth.values, truth.shape};
  }
};

/// Logits [time, batch, classes + 1] of frames.
Output Logits(const Scope& s, const Output& images, const Output& frames) {
  layers::ConvOptions<2> same;
  same.padding = "SAME";
  same.activation = layers::Relu;
  Output x = layers::Conv2D(s, images, 16, {3, 3}, same);
  x = layers::MaxPooling2D(s, x, {2, 2}, {2, 2});
  x = layers::Conv2D(s, x, 32, {3, 3}, same);
  x = layers::MaxPooling2D(s, x, {2, 2}, {2, 2});
  // [batch, 7, time, 32] to [time, batch, 7 * 32].
  x = ops::Transpose(s, x, {2, 0, 1, 3});
  const Output front = SliceOf(s, ops::Shape(s, x), {Range(0, 2)});
  x = ops::Reshape(s, x, ops::ConcatV2(s, {front, {kSide / kFrame * 32}}, 0));

  // Two cells: one would have the same weights both ways.
  const LstmCell forward(kUnits), backward(kUnits);
  const auto run = [&](const LstmCell& cell, const Output& input, const char* name) {
    return DynamicRnn(s, cell, input, {.sequence_length = frames, .time_major = true, .name = name})
        .outputs;
  };
  const auto reverse = [&](const Output& x) {
    return ops::ReverseSequence(s, x, frames, /*seq_dim=*/0, {.batch_dim = 1});
  };
  const Output both = ops::ConcatV2(
      s, {run(forward, x, "forward"), reverse(run(backward, reverse(x), "backward"))}, 2);
  return layers::Dense(s, both, fashion::kClasses + 1);
}

Model Build(const Scope& s, int64_t steps) {
  Model m;
  const auto feed = [&](const char* name, ElementType type, const PartialShape& shape) {
    return ops::Placeholder(s.WithOpName(name), type, {.shape = shape});
  };
  m.images = feed("images", ElementType::kFloat, PartialShape({-1, kSide, -1, 1}));
  m.frames = feed("frames", ElementType::kInt32, PartialShape({-1}));
  m.truth = {feed("label_indices", ElementType::kInt64, PartialShape({-1, 2})),
             feed("label_values", ElementType::kInt32, PartialShape({-1})),
             feed("label_shape", ElementType::kInt64, PartialShape({2}))};
  const Output logits = Logits(s, m.images, m.frames);
  m.loss = ReduceMean(s, ops::CTCLoss(s, logits, m.truth.indices, m.truth.values, m.frames).loss);

  const auto greedy = ops::CTCGreedyDecoder(s, logits, m.frames, {.merge_repeated = true});
  m.greedy = {greedy.decoded_indices, greedy.decoded_values, greedy.decoded_shape};
  // Its candidates have no repetitions but true ones, which must stay.
  const auto beam = ops::CTCBeamSearchDecoder(s, logits, m.frames, /*beam_width=*/16,
                                              /*top_paths=*/1, {.merge_repeated = false});
  m.beam = {beam.decoded_indices[0], beam.decoded_values[0], beam.decoded_shape[0]};
  const Output truth = ops::Cast(s, m.truth.values, ElementType::kInt64);
  const auto wrong = [&](const Labels& read) {
    return ops::EditDistance(s, read.indices, read.values, read.shape, m.truth.indices, truth,
                             m.truth.shape, {.normalize = false});
  };
  m.greedy_wrong = wrong(m.greedy);
  m.beam_wrong = wrong(m.beam);

  const ModelVariable step = GlobalStep(s);
  AdamOptimizer optimizer(CosineDecay(s, 3e-3f, step.value(), std::max<int64_t>(steps, 1), 0.01f));
  m.train = optimizer.ApplyGradients(
      s, ClipByGlobalNorm(s, optimizer.ComputeGradients(s, m.loss), 5.0f), step);
  return m;
}

FeedMap FeedMapOf(const Model& m, const std::vector<Strip>& strips) {
  const std::vector<Output> inputs = m.Inputs();
  const std::vector<Tensor> values = Feeds(strips);
  FeedMap feeds;
  for (size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i], values[i]);
  return feeds;
}

double Sum(const Tensor& x) {
  const auto values = *x.values<float>();
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::string Names(absl::Span<const int32_t> labels) {
  std::string names;
  for (const int32_t label : labels) {
    if (!names.empty()) names += ", ";
    names += fashion::kClassNames[label];
  }
  return names;
}

/// Draws strips, with what they show and what the model reads.
void Show(Session* session, const Model& m, const std::vector<Strip>& strips) {
  const auto values = OrDie(session->Run(FeedMapOf(m, strips), {m.beam.indices, m.beam.values}));
  std::vector<std::vector<int32_t>> read(strips.size());
  for (int64_t i = 0; i < values[1].num_elements(); ++i) {
    read[(*values[0].data<int64_t>())[2 * i]].push_back(
        static_cast<int32_t>((*values[1].data<int64_t>())[i]));
  }
  for (size_t b = 0; b < strips.size(); ++b) {
    examples::DrawPicture(strips[b].pixels, strips[b].width);
    std::printf("  truth: %s\n  read:  %s\n\n", Names(strips[b].labels).c_str(),
                Names(read[b]).c_str());
  }
}

/// Reads strips of test images, the same ones whenever it is called.
void Test(Session* session, const Model& m, const fashion::Dataset& data) {
  Strips strips(data, 1);
  double labels = 0, greedy = 0, beam = 0, right = 0;
  for (int i = 0; i < kTestBatches; ++i) {
    const std::vector<Strip> batch = strips.Next(kTestBatch);
    const auto values = OrDie(session->Run(FeedMapOf(m, batch), {m.greedy_wrong, m.beam_wrong}));
    for (const Strip& strip : batch) labels += static_cast<double>(strip.labels.size());
    greedy += Sum(values[0]);
    beam += Sum(values[1]);
    const auto wrong = *values[1].values<float>();
    right += static_cast<double>(std::count(wrong.begin(), wrong.end(), 0.0f));
  }
  std::printf("label error rate: %.2f %%, by beam search %.2f %%; strips read right: %.1f %%\n",
              100 * greedy / labels, 100 * beam / labels,
              100 * right / (kTestBatches * kTestBatch));
}

}  // namespace

int main(int argc, char** argv) {
  fashion::Options defaults;
  defaults.steps = 2000;
  defaults.batch = 32;
  const fashion::Options options = fashion::ParseOptions(
      argc, argv, "Reads strips of images of clothes, by connectionist temporal classification.",
      {}, defaults);
  const Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  const Model m = Build(s, options.steps);
  Node* const init = GlobalVariablesInitializer(s);
  OrDie(s.status());

  const fashion::Dataset training = fashion::ReadDataset(options.data, "train");
  const fashion::Dataset test = fashion::ReadDataset(options.data, "t10k");
  const auto session = OrDie(Session::Create(s.graph(), {.threads = options.threads}));
  OrDie(session->RunTargets({init}));
  const auto step = OrDie(session->MakeCallable(m.Inputs(), {m.loss}, {m.train}));
  Strips strips(training, options.seed);
  double loss = 0;
  const int64_t report = std::max<int64_t>(1, options.steps / 10);
  for (int64_t i = 1; i <= options.steps; ++i) {
    Tensor result;
    OrDie(step(Feeds(strips.Next(options.batch)), absl::MakeSpan(&result, 1)));
    loss += static_cast<double>(*result.scalar<float>());
    if (i % report == 0) {
      std::printf("step %5lld  loss %.3f\n", static_cast<long long>(i),
                  loss / static_cast<double>(report));
      std::fflush(stdout);
      loss = 0;
    }
  }
  if (options.show > 0) Show(session.get(), m, Strips(test, 2).Next(options.show));
  Test(session.get(), m, test);
  return 0;
}
