// What a MonitoredTrainingSession with four hooks (steps a second, summaries, checkpoints, NaN)
// adds to a small step: the time of its `Run` less that of the session's own, one after the other.
// A program of scripts/bench-peers; scripts/bench/monitored_peer.py does the same in TensorFlow.
//
//   monitored_step [--seconds S]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "api/program/command_line.h"
#include "api/troupe.h"
#include "devices/status_macros.h"

namespace {

using namespace troupe;  // NOLINT: a short program
using Clock = std::chrono::steady_clock;

absl::StatusOr<double> Micros(const std::function<absl::Status()>& step) {
  const Clock::time_point before = Clock::now();
  TROUPE_RETURN_IF_ERROR(step());
  return std::chrono::duration<double, std::micro>(Clock::now() - before).count();
}

absl::Status Measure(double seconds, const std::string& folder) {
  const Scope s = Scope::NewRoot();
  const ModelVariable step = GlobalStep(s);
  const Output loss = ops::Square(s, 2.0f);
  summary::Scalar(s, "loss", loss);
  Node* const train = step.AssignAdd(s, int64_t{1});
  TROUPE_RETURN_IF_ERROR(s.status());
  TROUPE_ASSIGN_OR_RETURN(
      const auto session,
      MonitoredTrainingSession(s.graph(), {.session = {.threads = 1},
                                           .checkpoint_dir = folder,
                                           .hooks = {std::make_shared<NanTensorHook>(loss)}}));
  const auto monitored = [&] { return session->Run({}, {loss}, {train}).status(); };
  const auto plain = [&] { return session->session()->Run(FeedMap{}, {loss}, {train}).status(); };
  for (int i = 0; i < 1000; ++i) {
    TROUPE_RETURN_IF_ERROR(monitored());
    TROUPE_RETURN_IF_ERROR(plain());
  }
  std::vector<double> with, without;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    TROUPE_ASSIGN_OR_RETURN(with.emplace_back(), Micros(monitored));
    TROUPE_ASSIGN_OR_RETURN(without.emplace_back(), Micros(plain));
  } while (Clock::now() < end);
  std::sort(with.begin(), with.end());
  std::sort(without.begin(), without.end());
  const size_t middle = with.size() / 2;
  std::printf(
      "{\"threads\": 1, \"runs\": %zu, \"min_us\": %.3f, \"median_us\": %.3f, \"step_us\": %.3f}\n",
      with.size(), with[0] - without[0], with[middle] - without[middle], without[middle]);
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 1;
  troupe::CommandLine line("monitored_step", "Times what monitored sessions add to a step.");
  AddValue(&line, "--seconds", &seconds, "How long")->check(troupe::Number(0, 1e6));
  if (const auto ended = line.Read(argc, argv)) return *ended;
  char folder[] = "/tmp/monitored_step_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const absl::Status status = Measure(seconds, folder);
  std::filesystem::remove_all(folder);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
