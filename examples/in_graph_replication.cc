// In-graph replication: one client, one graph, several towers. Each tower computes the gradients of
// its part of a batch on a device of its own; the variables, which they share, are updated once by
// the mean. So a step has the result of a step of one device with the whole batch.
//
//     build/release/bin/in_graph_replication --towers 2 --steps 2000
//
// has two CPU devices of this process as towers' devices. With tasks of a cluster instead:
//
//     troupe cluster cluster.json        # {"ps": ["127.0.0.1:7000"], "worker": ["...", "..."]}
//     in_graph_replication --towers 2 --master troupe://127.0.0.1:7000

#include "examples/fashion_cnn.h"

int main(int argc, char** argv) {
  using namespace troupe;  // NOLINT: a tutorial
  int towers = 2;
  std::string master;
  const fashion::Options options = fashion::ParseOptions(
      argc, argv, "One graph with several towers, each on a device.", [&](CommandLine& line) {
        AddValue(&line, "--towers N", &towers, "Into how many parts a batch is cut")
            ->check(WholeNumber(1, 64));
        AddValue(&line, "--master troupe://HOST:PORT", &master, "Runs in a cluster");
      });
  const bool remote = !master.empty();

  const Scope s = Scope::NewRoot().WithDevice(remote ? "/job:ps/task:0" : "/device:CPU:0");
  s.SetGraphSeed(options.seed);
  fashion::Model model = fashion::CnnInputs(s);
  const fashion::Cnn cnn(s);

  // The batch is cut into as many parts as there are towers: rows i, i + towers, ...
  std::vector<Output> losses;
  std::vector<std::vector<GradientAndVariable>> gradients;
  ModelVariable step = GlobalStep(s);
  AdamOptimizer optimizer(fashion::LearningRate(s, step));
  for (int i = 0; i < towers; ++i) {
    const std::string device = (remote ? "/job:worker/task:" : "/device:CPU:") + std::to_string(i);
    const Scope tower = s.NewSubScope("tower").WithDevice("").WithDevice(device);
    const Output images =
        ops::StridedSlice(tower, model.images, {i}, {0}, {towers}, {.end_mask = 1});
    const Output labels =
        ops::StridedSlice(tower, model.labels, {i}, {0}, {towers}, {.end_mask = 1});
    const Output logits = cnn.Logits(tower, cnn.Features(tower, images), model.keep);
    losses.push_back(fashion::Cnn::Loss(tower, logits, labels));
    // Gradients are computed on the devices of what they are gradients of.
    gradients.push_back(optimizer.ComputeGradients(tower, losses.back()));
    if (i == 0) {
      // One tower is enough to test: it is given all of the images.
      model.logits = cnn.Logits(tower, cnn.Features(tower, model.images), model.keep);
    }
  }

  // The means, beside the variables.
  std::vector<GradientAndVariable> means;
  for (size_t v = 0; s.ok() && v < gradients[0].size(); ++v) {
    std::vector<Output> parts;
    for (const auto& of_tower : gradients) parts.push_back(of_tower[v].first.values);
    const Output sum = ops::AddN(s, parts);
    means.emplace_back(Gradient(ops::Mul(s, sum, 1.0f / static_cast<float>(towers))),
                       gradients[0][v].second);
  }
  model.train = optimizer.ApplyGradients(s, means, step);
  model.loss = ops::Mul(s, ops::AddN(s, losses), 1.0f / static_cast<float>(towers));

  SessionOptions session;
  session.target = master;
  session.num_cpu_devices = remote ? 1 : towers;
  return fashion::TrainAndTest(s, model, options, session);
}
