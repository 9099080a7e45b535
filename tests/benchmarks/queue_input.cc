// Records through queues: the time of a batch of a MetaGraph's pipeline, its queue runners running.
// A program of scripts/bench-peers; scripts/bench/queue_input_peer.py does the same in TensorFlow,
// with the same file, which scripts/bench/graphs.py has written.
//
//   queue_input FILE.meta THREADS
//
// Each line of the standard input is a number of seconds to run for; each is answered by one line
// of JSON, whose times are means: a batch may be there already.

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "api/troupe.h"
#include "devices/status_macros.h"

namespace {

using namespace troupe;  // NOLINT: a short program
using Clock = std::chrono::steady_clock;

absl::Status Measure(const std::string& file, int threads) {
  MetaGraphDef def;
  TROUPE_RETURN_IF_ERROR(ReadMetaGraph(file, &def));
  const auto graph = std::make_shared<Graph>();
  TROUPE_RETURN_IF_ERROR(ImportMetaGraph(def, {}, graph.get()).status());
  TROUPE_ASSIGN_OR_RETURN(const auto session, Session::Create(graph, {.threads = threads}));
  TROUPE_ASSIGN_OR_RETURN(const auto batch, session->MakeCallable({}, {"images", "labels"}, {}));
  Coordinator coordinator;
  TROUPE_RETURN_IF_ERROR(StartQueueRunners(*session, coordinator));
  Tensor values[2];
  for (int i = 0; i < 100; ++i) TROUPE_RETURN_IF_ERROR(batch({}, absl::MakeSpan(values)));
  double seconds = 0;
  while (std::cin >> seconds) {
    const Clock::time_point begin = Clock::now();
    double passed = 0;
    int64_t runs = 0;
    do {
      TROUPE_RETURN_IF_ERROR(batch({}, absl::MakeSpan(values)));
      ++runs;
      passed = std::chrono::duration<double>(Clock::now() - begin).count();
    } while (passed < seconds);
    const double mean = 1e6 * passed / static_cast<double>(runs);
    std::printf("{\"threads\": %d, \"runs\": %lld, \"min_us\": %.3f, \"median_us\": %.3f}\n",
                threads, static_cast<long long>(runs), mean, mean);
    std::fflush(stdout);
  }
  coordinator.RequestStop();
  return coordinator.Join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: queue_input FILE.meta THREADS\n";
    return 2;
  }
  const absl::Status status = Measure(argv[1], std::atoi(argv[2]));
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
