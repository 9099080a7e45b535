// A convolutional network on Fashion-MNIST.
//
//     build/release/bin/fashion_cnn --steps 6000 --show 8
//
// With --records FILE the training images are written to a record file of Examples, and a `Dataset`
// reads them from there.
//
// The network is in fashion_cnn.h. The same one is trained by several processes in
// distributed_cnn.cc, on several devices in in_graph_replication.cc and model_parallel.cc.

#include "examples/fashion_cnn.h"

int main(int argc, char** argv) {
  using namespace troupe;  // NOLINT: a tutorial
  std::string records;
  fashion::Options options = fashion::ParseOptions(
      argc, argv, "A convolutional network on Fashion-MNIST.", [&](CommandLine& line) {
        AddValue(&line, "--records FILE", &records,
                 "Writes the images there, and reads them again");
      });
  options.records = records;
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);

  fashion::Model model = fashion::CnnInputs(s);
  const fashion::Cnn cnn(s);
  model.logits = cnn.Logits(s, cnn.Features(s, model.images), model.keep);
  model.loss = fashion::Cnn::Loss(s, model.logits, model.labels);

  ModelVariable step = GlobalStep(s);
  AdamOptimizer optimizer(fashion::LearningRate(s, step));
  model.train = optimizer.Minimize(s, model.loss, step);

  return fashion::TrainAndTest(s, model, options);
}
