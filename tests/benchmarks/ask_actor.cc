// What a node costs that asks: a chain of 100 of them. A program of scripts/bench-peers.
//
//   ask_actor function|quick|actor|remote [--seconds S]
//
// `remote`: a quick actor of another process, which this program starts.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/actors.h"
#include "api/cluster.h"
#include "api/program/child_process.h"
#include "api/program/command_line.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/api/free_port.h"

namespace {

using namespace troupe;  // NOLINT: a short program

constexpr int kNodes = 100;

caf::behavior Echo(caf::event_based_actor*) {
  return {[](ask_atom, std::vector<Tensor>& tensors) { return std::move(tensors); }};
}

/// The process of the actor that is asked from elsewhere, until nothing more can be read.
absl::Status Answer(const std::string& target) {
  TROUPE_ASSIGN_OR_RETURN(const auto node, ClusterNode::Join({.target = target}));
  TROUPE_ASSIGN_OR_RETURN(const PublishedActor published,
                          node->Publish("echo", node->system().spawn(Echo), {.quick = true}));
  std::cout << "ready" << std::endl;
  std::string end;
  std::getline(std::cin, end);
  return absl::OkStatus();
}

absl::Status Measure(const std::string& kind, double seconds) {
  using Clock = std::chrono::steady_clock;
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));  // The other one polls every 50 us.
  caf::actor_system system(config);
  SessionOptions options;
  options.threads = 1;
  std::unique_ptr<Server> server;
  std::optional<ChildProcess> process;
  absl::StatusOr<PublishedActor> published = PublishedActor(nullptr);
  if (kind == "function") {
    published = FunctionActor(
        "echo",
        [](std::vector<Tensor> tensors) -> absl::StatusOr<std::vector<Tensor>> { return tensors; });
  } else if (kind == "remote") {
    TROUPE_ASSIGN_OR_RETURN(
        const ClusterSpec cluster,
        ClusterSpec::Parse(StrCat(R"({"asking": ["127.0.0.1:)", FreePort(), R"("]})")));
    TROUPE_ASSIGN_OR_RETURN(server,
                            Server::Start({.cluster = cluster, .job = "asking", .threads = 1}));
    options.target = server->target();
    TROUPE_ASSIGN_OR_RETURN(
        process,
        ChildProcess::Start({.arguments = {ThisProgram(), kind, "--target", server->target()},
                             .input = true,
                             .output = true}));
    if (process->Line(absl::Seconds(20)) != "ready") return absl::UnavailableError("no actor");
  } else {
    published = PublishActor("echo", system.spawn(Echo), {.quick = kind == "quick"});
  }
  TROUPE_RETURN_IF_ERROR(published.status());
  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({})}), y = x;
  for (int i = 0; i < kNodes; ++i) y = ops::AskActor(s, {y}, "echo", {ElementType::kFloat})[0];
  TROUPE_RETURN_IF_ERROR(s.status());
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                          Session::Create(s.graph(), options));
  const FeedMap feeds = {{x, Tensor::Scalar(1.0f)}};
  std::vector<double> micros;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    const Clock::time_point before = Clock::now();
    TROUPE_RETURN_IF_ERROR(session->Run(feeds, {y}).status());
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  } while (Clock::now() < end);
  std::sort(micros.begin(), micros.end());
  const size_t n = micros.size();
  std::printf(
      "{\"threads\": 1, \"runs\": %zu, \"min_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f}\n",
      n, micros[0], micros[n / 2], micros[std::min(n - 1, n * 99 / 100)]);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  std::string kind, target;
  double seconds = 1;
  CommandLine line("ask_actor", "What a node costs that asks an actor.");
  line.add_option("KIND", kind, "What is asked")
      ->required()
      ->check(CLI::IsMember({"function", "quick", "actor", "remote"}));
  AddValue(&line, "--target T", &target, "Publish the actor in the cluster of this task");
  AddValue(&line, "--seconds S", &seconds, "Time to run for")->check(Number(0, 1e6));
  if (const std::optional<int> over = line.Read(argc, argv)) return *over;
  const absl::Status status = target.empty() ? Measure(kind, seconds) : Answer(target);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
