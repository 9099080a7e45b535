// Steps of a cluster of processes on this machine, told apart by what they touch.
//
//   cluster_benchmark [--seconds S] [--workers N] [ROW...]
//
// One process per task (forked before anything else), tasks /job:ps/task:0 and /job:worker/task:0
// to N-1. This process is worker 0 and its own client; `remote` rows have a client that is not in
// the master's process. Prints median and best of each row.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/cluster.h"
#include "api/program/child_process.h"
#include "api/program/command_line.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"

namespace {

using namespace troupe;  // NOLINT: a short program
using Clock = std::chrono::steady_clock;

double seconds = 1;
std::set<std::string> rows;

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}
void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::exit(1);
}

template <typename F>
void Measure(const std::string& row, F step) {
  if (!rows.empty() && rows.count(row.substr(0, row.find(' '))) == 0) return;
  for (int i = 0; i < 20; ++i) step();
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end || times.size() < 5) {
    const auto before = Clock::now();
    step();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%-32s median %9.1f us   best %9.1f us   (%zu)\n", row.c_str(),
              times[times.size() / 2], times.front(), times.size());
  std::fflush(stdout);
}

Session::Callable Step(Session* session, std::vector<Output> feeds, std::vector<Output> fetches,
                       std::vector<Node*> targets = {}) {
  return Must(session->MakeCallable(feeds, fetches, targets));
}

void Serve(const ClusterSpec& cluster, const std::string& job, int task) {
  auto server = Server::Start({.cluster = cluster, .job = job, .task = task});
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(server.status().message()).c_str());
    std::exit(1);
  }
  (*server)->Join();
}

void Rows(const std::string& who, const std::string& target, int workers) {
  Scope s = Scope::NewRoot();
  Scope ps = s.WithDevice("/job:ps/task:0"), me = s.WithDevice("/job:worker/task:0");
  Output v = ops::VariableV2(ps, PartialShape({}), ElementType::kFloat);
  Output init = ops::Assign(ps, v, Tensor::Scalar<float>(0));
  Output read = ops::Identity(me, v);
  Output add = ops::AssignAdd(ps, v, ops::Add(me, read, Tensor::Scalar<float>(1)));
  Output only_add = ops::AssignAdd(ps, v, Tensor::Scalar<float>(1));
  Output null = ops::Identity(me, Tensor::Scalar<float>(1));
  std::vector<Output> touch;
  for (int i = 0; i < workers; ++i) {
    Scope there = s.WithDevice("/job:worker/task:" + std::to_string(i));
    Output w = ops::VariableV2(there, PartialShape({}), ElementType::kFloat);
    touch.push_back(ops::AssignAdd(there, w, Tensor::Scalar<float>(1)));
    touch.push_back(ops::Assign(there, w, Tensor::Scalar<float>(0)));
  }
  std::vector<std::pair<std::string, Output>> moves;
  std::vector<Output> inits = {init};
  for (auto [name, bytes] : std::vector<std::pair<std::string, int64_t>>{{"move_1K", 1 << 10},
                                                                         {"move_64K", 64 << 10},
                                                                         {"move_1M", 1 << 20},
                                                                         {"move_16M", 16 << 20},
                                                                         {"move_64M", 64 << 20}}) {
    if (!rows.empty() && rows.count(name) == 0 && !(name == "move_64M" && rows.count("ping"))) {
      continue;
    }
    Output data = ops::VariableV2(ps, PartialShape({bytes / 4}), ElementType::kFloat);
    inits.push_back(
        ops::Assign(ps, data,
                    ops::Fill(ps, Tensor::Vector<int32_t>({static_cast<int32_t>(bytes / 4)}),
                              Tensor::Scalar<float>(1))));
    // What the worker does with it must not cost anything.
    moves.emplace_back(name, ops::Shape(me, data));
  }
  Output big = ops::Placeholder(me, ElementType::kFloat, {.shape = PartialShape({1 << 18})});
  Output big_size = ops::Neg(me, big);
  Must(s.status());
  auto session = Must(Session::Create(s.graph(), {.target = target}));
  for (const Output& one : inits) Must(session->RunTargets({one.node}));
  for (int i = 0; i < workers; ++i) Must(session->RunTargets({touch[2 * i + 1].node}));
  Tensor value[1];
  auto run = [&value](const Session::Callable& step, absl::Span<const Tensor> feeds = {},
                      int fetches = 0) { Must(step(feeds, absl::MakeSpan(value, fetches))); };
  {
    auto step = Step(session.get(), {}, {null});
    Measure("null " + who, [&] { run(step, {}, 1); });
  }
  {
    auto step = Step(session.get(), {}, {}, {only_add.node});
    Measure("only_add " + who, [&] { run(step); });
  }
  {
    auto step = Step(session.get(), {}, {}, {add.node});
    Measure("read_add " + who, [&] { run(step); });
  }
  for (int n = 1; n <= workers; n *= 2) {
    std::vector<Node*> targets;
    for (int i = 0; i < n; ++i) targets.push_back(touch[2 * i].node);
    auto step = Step(session.get(), {}, {}, targets);
    Measure("touch_" + std::to_string(n) + " " + who, [&] { run(step); });
  }
  for (auto& [name, size] : moves) {
    auto step = Step(session.get(), {}, {size});
    Measure(name + " " + who, [&] { run(step, {}, 1); });
  }
  {
    const Tensor fed = Tensor::Vector<float>(std::vector<float>(1 << 18, 1.0f));
    auto step = Step(session.get(), {big}, {big_size});
    Measure("feed_fetch_1M " + who, [&] { run(step, {&fed, 1}, 1); });
  }
  {
    // Of a session of a small graph: alone, and with the first step of a signature.
    Scope small = Scope::NewRoot();
    Output one = ops::Identity(small.WithDevice("/job:worker/task:0"), Tensor::Scalar<float>(1));
    const auto create = [&] { return Must(Session::Create(small.graph(), {.target = target})); };
    Measure("session " + who, [&] { Must(create()->Close()); });
    Measure("session_step " + who, [&] {
      auto made = create();
      Must(made->Run({one}).status());
      Must(made->Close());
    });
  }
  if (!moves.empty() && moves.back().first == "move_64M") {
    // How long another step of the two tasks takes meanwhile.
    auto step = Step(session.get(), {}, {moves.back().second});
    auto ping = Step(session.get(), {}, {}, {only_add.node});
    std::atomic<bool> over{false};
    std::thread mover([&] {
      Tensor result[1];
      while (!over) Must(step({}, absl::MakeSpan(result)));
    });
    Measure("ping " + who, [&] { run(ping); });
    over = true;
    mover.join();
  }
  Must(session->Close());
}

}  // namespace

int main(int argc, char** argv) {
  int workers = 4;
  CommandLine line("cluster_benchmark", "Steps of a cluster of processes on this machine.");
  AddValue(&line, "--seconds S", &seconds, "Time of a row")->check(Number(0, 1e6));
  AddValue(&line, "--workers N", &workers, "Tasks")->check(WholeNumber(1, 100));
  std::vector<std::string> wanted;
  line.add_option("ROW", wanted, "Only these rows")->type_name("");
  if (const auto status = line.Read(argc, argv)) return *status;
  rows.insert(wanted.begin(), wanted.end());
  std::vector<std::string> addresses;
  for (int i = 0; i < workers; ++i) addresses.push_back("127.0.0.1:" + std::to_string(FreePort()));
  const ClusterSpec cluster = *ClusterSpec::Create(
      {{"ps", {"127.0.0.1:" + std::to_string(FreePort())}}, {"worker", addresses}});
  std::vector<ChildProcess> tasks;
  for (int i = 0; i < workers; ++i) {
    tasks.push_back(Must(ChildProcess::Fork(
        [&] {
          Serve(cluster, i == 0 ? "ps" : "worker", i);
          return 0;
        },
        {})));
  }
  auto server = Must(Server::Start({.cluster = cluster, .job = "worker", .task = 0}));
  Rows("in_process", server->target(), workers);
  // A master in another process.
  Rows("remote", "troupe://" + *cluster.Address({"ps", 0}), workers);
  Must(server->Stop());
  return 0;
}
