// A network trained by several processes: parameter servers hold the variables, workers compute
// gradients, each of its own batches.
//
//     build/release/bin/distributed_cnn --mode sync --steps 2000 --batch 50
//
// starts a parameter server and two workers here. In earnest, every task of the cluster's file is a
// process of its own, on as many machines as you like:
//
//     distributed_cnn --cluster cluster.json --job ps --task 0
//     distributed_cnn --cluster cluster.json --job worker --task 0 --mode sync
//     distributed_cnn --cluster cluster.json --job worker --task 1 --mode sync
//
// --mode async: every worker updates the variables by itself, without regard to the others.
// --mode sync: an update is the mean of what the workers found; with --backup 1 that of the first
// ones, so that nobody waits for the slowest worker or for one that has died.
//
// What happens when a worker dies? See for yourself: with --die-at 500 worker 1 (--dying) kills
// itself at step 500, and is started again.

#include <signal.h>

#include <iostream>

#include "examples/fashion_cnn.h"
#include "examples/shared/local_cluster.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial

/// A step that waits longer for others than this has failed.
constexpr absl::Duration kStepTimeout = absl::Seconds(60);

struct Settings {
  fashion::Options common;
  ClusterSpec cluster;
  int task = 0, backup = 0, threads = 1;
  bool sync = false;
  int64_t die_at = 0;

  int workers() const { return cluster.num_tasks("worker"); }
};

/// What a worker needs of its graph.
struct Replica {
  fashion::Model model;
  Output step;  ///< The number of updates so far, by all workers, after this step.
  Node* init = nullptr;
  Output uninitialized;
  std::unique_ptr<SyncReplicasOptimizer> sync;  ///< nullptr: asynchronous.
};

/// Every worker builds the same graph; only the device of what it computes differs.
Replica BuildReplica(const Settings& settings, const Scope& s) {
  Replica replica;
  fashion::Model& model = replica.model;
  model = fashion::CnnInputs(s);
  const fashion::Cnn cnn(s);
  model.logits = cnn.Logits(s, cnn.Features(s, model.images), model.keep);
  model.loss = fashion::Cnn::Loss(s, model.logits, model.labels);

  ModelVariable step = GlobalStep(s);
  auto adam = std::make_unique<AdamOptimizer>(fashion::LearningRate(s, step));
  if (settings.sync) {
    replica.sync = std::make_unique<SyncReplicasOptimizer>(
        std::move(adam),
        SyncReplicasOptions{.replicas_to_aggregate = settings.workers() - settings.backup,
                            .total_num_replicas = settings.workers()});
    model.train = replica.sync->Minimize(s, model.loss, step);
  } else {
    model.train = adam->Minimize(s, model.loss, step);
  }
  replica.step = step.Read(s.WithControlDependencies({Output(model.train)}));
  replica.init = GlobalVariablesInitializer(s);
  replica.uninitialized = ReportUninitializedVariables(s);
  examples::OrDie(s.status());
  return replica;
}

std::unique_ptr<Server> Serve(const Settings& settings, const std::string& job) {
  ServerOptions options;
  options.cluster = settings.cluster;
  options.job = job;
  options.task = settings.task;
  options.threads = settings.threads;
  return examples::OrDie(Server::Start(options));
}

int Work(const Settings& settings) {
  const bool chief = settings.task == 0;
  std::unique_ptr<Server> server = Serve(settings, "worker");

  // Variables go to the parameter servers, where there is least so far; all else to this worker.
  Scope s = Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter(
      settings.cluster, settings.task, GreedyLoadBalancing(settings.cluster.num_tasks("ps"))));
  s.SetGraphSeed(settings.common.seed + settings.task);  // Other dropout in each worker.
  const Replica replica = BuildReplica(settings, s);

  // The session depends on the parameter servers and on this worker, not on the other workers. The
  // chief initializes the variables, the others wait for it.
  RecoverableSessionOptions options;
  options.session.target = server->target();
  options.session.device_filters = {"/job:ps", server->task()};
  options.uninitialized = replica.uninitialized;
  options.init = chief ? replica.init : nullptr;
  if (settings.sync) options.local_init = replica.sync->local_init();
  const auto session = examples::OrDie(RecoverableSession::Create(s.graph(), options));

  // Synchronous training: the chief also makes the updates of what all workers have found.
  std::unique_ptr<BackgroundSteps> updates;
  if (settings.sync && chief) {
    RecoverableSessionOptions chief_options = options;
    chief_options.init = nullptr;
    chief_options.local_init = replica.sync->chief_init();
    updates =
        examples::OrDie(BackgroundSteps::Start(s.graph(), chief_options, replica.sync->sync()));
  }

  const fashion::Dataset training = fashion::ReadDataset(settings.common.data, "train");
  fashion::Batches batches(training, settings.common.batch,
                           settings.common.seed * 1000 + settings.task);
  fashion::ProgressBar progress(chief ? settings.common.steps : 0);
  const absl::Time begin = absl::Now();
  for (int64_t step = 0; step < settings.common.steps;) {
    if (settings.die_at > 0 && step >= settings.die_at) raise(SIGKILL);
    const FeedMap feeds = fashion::Feeds(replica.model, training, batches.Next());
    RunOptions run;
    run.timeout = kStepTimeout;
    double loss = 0;
    // Runs again, in a new session, if a parameter server was lost on the way.
    const absl::Status status = session->Run([&](Session& current) {
      auto values =
          current.Run(feeds, {replica.model.loss, replica.step}, {replica.model.train}, run);
      if (!values.ok()) return values.status();
      loss = (*values)[0].scalar<float>().value();
      step = (*values)[1].scalar<int64_t>().value();
      return absl::OkStatus();
    });
    if (absl::IsDeadlineExceeded(status) && settings.sync) {
      std::cerr << "there was no update; too few workers may be running\n";
      if (updates != nullptr) std::cerr << "the chief's updates: " << updates->status() << "\n";
    }
    examples::OrDie(status);
    if (chief) progress.Update(std::min(step, settings.common.steps), loss);
  }
  if (!chief) return 0;

  std::fprintf(stderr, "\ntrained for %.1f s in %d session%s\n",
               absl::ToDoubleSeconds(absl::Now() - begin), session->num_sessions(),
               session->num_sessions() == 1 ? "" : "s");
  if (updates != nullptr) updates->Stop().IgnoreError();
  const absl::Status tested = session->Run([&](Session& current) {
    fashion::TestAndPrint(current, replica.model,
                          fashion::ReadDataset(settings.common.data, "t10k"), settings.common.show);
    return absl::OkStatus();
  });
  examples::OrDie(tested);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::string mode = "async", file, job;
  int ps = 1, workers = 2, dying = 1;
  settings.common = fashion::ParseOptions(
      argc, argv, "A network trained by parameter servers and workers, each a process.",
      [&](CommandLine& line) {
        AddValue(&line, "--mode async|sync", &mode, "Whether workers wait for each other")
            ->check(CLI::IsMember({"async", "sync"}));
        AddValue(&line, "--backup N", &settings.backup, "sync: workers that nobody waits for")
            ->check(WholeNumber(0, 1000));
        AddValue(&line, "--ps N", &ps, "Parameter servers to start")->check(WholeNumber(1, 100));
        AddValue(&line, "--workers N", &workers, "Workers to start")->check(WholeNumber(1, 100));
        AddValue(&line, "--die-at STEP", &settings.die_at,
                 "The step at which a worker kills itself")
            ->check(WholeNumber(0, 1'000'000'000));
        AddValue(&line, "--dying N", &dying, "Which worker that is")->check(WholeNumber(0, 100));
        AddValue(&line, "--cluster FILE", &file,
                 "Is a task of this cluster: JSON, addresses by job");
        AddValue(&line, "--job ps|worker", &job, "The task's job")
            ->check(CLI::IsMember({"ps", "worker"}));
        AddValue(&line, "--task N", &settings.task, "The task's number")
            ->check(WholeNumber(0, 1'000'000));
      });
  if (file.empty()) {
    // No task of a cluster: starts one.
    std::vector<std::string> arguments(argv + 1, argv + argc);
    arguments.insert(arguments.end(), {"--die-at", "0"});
    return local_cluster::Run({{"ps", ps}, {"worker", workers}}, arguments, dying,
                              {"--die-at", std::to_string(settings.die_at)});
  }
  settings.cluster = examples::OrDie(ClusterSpec::ReadFile(file));
  settings.sync = mode == "sync";
  settings.threads = settings.common.threads == 0 ? 1 : settings.common.threads;
  if (settings.backup >= settings.workers() && settings.workers() > 0) {
    std::cerr << "--backup must be less than the number of workers\n";
    return 2;
  }
  if (job == "worker") return Work(settings);
  examples::OrDie(Serve(settings, "ps")->JoinUntilSignal());
  return 0;
}
