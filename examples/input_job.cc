// Input that a job of its own makes: it reads, shuffles and batches; workers only compute.
//
//     build/release/bin/input_job --steps 1000
//
// starts an input task, a parameter server and two workers here, each a process. The input task
// publishes a `Dataset`. Both workers run ops on that task which take its next batch; a batch
// travels to the one that asked for it, so each is learned from once. When the batches end, the
// workers' steps end with OutOfRange. In earnest every task is started by itself:
//
//     input_job --cluster cluster.json --job input --task 0 --steps 100000
//     input_job --cluster cluster.json --job ps --task 0
//     input_job --cluster cluster.json --job worker --task 0
//     input_job --cluster cluster.json --job worker --task 1

#include <cinttypes>
#include <cstdio>
#include <optional>

#include "examples/fashion_cnn.h"
#include "examples/shared/local_cluster.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::OrDie;

constexpr const char* kName = "training";  // Of the dataset, and of the iterator.

std::unique_ptr<Server> Serve(const ClusterSpec& cluster, const std::string& job, int task,
                              const fashion::Options& options) {
  ServerOptions server;
  server.cluster = cluster;
  server.job = job;
  server.task = task;
  server.threads = options.threads;
  return OrDie(Server::Start(server));
}

/// Batches of images [batch, 28, 28, 1] and labels [batch]. Bytes: they travel.
Dataset Batches(const fashion::Options& options) {
  const LabelledImages data = OrDie(ReadMnist(options.data, "train"));
  return Dataset::FromTensors({data.images, data.labels})
      .Shuffle({.window = data.labels.num_elements(), .seed = static_cast<uint64_t>(options.seed)})
      .Repeat()
      .Batch(options.batch)
      .Take(options.steps);
}

void Work(const ClusterSpec& cluster, int task, const fashion::Options& options) {
  const std::unique_ptr<Server> server = Serve(cluster, "worker", task, options);
  Scope s = Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter(cluster, task));
  s.SetGraphSeed(options.seed + task);  // Other dropout in each worker.

  // These two ops run in the input task. Its name makes the iterator the same for all workers.
  const Scope input = s.WithDevice("/job:input/task:0");
  const Output iterator = ops::DatasetIterator(input, kName, {.shared_name = kName});
  const OutputList batch = ops::DatasetIteratorNext(
      input, iterator, {ElementType::kUint8, ElementType::kInt32},
      {.output_shapes = {PartialShape({-1, fashion::kSide, fashion::kSide, 1}),
                         PartialShape({-1})}});

  fashion::Model model;
  const Output pixels = ops::Reshape(s, batch[0], {int32_t{-1}, int32_t{fashion::kPixels}});
  model.images = ops::Mul(s, ops::Cast(s, pixels, ElementType::kFloat), 1.0f / 255);
  model.labels = batch[1];
  model.keep = ops::PlaceholderWithDefault(s, 0.75f, PartialShape({}));
  const fashion::Cnn cnn(s);
  model.logits = cnn.Logits(s, cnn.Features(s, model.images), model.keep);
  model.loss = fashion::Cnn::Loss(s, model.logits, model.labels);
  ModelVariable step = GlobalStep(s);
  AdamOptimizer optimizer(fashion::LearningRate(s, step));
  model.train = optimizer.Minimize(s, model.loss, step);
  OrDie(s.status());

  const bool chief = task == 0;
  const auto session = OrDie(MonitoredTrainingSession(
      s.graph(), {.session = {.target = server->target(),
                              .device_filters = {"/job:ps", "/job:input", server->task()}},
                  .is_chief = chief,
                  .log_step_count_steps = 0}));
  fashion::ProgressBar progress(chief ? options.steps : 0);
  int64_t batches = 0;
  while (!session->should_stop()) {
    const auto values = session->Run({}, {model.loss, step.value()}, {model.train});
    if (absl::IsOutOfRange(values.status())) break;  // There are no more batches.
    OrDie(values.status());
    ++batches;
    if (chief) progress.Update(*(*values)[1].scalar<int64_t>(), *(*values)[0].scalar<float>());
  }
  std::printf("worker %d has learned from %" PRId64 " batches\n", task, batches);
  if (chief) {
    fashion::TestAndPrint(*session->session(), model, fashion::ReadDataset(options.data, "t10k"),
                          options.show);
  }
  OrDie(session->Close());
}

}  // namespace

int main(int argc, char** argv) {
  std::string file, job;
  int task = 0, workers = 2;
  fashion::Options defaults;
  defaults.steps = 1000;
  const fashion::Options options = fashion::ParseOptions(
      argc, argv, "Workers that train from the batches of an input job, each a process.",
      [&](CommandLine& line) {
        AddValue(&line, "--workers N", &workers, "Workers to start")->check(WholeNumber(1, 100));
        AddValue(&line, "--cluster FILE", &file,
                 "Is a task of this cluster: JSON, addresses by job");
        AddValue(&line, "--job input|ps|worker", &job, "The task's job")
            ->check(CLI::IsMember({"input", "ps", "worker"}));
        AddValue(&line, "--task N", &task, "The task's number")->check(WholeNumber(0, 1'000'000));
      },
      defaults);
  if (file.empty()) {
    // No task of a cluster: starts one.
    return local_cluster::Run({{"input", 1}, {"ps", 1}, {"worker", workers}},
                              {argv + 1, argv + argc});
  }
  const ClusterSpec cluster = OrDie(ClusterSpec::ReadFile(file));
  if (job == "worker") {
    Work(cluster, task, options);
    return 0;
  }
  std::optional<PublishedDataset> published;
  if (job == "input") published = OrDie(PublishDataset(kName, Batches(options)));
  OrDie(Serve(cluster, job, task, options)->JoinUntilSignal());
  return 0;
}
