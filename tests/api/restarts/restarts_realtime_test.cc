// Tasks that are killed and are back at random moments, while clients retry, ask the tasks, and
// have graphs ask an actor: nothing may hang. TROUPE_RESTARTS=N makes N of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "api/actors.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

using testing::StartsWith;

constexpr absl::Duration kTimeout = absl::Seconds(1);
// Besides what the cluster is allowed: for a machine that has other things to do.
constexpr absl::Duration kSlack = absl::Seconds(3);

/// Two workers and a parameter server, each of which needs values of both others in every step.
class Restarts : public testing::Test {
 protected:
  static constexpr int kTasks = 3;

  Restarts() {
    file_ = testing::TempDir() + "/restarts_" + std::to_string(getpid()) + ".json";
    std::string tasks;
    for (int i = 0; i < kTasks; ++i) {
      addresses_[i] = "127.0.0.1:" + std::to_string(FreePort());
      tasks += (i > 0 ? ", \"" : "\"") + addresses_[i] + "\"";
    }
    std::ofstream(file_) << "{\"worker\": [" << tasks << "]}";
    for (int i = 0; i < kTasks; ++i) Start(i);
    Output own[kTasks];
    Scope root = Scope::NewRoot();
    auto on = [&](int task) { return root.WithDevice("/job:worker/task:" + std::to_string(task)); };
    for (int i = 0; i < kTasks; ++i) {
      own[i] = ops::RandomUniform(on(i), Tensor::Vector<int32_t>({2}), ElementType::kFloat);
    }
    for (int i = 0; i < kTasks; ++i) {
      fetches_.push_back(ops::AddN(on(i), {own[0], own[1], own[2]}));
      asking_.push_back(ops::AskActor(on(i), {own[i]}, "echo", {ElementType::kFloat})[0]);
    }
    graph_ = root.graph();
  }
  void Start(int task) {
    tasks_[task] = std::make_unique<TroupeProcess>(std::vector<std::string>{
        "worker", "--cluster", file_, "--job", "worker", "--task", std::to_string(task),
        "--threads", "1", "--heartbeat-timeout", std::to_string(absl::ToInt64Seconds(kTimeout))});
    EXPECT_THAT(tasks_[task]->Line(), StartsWith("ready troupe://" + addresses_[task]));
  }

  std::string file_, addresses_[kTasks];
  std::unique_ptr<TroupeProcess> tasks_[kTasks];
  std::vector<Output> fetches_, asking_;
  std::shared_ptr<Graph> graph_;
};

/// Calls something again and again, and keeps its longest time.
class Caller {
 public:
  explicit Caller(std::function<absl::Status()> call) : call_(std::move(call)) {}
  ~Caller() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int succeeded() const { return succeeded_; }
  absl::Duration longest() const { return longest_; }      ///< Once stopped.
  const std::string& slowest() const { return slowest_; }  ///< What came of that call.
  std::string ToString() const {
    return StrCat(succeeded(), " times, the longest ", absl::FormatDuration(longest_));
  }

 private:
  void Run() {
    while (!stop_) {
      const absl::Time begin = absl::Now();
      const absl::Status status = call_();
      succeeded_ += status.ok() ? 1 : 0;
      if (absl::Now() - begin <= longest_) continue;
      longest_ = absl::Now() - begin;
      slowest_ = status.ToString();
    }
  }

  const std::function<absl::Status()> call_;
  std::atomic<bool> stop_{false};
  std::atomic<int> succeeded_{0};
  absl::Duration longest_;
  std::string slowest_;
  std::thread thread_{[this] { Run(); }};
};

TEST_F(Restarts, NothingHangs) {
  const int rounds = HowMany("TROUPE_RESTARTS", 8, /*one_in=*/1);
  const std::string target = "troupe://" + addresses_[0];
  auto session = Session::Create(graph_, {.target = target});
  auto other = Session::Create(graph_, {.target = target});
  auto node = ClusterNode::Join({.target = target, .heartbeat_timeout = kTimeout});
  ASSERT_TRUE(session.ok() && other.ok() && node.ok()) << node.status();
  auto published = (*node)->Publish("echo", (*node)->system().spawn([] {
    return caf::behavior{[](ask_atom, const std::vector<Tensor>& in) { return in; },
                         [](tell_atom, const std::vector<Tensor>&) {}};
  }));
  ASSERT_TRUE(published.ok()) << published.status();
  std::atomic<int> victim{1};
  std::optional<TaskActor> task;
  Caller callers[] = {Caller([&] { return (*session)->Run(fetches_).status(); }),
                      Caller([&] { return (*other)->Run(asking_).status(); }),
                      // Through a handle of its life, until that is over.
                      Caller([&] {
                        if (!task) {
                          auto found = (*node)->Find<TaskActor>(
                              StrCat("/job:worker/task:", victim.load()), "");
                          if (!found.ok()) return found.status();
                          task = *found;
                        }
                        absl::Status status;
                        caf::scoped_actor self((*node)->system());
                        self->request(*task, caf::infinite, status_atom_v)
                            .receive([](const TaskStatus&) {},
                                     [&](const caf::error& error) { status = ToStatus(error); });
                        if (!status.ok()) task.reset();
                        return status;
                      })};
  std::mt19937 random(std::random_device{}());
  auto sleep = [&](int from_ms, int to_ms) {
    // The moments at which tasks end and come back are what is tested; elsewhere, the time between
    // two looks at a counter.
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<int>(from_ms, to_ms)(random)));
  };
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    victim = 1 + static_cast<int>(random() % 2);
    tasks_[victim]->Signal(SIGKILL);
    sleep(50, random() % 2 == 0 ? 300 : 3000);
    Start(victim);
    // All get on again.
    const absl::Time end = absl::Now() + 2 * kTimeout + kSlack;
    for (const Caller& caller : callers) {
      const int before = caller.succeeded();
      while (caller.succeeded() < before + 3 && absl::Now() < end) sleep(5, 5);
      EXPECT_GE(caller.succeeded(), before + 3) << "round " << round << ", " << &caller - callers;
    }
    sleep(0, 200);
  }
  // What hangs ends with the tasks.
  if (HasFailure()) {
    for (auto& process : tasks_) process->Signal(SIGKILL);
  }
  for (Caller& caller : callers) {
    caller.Stop();
    EXPECT_LT(caller.longest(), 2 * kTimeout + kSlack) << caller.slowest();
  }
  std::printf("%d restarts; steps %s; asking steps %s; asks %s\n", rounds,
              callers[0].ToString().c_str(), callers[1].ToString().c_str(),
              callers[2].ToString().c_str());
}

}  // namespace
}  // namespace troupe
