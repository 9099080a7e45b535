#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "api/cli/cli.h"
#include "devices/npy.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe::cli {

absl::StatusOr<Prepared> Prepare(const Options& options) {
  GraphDef def;
  TROUPE_RETURN_IF_ERROR(ReadGraphDef(options.graph, &def));
  auto graph = std::make_shared<Graph>();
  TROUPE_RETURN_IF_ERROR(ImportGraphDef(def, ImportOptions(), graph.get()));
  def.Clear();

  Prepared prepared;
  SessionOptions session_options;
  session_options.threads = options.threads;
  session_options.optimize = options.optimize;
  session_options.target = options.master;
  session_options.tls_certificate = options.tls_cert;
  session_options.tls_key = options.tls_key;
  session_options.tls_authority = options.tls_ca;
  TROUPE_ASSIGN_OR_RETURN(prepared.session, Session::Create(graph, session_options));
  if (options.timeout) prepared.run_options.timeout = absl::Seconds(*options.timeout);

  std::vector<std::string> feeds, fetches;
  for (const auto& [name, text] : options.feeds) {
    TROUPE_ASSIGN_OR_RETURN(Output output, graph->FindOutput(name));
    absl::StatusOr<Tensor> value = ParseValue(text, output.type());
    if (!value.ok()) {
      return absl::Status(value.status().code(),
                          StrCat("feed ", name, ": ", std::string(value.status().message())));
    }
    feeds.push_back(name);
    prepared.feeds.push_back(*std::move(value));
  }
  for (const auto& fetch : options.fetches) fetches.push_back(fetch.first);
  for (const std::string& init : options.init) {
    TROUPE_RETURN_IF_ERROR(prepared.session->Run(prepared.run_options, {}, {}, {init}, nullptr));
  }
  TROUPE_ASSIGN_OR_RETURN(prepared.step,
                          prepared.session->MakeCallable(feeds, fetches, options.targets));
  return prepared;
}

absl::Status RunCommand(const Options& options) {
  TROUPE_ASSIGN_OR_RETURN(Prepared prepared, Prepare(options));
  std::vector<Tensor> values(options.fetches.size());
  for (int64_t i = 0; i < options.steps; ++i) {
    TROUPE_RETURN_IF_ERROR(
        prepared.step(prepared.feeds, absl::MakeSpan(values), prepared.run_options));
  }
  if (options.steps == 0) return absl::OkStatus();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [name, file] = options.fetches[i];
    if (!file.empty()) {
      TROUPE_RETURN_IF_ERROR(WriteNpy(values[i], file));
      continue;
    }
    std::string dims;
    for (int64_t size : values[i].shape().dims()) dims += StrCat(dims.empty() ? "" : ",", size);
    std::cout << name << " " << ElementTypeName(values[i].type()) << " [" << dims << "] "
              << ToJson(values[i]) << "\n";
  }
  return absl::OkStatus();
}

namespace {

/// Milliseconds since the kernel started this process.
double MillisecondsSinceStart() {
  std::ifstream stat("/proc/self/stat");
  std::stringstream content;
  content << stat.rdbuf();
  const std::string text = content.str();
  // The program's name, in parentheses, may hold anything; the start time is field 22.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double started =
      std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return 1e3 *
         (static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - started);
}

/// The largest resident size of this process, in KiB. (getrusage would count what the parent held
/// before exec.)
int64_t PeakResidentKb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoll(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

}  // namespace

absl::Status BenchCommand(const Options& options) {
  using Clock = std::chrono::steady_clock;
  TROUPE_ASSIGN_OR_RETURN(Prepared prepared, Prepare(options));
  std::vector<Tensor> values(options.fetches.size());
  auto run = [&] {
    return prepared.step(prepared.feeds, absl::MakeSpan(values), prepared.run_options);
  };
  TROUPE_RETURN_IF_ERROR(run());
  const double startup_ms = MillisecondsSinceStart();

  // Warm-up: a tenth of the time, at least until costs have been measured.
  const auto seconds = [](double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  };
  const Clock::time_point warm = Clock::now() + seconds(0.1 * options.seconds);
  for (int i = 0; i < 5 || Clock::now() < warm; ++i) TROUPE_RETURN_IF_ERROR(run());

  std::vector<double> micros;
  const Clock::time_point end = Clock::now() + seconds(options.seconds);
  Clock::time_point before = Clock::now();
  do {
    TROUPE_RETURN_IF_ERROR(run());
    const Clock::time_point after = Clock::now();
    micros.push_back(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  } while (before < end);
  std::sort(micros.begin(), micros.end());
  const size_t n = micros.size();
  std::string name = options.graph.substr(options.graph.rfind('/') + 1);
  name = name.substr(0, name.find('.'));
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::printf(
      "{\"name\": \"%s\", \"threads\": %d, \"runs\": %zu, \"nodes\": %d, \"min_us\": %.3f, "
      "\"median_us\": %.3f, \"p99_us\": %.3f, \"startup_ms\": %.1f, \"resident_kb\": %" PRId64
      "}\n",
      name.c_str(), threads, n, prepared.step.num_nodes(), micros[0], micros[n / 2],
      micros[std::min(n - 1, n * 99 / 100)], startup_ms, PeakResidentKb());
  return absl::OkStatus();
}

}  // namespace troupe::cli
