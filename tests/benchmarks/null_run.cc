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

#include "api/program/command_line.h"
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
  troupe::CommandLine line("null_run", "Times the caller's part of a step.");
  line.add_option("GRAPH", file, "A GraphDef")->required();
  AddValue(&line, "--feed NAME", &feed, "A scalar that is fed")->required();
  AddValue(&line, "--fetch NAME", &fetch, "What is fetched")->required();
  AddValue(&line, "--seconds", &seconds, "How long")->check(troupe::Number(0, 1e6));
  if (const auto ended = line.Read(argc, argv)) return *ended;
  const absl::Status status = Measure(file, feed, fetch, seconds);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
