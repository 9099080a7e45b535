// TensorFlow through its C API, timed as `troupe bench` times Troupe: the peer of
// scripts/bench-peers.
//
//   tensorflow_peer LIBRARY GRAPH [--init NODE]... [--feed NAME=FILE.npy]... [--fetch NAME]...
//                   [--target NODE]... [--threads N] [--caller-runs] [--no-optimize]
//                   (--seconds S | --steps N | --slices)
//
// LIBRARY is the libtensorflow_cc.so.2 of the pip package. A run is timed at the caller. --slices:
// each line of the standard input is a number of seconds to run for; each is answered by one line
// of JSON. --caller-runs: nodes run on the calling thread (TensorFlow's
// inter_op_parallelism_threads = -1) instead of a pool of N threads.

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "scripts/bench/tensorflow_api.h"

namespace {

/// Milliseconds since the kernel started this process.
double MillisecondsSinceStart() {
  const std::string text = ReadFile("/proc/self/stat");
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double started = std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return 1e3 *
         (static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - started);
}

long PeakResidentKb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtol(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc < 3) Die("usage: tensorflow_peer LIBRARY GRAPH [options]");
  std::vector<std::string> init, feeds, fetches, targets;
  int threads = 1;
  bool optimize = true, caller_runs = false, slices = false;
  double seconds = 2;
  int64_t steps = 0;
  for (int i = 3; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) Die(option + " needs a value");
      return argv[++i];
    };
    if (option == "--init")
      init.push_back(value());
    else if (option == "--feed")
      feeds.push_back(value());
    else if (option == "--fetch")
      fetches.push_back(value());
    else if (option == "--target")
      targets.push_back(value());
    else if (option == "--threads")
      threads = std::stoi(value());
    else if (option == "--seconds")
      seconds = std::stod(value());
    else if (option == "--steps")
      steps = std::stoll(value());
    else if (option == "--slices")
      slices = true;
    else if (option == "--no-optimize")
      optimize = false;
    else if (option == "--caller-runs")
      caller_runs = true;
    else
      Die("unknown option " + option);
  }

  setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
  const Api api = Load(argv[1]);
  TF_Status* status = api.NewStatus();
  const auto check = [&](const char* what) {
    if (api.GetCode(status) != 0) Die(std::string(what) + ": " + api.Message(status));
  };
  TF_Graph* graph = api.NewGraph();
  {
    const std::string file = ReadFile(argv[2]);
    const TF_Buffer buffer = {file.data(), file.size(), nullptr};
    api.GraphImportGraphDef(graph, &buffer, api.NewImportGraphDefOptions(), status);
    check("import");
  }
  TF_SessionOptions* options = api.NewSessionOptions();
  const std::string config = Config(threads, caller_runs, optimize);
  api.SetConfig(options, config.data(), config.size(), status);
  check("config");
  TF_Session* session = api.NewSession(graph, options, status);
  check("session");

  const auto operation = [&](const std::string& name) {
    TF_Operation* found = api.GraphOperationByName(graph, name.substr(0, name.find(':')).c_str());
    if (found == nullptr) Die("no node " + name);
    return found;
  };
  const auto output = [&](const std::string& name) {
    const size_t colon = name.find(':');
    return TF_Output{operation(name),
                     colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1))};
  };
  for (const std::string& name : init) {
    const TF_Operation* target = operation(name);
    api.SessionRun(session, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &target, 1, nullptr,
                   status);
    check("init");
  }
  std::vector<TF_Output> feed_outputs, fetch_outputs;
  std::vector<TF_Tensor*> feed_tensors, values(fetches.size());
  std::vector<const TF_Operation*> target_operations;
  for (const std::string& feed : feeds) {
    const size_t equals = feed.find('=');
    feed_outputs.push_back(output(feed.substr(0, equals)));
    feed_tensors.push_back(ReadNpy(api, feed.substr(equals + 1)));
  }
  for (const std::string& fetch : fetches) fetch_outputs.push_back(output(fetch));
  for (const std::string& target : targets) target_operations.push_back(operation(target));

  const auto run = [&] {
    api.SessionRun(session, nullptr, feed_outputs.data(), feed_tensors.data(),
                   static_cast<int>(feeds.size()), fetch_outputs.data(), values.data(),
                   static_cast<int>(fetches.size()), target_operations.data(),
                   static_cast<int>(targets.size()), nullptr, status);
    if (api.GetCode(status) != 0) check("run");
    for (TF_Tensor* value : values) api.DeleteTensor(value);
  };
  run();
  const double startup_ms = MillisecondsSinceStart();

  const auto slice = [&](double length, int64_t count) {
    const auto duration =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(length));
    const Clock::time_point warm = Clock::now() + duration / 10;
    if (count == 0) {
      for (int i = 0; i < 5 || Clock::now() < warm; ++i) run();
    }
    std::vector<double> micros;
    const Clock::time_point end = Clock::now() + duration;
    Clock::time_point before = Clock::now();
    do {
      run();
      const Clock::time_point after = Clock::now();
      micros.push_back(std::chrono::duration<double, std::micro>(after - before).count());
      before = after;
    } while (count > 0 ? static_cast<int64_t>(micros.size()) < count - 1 : before < end);
    std::sort(micros.begin(), micros.end());
    const size_t n = micros.size();
    std::printf(
        "{\"threads\": %d, \"runs\": %zu, \"min_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f, "
        "\"startup_ms\": %.1f, \"resident_kb\": %ld}\n",
        threads, n, micros[0], micros[n / 2], micros[std::min(n - 1, n * 99 / 100)], startup_ms,
        PeakResidentKb());
    std::fflush(stdout);
  };
  if (slices) {
    for (std::string line; std::getline(std::cin, line);) slice(std::stod(line), 0);
  } else {
    slice(seconds, steps);
  }
  // No clean-up: the threads of the library may still be at work.
  std::fflush(stdout);
  _exit(0);
}
