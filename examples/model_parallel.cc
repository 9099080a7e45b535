// Model parallelism: a network that is too large for one device is cut across two. The convolutions
// are on the first, the dense layers on the second; what is between them is sent on the way
// forward, and its gradient on the way back.
//
//     build/release/bin/model_parallel --in-flight 2 --steps 2000
//
// One step by itself keeps one device waiting for the other. Steps in flight at the same time,
// each run by a thread of the client with a batch of its own, keep both busy: while the dense
// layers learn from one batch, the convolutions see the next. Such concurrent steps share the
// variables: one may read what another is about to change, as in asynchronous training.
//
// The devices are two CPU devices of this process, or two tasks of a cluster:
//
//     troupe cluster cluster.json        # {"worker": ["127.0.0.1:7000", "127.0.0.1:7001"]}
//     model_parallel --master troupe://127.0.0.1:7000

#include <atomic>
#include <mutex>
#include <thread>

#include "examples/fashion_cnn.h"

int main(int argc, char** argv) {
  using namespace troupe;  // NOLINT: a tutorial
  int64_t in_flight = 2;
  std::string master;
  const fashion::Options options =
      fashion::ParseOptions(argc, argv, "One network over two devices.", [&](CommandLine& line) {
        AddValue(&line, "--in-flight N", &in_flight, "How many steps run at once")
            ->check(WholeNumber(1, 64));
        AddValue(&line, "--master troupe://HOST:PORT", &master, "Runs in a cluster");
      });
  const bool remote = !master.empty();

  const Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  const Scope lower = s.WithDevice(remote ? "/job:worker/task:0" : "/device:CPU:0");
  const Scope upper = s.WithDevice(remote ? "/job:worker/task:1" : "/device:CPU:1");

  // Variables are where their layer is, and so are gradients and updates: no weight ever moves.
  fashion::Model model = fashion::CnnInputs(s);
  const fashion::Cnn cnn(lower, upper);
  const Output features = cnn.Features(lower, model.images);
  model.logits = cnn.Logits(upper, features, model.keep);
  model.loss = fashion::Cnn::Loss(upper, model.logits, model.labels);
  ModelVariable step = GlobalStep(upper);
  AdamOptimizer optimizer(fashion::LearningRate(upper, step));
  model.train = optimizer.Minimize(upper, model.loss, step);
  Node* init = GlobalVariablesInitializer(s);
  examples::OrDie(s.status());

  SessionOptions session_options;
  session_options.target = master;
  session_options.threads = options.threads;
  session_options.num_cpu_devices = 2;
  const auto session = examples::OrDie(Session::Create(s.graph(), session_options));
  examples::OrDie(session->RunTargets({init}));

  // Sessions may be used by many threads: every call of Run is a step of its own.
  const fashion::Dataset training = fashion::ReadDataset(options.data, "train");
  std::atomic<int64_t> begun = 0;
  std::mutex mutex;
  int64_t ended = 0;
  fashion::ProgressBar progress(options.steps);
  std::vector<std::thread> clients;
  for (int64_t i = 0; i < in_flight; ++i) {
    clients.emplace_back([&, i] {
      fashion::Batches batches(training, options.batch, options.seed * 1000 + i);
      while (++begun <= options.steps) {
        const auto values = examples::OrDie(session->Run(
            fashion::Feeds(model, training, batches.Next()), {model.loss}, {model.train}));
        std::lock_guard<std::mutex> lock(mutex);
        progress.Update(++ended, values[0].scalar<float>().value());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  fashion::TestAndPrint(*session, model, fashion::ReadDataset(options.data, "t10k"), options.show);
  return 0;
}
