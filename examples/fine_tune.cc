// Goes on with what TensorFlow has learned: few pictures are enough for a network that begins with
// features from a checkpoint.
//
//     build/release/bin/fine_tune --images 200
//
// TensorFlow has trained three convolutions on 50,000 pictures and saved them
// (tensorflow_graphs/make_checkpoint.py). Here the network of fashion_cnn.h learns from few
// pictures that TensorFlow has not seen: once from scratch, and once with its convolutions to begin
// with.

#include <troupe/troupe.h>

#include <algorithm>
#include <cstdio>

#include "examples/fashion_cnn.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::OrDie;

/// The share of test images that the network takes for what they are, after it has learned from
/// `training`. `checkpoint`: where its convolutions come from, or nothing.
double Train(const fashion::Options& options, const fashion::Dataset& training,
             const fashion::Dataset& test, const std::string& checkpoint) {
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  fashion::Model model = fashion::CnnInputs(s);
  const fashion::Cnn cnn(s);
  model.logits = cnn.Logits(s, cnn.Features(s, model.images), model.keep);
  model.loss = fashion::Cnn::Loss(s, model.logits, model.labels);
  AdamOptimizer optimizer(0.001f);
  model.train = optimizer.Minimize(s, model.loss);
  if (!checkpoint.empty()) {
    // Names there, names here. "features/" -> "" would do if they were called alike.
    AssignmentMap assignments;
    const char* const theirs[] = {"conv2d", "conv2d_1", "conv2d_2"};
    const char* const ours[] = {"conv1", "conv2", "conv3"};
    for (int i = 0; i < 3; ++i) {
      const std::string from = std::string("features/") + theirs[i] + "/";
      const std::string to = std::string(ours[i]) + "/";
      assignments.emplace_back(from + "kernel", to + "filter");
      assignments.emplace_back(from + "bias", to + "biases");
    }
    OrDie(InitFromCheckpoint(s, checkpoint, assignments));
  }
  Node* const init = GlobalVariablesInitializer(s);
  OrDie(s.status());

  const auto session = OrDie(Session::Create(s.graph(), {.threads = options.threads}));
  OrDie(session->RunTargets({init}));
  fashion::Batches batches(training, options.batch, options.seed);
  for (int64_t i = 0; i < options.steps; ++i) {
    OrDie(session->RunTargets({model.train}, fashion::Feeds(model, training, batches.Next())));
  }
  return fashion::Accuracy(*session, model, test);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t images = 200;
  std::string checkpoint = "examples/tensorflow_graphs/fashion_features";
  fashion::Options defaults;
  defaults.steps = 300;
  defaults.batch = 50;
  const fashion::Options options = fashion::ParseOptions(
      argc, argv, "Learns from few pictures, with features that TensorFlow has learned.",
      [&](CommandLine& line) {
        AddValue(&line, "--images N", &images, "From how many pictures it learns")
            ->check(WholeNumber(50, 10'000));
        AddValue(&line, "--checkpoint PREFIX", &checkpoint, "Where the features are");
      },
      defaults);
  fashion::Dataset training = fashion::ReadDataset(options.data, "train");
  training.labels = {training.labels.end() - images, training.labels.end()};
  training.pixels = {training.pixels.end() - images * fashion::kPixels, training.pixels.end()};
  const fashion::Dataset test = fashion::ReadDataset(options.data, "t10k");

  std::printf("learned from %ld pictures:\n", images);
  std::printf("from scratch: %.2f %%\n", Train(options, training, test, ""));
  std::printf("with TensorFlow's features: %.2f %%\n", Train(options, training, test, checkpoint));
}
