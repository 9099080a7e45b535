// A training that can be killed at any moment and goes on where it was.
//
//     build/release/bin/resumable_cnn --dir /tmp/cnn --steps 20000       # kill it, and start it
//     again build/release/bin/resumable_cnn --dir /tmp/cnn --steps 600 --kills 5
//
// MonitoredTrainingSession restores the last checkpoint of the folder, with the positions of the
// random numbers that dropout draws; the batches are a function of the global step. So the curve of
// a training that was killed is that of one that never was, bit for bit. With --kills the program
// shows it: it runs itself in another process, kills that at random moments, and compares the last
// losses with those of an undisturbed training.

#include <troupe/troupe.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "api/program/child_process.h"
#include "examples/fashion_cnn.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::OrDie;

/// Trains to the step `options.steps`, and gives the last step's loss.
float Train(const fashion::Options& options, const std::string& folder, int64_t save_every,
            bool quiet) {
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  fashion::Model model = fashion::CnnInputs(s);
  const fashion::Cnn cnn(s);
  model.logits = cnn.Logits(s, cnn.Features(s, model.images), model.keep);
  model.loss = fashion::Cnn::Loss(s, model.logits, model.labels);
  ModelVariable step = GlobalStep(s);
  AdamOptimizer optimizer(fashion::LearningRate(s, step));
  model.train = optimizer.Minimize(s, model.loss, step);
  summary::Scalar(s, "loss", model.loss);  // TensorBoard shows it.
  OrDie(s.status());

  Hooks hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(options.steps)),
                 std::make_shared<NanTensorHook>(model.loss)};
  if (!quiet) {
    hooks.push_back(std::make_shared<ProgressHook>(
        ProgressHook::Options{.last_step = options.steps, .loss = model.loss}));
  }
  const auto session =
      OrDie(MonitoredTrainingSession(s.graph(), {.session = {.threads = options.threads},
                                                 .checkpoint_dir = folder,
                                                 .hooks = hooks,
                                                 .save_checkpoints = {.steps = save_every},
                                                 .log_step_count_steps = 0}));
  const int64_t begin = OrDie(OrDie(session->session()->Run({step.value()}))[0].scalar<int64_t>());
  if (!quiet && begin > 0) std::printf("goes on after step %" PRId64 "\n", begin);

  const fashion::Dataset training = fashion::ReadDataset(options.data, "train");
  fashion::Batches batches(training, options.batch, options.seed);
  for (int64_t i = 0; i < begin; ++i) batches.Next();
  float loss = 0;
  while (!session->should_stop()) {
    const auto values = OrDie(
        session->Run(fashion::Feeds(model, training, batches.Next()), {model.loss}, {model.train}));
    loss = OrDie(values[0].scalar<float>());
  }
  OrDie(session->Close());
  return loss;
}

/// Runs itself until it comes to its end, and kills it `kills` times before, after a random time of
/// up to `patience`; what it prints last.
std::string Disturb(std::vector<std::string> arguments, int64_t kills, absl::Duration patience,
                    int64_t seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  int64_t killed = 0;
  while (true) {
    ChildProcess training = OrDie(ChildProcess::Start({.arguments = arguments, .output = true}));
    if (killed < kills) {
      // From a start that has read nothing yet to a save that is under way.
      const double part = std::uniform_real_distribution<double>()(random);
      if (!training.Wait(part * patience).has_value()) {
        training.End(SIGKILL);
        ++killed;
        continue;
      }
    }
    std::string output = training.Rest(absl::Minutes(30));
    const ExitStatus status = training.End(SIGKILL, absl::Seconds(60));
    if (!status.ok()) examples::Die(absl::InternalError("the training " + status.ToString()));
    std::printf("killed %" PRId64 " times\n", killed);
    return output;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  int64_t save_every = 100, kills = 0;
  bool quiet = false;
  fashion::Options defaults;
  defaults.steps = 2000;
  const fashion::Options options = fashion::ParseOptions(
      argc, argv, "A training that can be killed at any moment and goes on where it was.",
      [&](CommandLine& line) {
        AddValue(&line, "--dir DIR", &folder, "Where checkpoints and summaries are")->required();
        AddValue(&line, "--save-every N", &save_every, "Steps between checkpoints")
            ->check(WholeNumber(1, 1'000'000));
        AddValue(&line, "--kills N", &kills, "Kills itself so often, and compares")
            ->check(WholeNumber(0, 1'000'000));
        line.add_flag("--quiet", quiet, "Shows no progress");
      },
      defaults);
  if (kills == 0) {
    // Hexadecimal: every bit counts.
    std::printf("last loss: %a\n", Train(options, folder, save_every, quiet));
    return 0;
  }

  const std::string whole = folder + "/undisturbed", disturbed = folder + "/killed";
  std::filesystem::remove_all(whole);
  std::filesystem::remove_all(disturbed);
  const auto run = [&](const std::string& where, int64_t times, absl::Duration patience) {
    std::vector<std::string> arguments(argv, argv + argc);
    arguments[0] = ThisProgram();
    // The last of an option counts.
    arguments.insert(arguments.end(), {"--dir", where, "--kills", "0", "--quiet"});
    return Disturb(arguments, times, patience, options.seed);
  };
  const absl::Time begin = absl::Now();
  const std::string expected = run(whole, 0, absl::ZeroDuration());
  // So that it does not come to its end before.
  const absl::Duration patience = 1.5 * (absl::Now() - begin) / static_cast<double>(kills);
  const std::string got = run(disturbed, kills, patience);
  std::printf("undisturbed: %skilled:      %s%s\n", expected.c_str(), got.c_str(),
              expected == got ? "the same bits" : "NOT the same bits");
  return expected == got ? 0 : 1;
}
