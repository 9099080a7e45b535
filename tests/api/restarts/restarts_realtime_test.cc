// Tasks that are killed and are back at random moments, while a client retries: no step may hang.
// TROUPE_RESTARTS=N makes N of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

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
  std::vector<Output> fetches_;
  std::shared_ptr<Graph> graph_;
};

TEST_F(Restarts, NoStepHangs) {
  int rounds = 8;
  if (const char* wanted = std::getenv("TROUPE_RESTARTS")) rounds = std::atoi(wanted);
  SessionOptions options;
  options.target = "troupe://" + addresses_[0];
  auto session = Session::Create(graph_, options);
  ASSERT_TRUE(session.ok()) << session.status();
  std::atomic<bool> stop{false};
  std::atomic<int> succeeded{0};
  std::mutex mutex;
  absl::Duration longest;
  std::string slowest;
  std::thread client([&] {
    while (!stop) {
      const absl::Time begin = absl::Now();
      const absl::Status status = (*session)->Run(fetches_).status();
      succeeded += status.ok() ? 1 : 0;
      std::lock_guard<std::mutex> lock(mutex);
      if (absl::Now() - begin <= longest) continue;
      longest = absl::Now() - begin;
      slowest = status.ToString();
    }
  });
  std::mt19937 random(std::random_device{}());
  auto sleep = [&](int from_ms, int to_ms) {
    // The moments at which tasks end and come back are what is tested; elsewhere, the time between
    // two looks at a counter.
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<int>(from_ms, to_ms)(random)));
  };
  for (int round = 0; round < rounds; ++round) {
    const int victim = 1 + static_cast<int>(random() % 2);
    tasks_[victim]->Signal(SIGKILL);
    sleep(50, random() % 2 == 0 ? 300 : 3000);
    Start(victim);
    // All get on again.
    const int before = succeeded;
    const absl::Time end = absl::Now() + 2 * kTimeout + kSlack;
    while (succeeded < before + 3 && absl::Now() < end) sleep(5, 5);
    EXPECT_GE(succeeded, before + 3) << "round " << round;
    if (HasFailure()) break;
    sleep(0, 200);
  }
  stop = true;
  // A step that hangs ends with its session.
  if (HasFailure()) (*session)->Close().IgnoreError();
  client.join();
  EXPECT_LT(longest, 2 * kTimeout + kSlack) << slowest;
  std::printf("%d restarts, %d steps, the longest %s\n", rounds, succeeded.load(),
              absl::FormatDuration(longest).c_str());
}

}  // namespace
}  // namespace troupe
