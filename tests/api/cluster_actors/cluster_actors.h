/// A cluster of processes, for tests of actors: tasks that are programs, and nodes of this process.
#ifndef TROUPE_TESTS_API_CLUSTER_ACTORS_CLUSTER_ACTORS_H_
#define TROUPE_TESTS_API_CLUSTER_ACTORS_CLUSTER_ACTORS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/actors.h"
#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

namespace troupe {

using Tensors = std::vector<Tensor>;
using testing::ElementsAre;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
inline constexpr char kTask0[] = "/job:worker/task:0", kTask1[] = "/job:worker/task:1";

struct Config : caf::actor_system_config {
  Config() {
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", uint64_t{2});
  }
};

/// Two tasks, each a process of its own.
class ClusterActorsTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = testing::TempDir() + "/cluster_actors_" + std::to_string(getpid()) + ".json";
    for (int i = 0; i < 2; ++i) addresses_.push_back("127.0.0.1:" + std::to_string(FreePort()));
    std::ofstream(file_) << "{\"worker\": [\"" << addresses_[0] << "\", \"" << addresses_[1]
                         << "\"]}";
    for (int i = 0; i < 2; ++i) StartTask(i);
  }
  void TearDown() override { std::filesystem::remove(file_); }
  /// Of the nodes.
  virtual std::unique_ptr<caf::actor_system_config> MakeConfig() {
    return std::make_unique<Config>();
  }
  void StartTask(size_t task) {
    workers_[task] = std::make_unique<TroupeProcess>(
        std::vector<std::string>{"worker", "--heartbeat-timeout", "2", "--cluster", file_, "--job",
                                 "worker", "--task", std::to_string(task)});
    EXPECT_THAT(workers_[task]->Line(), HasSubstr("ready"));
  }
  std::string Target(size_t task) { return "troupe://" + addresses_[task]; }
  std::unique_ptr<ClusterNode> Join(size_t task = 0) {
    configs_.push_back(MakeConfig());
    auto node = ClusterNode::Join({.target = Target(task),
                                   .heartbeat_timeout = absl::Seconds(2),
                                   .config = configs_.back().get()});
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *std::move(node) : nullptr;
  }
  /// A session at the first task.
  std::unique_ptr<Session> Connect(const std::shared_ptr<Graph>& graph) {
    auto session = Session::Create(graph, {.target = Target(0)});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }

  std::vector<std::string> addresses_;
  std::string file_;
  std::unique_ptr<TroupeProcess> workers_[2];
  std::vector<std::unique_ptr<caf::actor_system_config>> configs_;  ///< Outlive the nodes.
};

/// Whether something is so, or is within some seconds.
template <typename IsSo>
bool Soon(const IsSo& is_so) {
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  while (!is_so()) {
    if (Clock::now() > deadline) return false;
    // Other processes hear of it by messages that nobody else sees: all that can be done is to look
    // again, and not all the time.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// What `actor` answers, or its error.
template <typename Answer, typename Actor, typename... Args>
absl::StatusOr<Answer> Ask(caf::actor_system& system, const Actor& actor, Args... args) {
  caf::scoped_actor self(system);
  absl::StatusOr<Answer> result = absl::UnknownError("no answer");
  self->request(actor, std::chrono::seconds(20), args...)
      .receive([&](Answer answer) { result = std::move(answer); },
               [&](const caf::error& error) { result = ToStatus(error); });
  return result;
}

inline caf::behavior Doubler(caf::event_based_actor*) {
  return {[](ask_atom, const Tensors& in) {
            return Tensors{Tensor::Scalar<float>(2 * in.at(0).unchecked_scalar<float>())};
          },
          [](tell_atom, const Tensors&) {}};
}

}  // namespace troupe

#endif  // TROUPE_TESTS_API_CLUSTER_ACTORS_CLUSTER_ACTORS_H_
