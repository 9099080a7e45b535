// What a node costs that asks: a chain of 100 of them. A program of scripts/bench-peers.
//
//   ask_actor function|quick|actor [--seconds S]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "api/actors.h"
#include "api/program/command_line.h"
#include "api/troupe.h"
#include "devices/status_macros.h"

namespace {

using namespace troupe;  // NOLINT: a short program

constexpr int kNodes = 100;

caf::behavior Echo(caf::event_based_actor*) {
  return {[](ask_atom, std::vector<Tensor>& tensors) { return std::move(tensors); }};
}

absl::Status Measure(const std::string& kind, double seconds) {
  using Clock = std::chrono::steady_clock;
  caf::actor_system_config config;
  caf::actor_system system(config);
  absl::StatusOr<PublishedActor> published =
      kind == "function"
          ? FunctionActor("echo",
                          [](std::vector<Tensor> tensors) -> absl::StatusOr<std::vector<Tensor>> {
                            return tensors;
                          })
          : PublishActor("echo", system.spawn(Echo), {.quick = kind == "quick"});
  TROUPE_RETURN_IF_ERROR(published.status());
  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({})}), y = x;
  for (int i = 0; i < kNodes; ++i) y = ops::AskActor(s, {y}, "echo", {ElementType::kFloat})[0];
  TROUPE_RETURN_IF_ERROR(s.status());
  SessionOptions options;
  options.threads = 1;
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
  std::string kind;
  double seconds = 1;
  CommandLine line("ask_actor", "What a node costs that asks an actor.");
  line.add_option("KIND", kind, "What is asked")
      ->required()
      ->check(CLI::IsMember({"function", "quick", "actor"}));
  AddValue(&line, "--seconds S", &seconds, "Time to run for")->check(Number(0, 1e6));
  if (const std::optional<int> over = line.Read(argc, argv)) return *over;
  const absl::Status status = Measure(kind, seconds);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
