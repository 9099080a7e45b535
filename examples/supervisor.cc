// A supervisor: monitors the tasks of a cluster as actors, and starts those again that are lost.
//
//     build/release/bin/supervisor
//
// Three parameter servers run as processes of their own. The supervisor joins their cluster as a
// node, finds each task's actor, and monitors it: whether a process is killed, frozen, or cut off,
// one message says so, and the supervisor starts the task again. For the demonstration it kills
// servers itself, at random.

#include <cstdio>
#include <map>
#include <random>

#include "api/actors.h"
#include "api/cluster.h"
#include "api/program/child_process.h"
#include "api/program/command_line.h"
#include "api/troupe.h"
#include "examples/shared/local_cluster.h"
#include "examples/shared/options.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::OrDie;

ClusterSpec Parse(const std::string& cluster) {
  absl::StatusOr<ClusterSpec> spec = ClusterSpec::Parse(cluster);
  OrDie(spec.status());
  return *std::move(spec);
}

/// A parameter server, until it is told to end.
int Serve(const std::string& cluster, int task) {
  const auto server = Server::Start({.cluster = Parse(cluster), .job = "ps", .task = task});
  OrDie(server.status());
  std::printf("ready\n");
  std::fflush(stdout);
  OrDie((*server)->JoinUntilSignal());
  return 0;
}

class Supervisor {
 public:
  explicit Supervisor(std::string cluster) : cluster_(std::move(cluster)) {}

  /// Starts task `number`'s process.
  void Start(int number) {
    auto process = ChildProcess::Start(
        {.arguments = {ThisProgram(), "--cluster", cluster_, "--task", std::to_string(number)},
         .output = true});
    OrDie(process.status());
    OrDie(process->Line(absl::Seconds(20)) == "ready" ? absl::OkStatus()
                                                      : absl::UnavailableError("no server"));
    processes_.insert_or_assign(number, *std::move(process));
  }

  void Kill(int number) { processes_.at(number).Signal(SIGKILL); }

  /// Monitors all tasks until `losses` have been made good.
  void Run(const std::string& target, int tasks, int losses) {
    const auto joined = ClusterNode::Join({.target = target});
    OrDie(joined.status());
    ClusterNode& node = **joined;
    caf::scoped_actor self(node.system());
    std::map<caf::actor_addr, int> monitored;
    const auto monitor = [&](int number) {
      const std::string name = "/job:ps/task:" + std::to_string(number);
      absl::StatusOr<TaskActor> task = node.Find<TaskActor>(name, "");
      // It may not have been heard of yet.
      for (int i = 0; i < 100 && !task.ok(); ++i) {
        absl::SleepFor(absl::Milliseconds(20));
        task = node.Find<TaskActor>(name, "");
      }
      OrDie(task.status());
      self->monitor(*task);
      monitored[task->address()] = number;
    };
    for (int i = 0; i < tasks; ++i) monitor(i);
    std::mt19937 random(1);
    for (int i = 0; i < losses; ++i) {
      Kill(static_cast<int>(random() % static_cast<uint32_t>(tasks)));
      const absl::Time begin = absl::Now();
      self->receive([&](const caf::down_msg& down) {
        const int number = monitored.at(down.source);
        monitored.erase(down.source);
        const absl::Time heard = absl::Now();
        Start(number);
        monitor(number);
        std::printf("ps %d was lost; known after %.1f ms, back after %.0f ms\n", number,
                    absl::ToDoubleMilliseconds(heard - begin),
                    absl::ToDoubleMilliseconds(absl::Now() - begin));
      });
    }
  }

 private:
  const std::string cluster_;
  std::map<int, ChildProcess> processes_;
};

}  // namespace

int main(int argc, char** argv) {
  int64_t tasks = 3, losses = 4, task = 0;
  std::string cluster;
  CommandLine line("supervisor", "Starts tasks of a cluster again that are lost.");
  AddValue(&line, "--tasks N", &tasks, "Parameter servers")->check(WholeNumber(1, 100));
  AddValue(&line, "--steps N", &losses, "How many of them are killed, one after the other")
      ->check(WholeNumber(0, 1000000));
  AddValue(&line, "--cluster JSON", &cluster, "Serve as a task of this cluster");
  AddValue(&line, "--task N", &task, "Which one");
  if (const std::optional<int> over = line.Read(argc, argv)) return *over;
  if (!cluster.empty()) return Serve(cluster, static_cast<int>(task));

  const std::vector<int> ports = local_cluster::FreePorts(static_cast<size_t>(tasks));
  std::string addresses;
  for (int port : ports) {
    addresses +=
        (addresses.empty() ? "\"127.0.0.1:" : ", \"127.0.0.1:") + std::to_string(port) + "\"";
  }
  Supervisor supervisor("{\"ps\": [" + addresses + "]}");
  for (int i = 0; i < tasks; ++i) supervisor.Start(i);
  supervisor.Run("troupe://127.0.0.1:" + std::to_string(ports.front()), static_cast<int>(tasks),
                 static_cast<int>(losses));
  std::printf("%ld servers were lost and are back\n", losses);
}
