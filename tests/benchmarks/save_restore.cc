// Saves variables with fsync, and restores them; or writes as many bytes to a file and syncs it,
// which is what a save cannot be quicker than. A program of scripts/bench-peers;
// scripts/bench/save_peer.py does the same in TensorFlow. Or trains a network, as it is or while an
// asynchronous save is under way.
//
//   save_restore save|restore|write COUNT ELEMENTS [--seconds S]      COUNT variables of so many
//   floats
//   save_restore train|train_saving LAYERS UNITS [--seconds S]        a step, batches of 128

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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

struct Arguments {
  std::string what;
  int64_t count = 0, elements = 0;
  double seconds = 1;
};

double Since(Clock::time_point before) {
  return std::chrono::duration<double, std::micro>(Clock::now() - before).count();
}

void Print(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("{\"threads\": 1, \"runs\": %zu, \"min_us\": %.3f, \"median_us\": %.3f}\n",
              times.size(), times.front(), times[times.size() / 2]);
}

/// Runs `work` for so long, and prints its times.
absl::Status Time(double seconds, const std::function<absl::Status()>& work) {
  std::vector<double> times;
  TROUPE_RETURN_IF_ERROR(work());
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    const Clock::time_point before = Clock::now();
    TROUPE_RETURN_IF_ERROR(work());
    times.push_back(Since(before));
  } while (Clock::now() < end);
  Print(std::move(times));
  return absl::OkStatus();
}

absl::Status Write(const std::string& path, const std::vector<float>& values, int64_t count) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  const auto bytes = static_cast<ssize_t>(values.size() * sizeof(float));
  bool good = true;
  for (int64_t i = 0; i < count && good; ++i) good = write(file, values.data(), bytes) == bytes;
  good = good && fsync(file) == 0;
  close(file);
  return good ? absl::OkStatus() : absl::ErrnoToStatus(errno, path);
}

/// A step of a network's training, the mean of ten; while saving, the first of them begins a save,
/// and there are more if it takes longer. Each such mean is one run.
absl::Status Train(const Arguments& arguments, const std::string& folder) {
  const Scope s = Scope::NewRoot();
  const int64_t units = arguments.elements;
  Output x = ops::RandomUniform(s, Tensor::Vector<int64_t>({128, units}), ElementType::kFloat);
  for (int64_t i = 0; i < arguments.count; ++i) {
    const ModelVariable w(s, {units, units}, RandomNormalInitializer(0, 0.01f),
                          "w" + std::to_string(i));
    x = ops::Relu(s, ops::MatMul(s, x, w.value()));
  }
  Node* const train = GradientDescentOptimizer(0.01f).Minimize(s, ReduceMean(s, ops::Square(s, x)));
  Node* const init = GlobalVariablesInitializer(s);
  const auto saver = std::make_shared<Saver>(s, SaveableList(), SaverOptions{.asynchronous = true});
  TROUPE_RETURN_IF_ERROR(s.status());
  TROUPE_ASSIGN_OR_RETURN(const auto session, Session::Create(s.graph(), {.threads = 1}));
  TROUPE_RETURN_IF_ERROR(session->RunTargets({init}));
  const bool saving = arguments.what == "train_saving";
  std::atomic<bool> written{true};
  AsyncCheckpointer checkpointer(
      saver, {.done = [&](const absl::StatusOr<std::string>&) { written = true; }});
  SaveOptions options;
  options.write_meta_graph = nullptr;
  for (int i = 0; i < 3; ++i) TROUPE_RETURN_IF_ERROR(session->RunTargets({train}));
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration<double>(arguments.seconds);
  do {
    const Clock::time_point before = Clock::now();
    if (saving) {
      written = false;
      TROUPE_RETURN_IF_ERROR(
          checkpointer.Save(*session, folder + "/model", std::nullopt, options).status());
    }
    int steps = 0;
    do {
      TROUPE_RETURN_IF_ERROR(session->RunTargets({train}));
      ++steps;
    } while (steps < 10 || !written);
    times.push_back(Since(before) / steps);
    TROUPE_RETURN_IF_ERROR(checkpointer.Wait());
  } while (Clock::now() < end);
  Print(std::move(times));
  return checkpointer.Close();
}

absl::Status Measure(const Arguments& arguments, const std::string& folder) {
  if (arguments.what.starts_with("train")) return Train(arguments, folder);
  const std::vector<float> values(static_cast<size_t>(arguments.elements), 0.5f);
  if (arguments.what == "write") {
    return Time(arguments.seconds, [&] { return Write(folder + "/raw", values, arguments.count); });
  }
  const Scope s = Scope::NewRoot();
  for (int64_t i = 0; i < arguments.count; ++i) {
    ModelVariable(s, {arguments.elements}, ConstantInitializer(0.5), "v" + std::to_string(i));
  }
  Node* const init = GlobalVariablesInitializer(s);
  Saver saver(s);
  TROUPE_RETURN_IF_ERROR(s.status());
  TROUPE_ASSIGN_OR_RETURN(const auto session, Session::Create(s.graph(), {.threads = 1}));
  TROUPE_RETURN_IF_ERROR(session->RunTargets({init}));
  SaveOptions options;
  options.write_meta_graph = nullptr;
  const auto save = [&] {
    return saver.Save(*session, folder + "/model", std::nullopt, options).status();
  };
  if (arguments.what == "save") return Time(arguments.seconds, save);
  TROUPE_RETURN_IF_ERROR(save());
  return Time(arguments.seconds, [&] { return saver.Restore(*session, folder + "/model"); });
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  troupe::CommandLine line("save_restore", "Times saving and restoring.");
  line.add_option("WHAT", arguments.what)
      ->required()
      ->check(CLI::IsMember({"save", "restore", "write", "train", "train_saving"}));
  line.add_option("COUNT", arguments.count)->required()->check(troupe::WholeNumber(1, 1'000'000));
  line.add_option("ELEMENTS", arguments.elements)
      ->required()
      ->check(troupe::WholeNumber(1, int64_t{1} << 30));
  AddValue(&line, "--seconds", &arguments.seconds, "How long")->check(troupe::Number(0, 1e6));
  if (const auto ended = line.Read(argc, argv)) return *ended;
  // On a disk: /tmp may be memory.
  char folder[] = "build/save_restore_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const absl::Status status = Measure(arguments, folder);
  std::filesystem::remove_all(folder);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
