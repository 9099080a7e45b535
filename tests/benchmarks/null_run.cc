// Null runs by name: one tensor fed, one fetched, through Session::Run; timed as `troupe bench`
// times callables. A program of scripts/bench-peers.
//
//   null_run GRAPH --feed NAME --fetch NAME [--seconds S]
//
// The feed is a float scalar.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "api/session.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace {

using namespace troupe;  // NOLINT: a short program

absl::Status Measure(const std::string& file, const std::string& feed, const std::string& fetch,
                     double seconds) {
  using Clock = std::chrono::steady_clock;
  GraphDef def;
  TROUPE_RETURN_IF_ERROR(ReadGraphDef(file, &def));
  auto graph = std::make_shared<Graph>();
  TROUPE_RETURN_IF_ERROR(ImportGraphDef(def, ImportOptions(), graph.get()));
  SessionOptions options;
  options.threads = 1;
  options.optimize = false;
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(graph, options));
  const NamedTensors feeds = {{feed, Tensor::Scalar(1.0f)}};
  const std::vector<std::string> fetches = {fetch}, targets;
  std::vector<Tensor> values;
  for (int i = 0; i < 1000; ++i)
    TROUPE_RETURN_IF_ERROR(session->Run(feeds, fetches, targets, &values));
  std::vector<double> micros;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  Clock::time_point before = Clock::now();
  do {
    TROUPE_RETURN_IF_ERROR(session->Run(feeds, fetches, targets, &values));
    const Clock::time_point after = Clock::now();
    micros.push_back(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  } while (before < end);
  std::sort(micros.begin(), micros.end());
  const size_t n = micros.size();
  std::printf(
      "{\"threads\": 1, \"runs\": %zu, \"min_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f}\n",
      n, micros[0], micros[n / 2], micros[std::min(n - 1, n * 99 / 100)]);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  std::string file, feed, fetch;
  double seconds = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option.rfind("--", 0) != 0) {
      file = option;
    } else if (i + 1 < argc) {
      const std::string value = argv[++i];
      if (option == "--feed") feed = value;
      if (option == "--fetch") fetch = value;
      if (option == "--seconds") seconds = std::atof(value.c_str());
    }
  }
  if (file.empty() || feed.empty() || fetch.empty()) {
    std::cerr << "usage: null_run GRAPH --feed NAME --fetch NAME [--seconds S]\n";
    return 2;
  }
  const absl::Status status = Measure(file, feed, fetch, seconds);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
