#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/actors/cluster/simulator.h"

namespace troupe {
namespace {

cluster::Message Create() {
  cluster::Message request;
  request.set_method(cluster::CREATE_SESSION);
  return request;
}

cluster::Message Run(const std::string& session, const std::string& target,
                     ClusterTime timeout = 0) {
  cluster::Message request;
  request.set_method(cluster::RUN_STEP);
  request.set_session(session);
  request.add_target_names(target);
  request.set_timeout_us(timeout);
  return request;
}

cluster::Message Close(const std::string& session) {
  cluster::Message request;
  request.set_method(cluster::CLOSE_SESSION);
  request.set_session(session);
  return request;
}

/// A client that makes a session, runs step after step, and makes another session when the first is
/// lost.
class Client {
 public:
  Client(ClusterSimulator* simulator, int master, std::vector<std::string> targets)
      : simulator_(simulator), id_(simulator->AddClient(master)), targets_(std::move(targets)) {}

  /// What is needed next is done until `Stop`.
  void Go() {
    if (busy_) return;
    busy_ = true;
    if (session_.empty()) {
      simulator_->Call(id_, Create(), 25 * kSecond,
                       [this](const absl::Status& status, cluster::Message reply) {
                         busy_ = false;
                         Count(status);
                         if (status.ok()) session_ = reply.session();
                       });
      return;
    }
    const std::string& target = targets_[steps_++ % targets_.size()];
    simulator_->Call(id_, Run(session_, target), 15 * kSecond,
                     [this, target](const absl::Status& status, const cluster::Message& reply) {
                       busy_ = false;
                       Count(status);
                       if (status.code() == absl::StatusCode::kAborted) session_.clear();
                       if (!status.ok()) return;
                       ++succeeded_;
                       const auto tasks = std::count(target.begin(), target.end(), ',') + 1;
                       EXPECT_EQ(reply.tensors_size(), tasks);
                     });
  }
  void CloseSession() {
    if (session_.empty()) return;
    simulator_->Call(id_, Close(session_), 15 * kSecond,
                     [](const absl::Status&, const cluster::Message&) {});
    session_.clear();
  }

  int id() const { return id_; }
  int succeeded() const { return succeeded_; }
  const std::set<absl::StatusCode>& codes() const { return codes_; }
  std::string last() const { return std::string(busy_ ? "busy; " : "") + last_.ToString(); }

 private:
  void Count(const absl::Status& status) {
    codes_.insert(status.code());
    last_ = status;
  }

  ClusterSimulator* const simulator_;
  const int id_;
  const std::vector<std::string> targets_;
  std::string session_;
  bool busy_ = false;
  size_t steps_ = 0;
  int succeeded_ = 0;
  std::set<absl::StatusCode> codes_;
  absl::Status last_;
};

struct Outcome {
  int succeeded = 0;
  uint64_t fingerprint = 0;
  std::vector<std::string> violations;
};

/// Twenty seconds of trouble, then peace: nothing may be unanswered, nothing be left.
Outcome Simulate(uint64_t seed) {
  std::mt19937_64 choice(seed);
  auto one_of = [&](std::vector<double> values) { return values[choice() % values.size()]; };
  SimulatedFaults faults;
  faults.drop = one_of({0, 0, 0.01, 0.05});
  faults.duplicate = one_of({0, 0.05});
  faults.delay_a_lot = one_of({0, 0.02, 0.1});
  faults.kills_per_second = one_of({0, 0.1, 0.4});
  faults.stops_per_second = one_of({0, 0.1});
  faults.cuts_per_second = one_of({0, 0.1});
  ClusterSimulator simulator(seed, 3, faults);
  std::vector<std::unique_ptr<Client>> clients;
  clients.push_back(std::make_unique<Client>(
      &simulator, 0, std::vector<std::string>{"inc:0,1,2", "inc:1", "inc:2,1"}));
  clients.push_back(
      std::make_unique<Client>(&simulator, 1, std::vector<std::string>{"inc:0,2", "inc:1,2"}));
  const ClusterTime peace = simulator.now() + 20 * kSecond;
  while (simulator.now() < peace) {
    for (auto& client : clients) client->Go();
    simulator.RunUntil(simulator.now() + 20000);
  }
  simulator.Heal();
  // All recover by themselves: no task and no client is started anew.
  const ClusterTime recovered = simulator.now() + 30 * kSecond;
  while (simulator.now() < recovered) {
    for (auto& client : clients) client->Go();
    simulator.RunUntil(simulator.now() + 50000);
  }
  Outcome outcome;
  for (auto& client : clients) {
    const int before = client->succeeded();
    for (int i = 0; i < 100; ++i) {
      client->Go();
      simulator.RunUntil(simulator.now() + 50000);
    }
    if (client->succeeded() == before) {
      outcome.violations.push_back("a client did not recover: " + client->last());
    }
    outcome.succeeded += client->succeeded();
    client->CloseSession();
  }
  // Sessions whose creation was given up end with their client.
  simulator.RunUntil(simulator.now() + 3 * kSecond);
  for (auto& client : clients) simulator.KillClient(client->id());
  simulator.RunUntil(simulator.now() + 30 * kSecond);
  simulator.CheckNothingLeft();
  outcome.fingerprint = simulator.fingerprint();
  outcome.violations.insert(outcome.violations.end(), simulator.violations().begin(),
                            simulator.violations().end());
  return outcome;
}

TEST(Simulation, StepsRunOverAllTasks) {
  ClusterSimulator simulator(1, 3, {});
  Client client(&simulator, 0, {"inc:0,1,2"});
  for (int i = 0; i < 100; ++i) {
    client.Go();
    simulator.RunUntil(simulator.now() + 50000);
  }
  EXPECT_GT(client.succeeded(), 50);
  for (int task = 0; task < 3; ++task) EXPECT_EQ(simulator.counter(task), client.succeeded());
  EXPECT_EQ(simulator.violations(), std::vector<std::string>());
}

TEST(Simulation, SeedsReplay) {
  EXPECT_EQ(Simulate(7).fingerprint, Simulate(7).fingerprint);
  EXPECT_NE(Simulate(7).fingerprint, Simulate(8).fingerprint);
}

// TROUPE_SEED=N replays one; TROUPE_SEEDS=N runs as many.
TEST(Simulation, SurvivesTrouble) {
  uint64_t first = 1, count = 60;
  if (const char* seed = std::getenv("TROUPE_SEED")) {
    first = std::strtoull(seed, nullptr, 10);
    count = 1;
  } else if (const char* seeds = std::getenv("TROUPE_SEEDS")) {
    count = std::strtoull(seeds, nullptr, 10);
  }
  int succeeded = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Outcome outcome = Simulate(seed);
    succeeded += outcome.succeeded;
    EXPECT_EQ(outcome.violations, std::vector<std::string>()) << "TROUPE_SEED=" << seed;
  }
  EXPECT_GT(succeeded, static_cast<int>(count) * 100);
}

TEST(Simulation, LostTaskFailsItsStepsAndNoOthers) {
  ClusterSimulator simulator(3, 3, {});
  Client all(&simulator, 0, {"inc:0,2"}), others(&simulator, 0, {"inc:0,1"});
  simulator.RunUntil(simulator.now() + kSecond);
  auto go = [&](ClusterTime time) {
    const ClusterTime until = simulator.now() + time;
    while (simulator.now() < until) {
      all.Go();
      others.Go();
      simulator.RunUntil(simulator.now() + 10000);
    }
  };
  go(3 * kSecond);
  const int before_all = all.succeeded(), before_others = others.succeeded();
  ASSERT_GT(before_all, 0);
  simulator.Kill(2);
  go(8 * kSecond);
  EXPECT_LE(all.succeeded(), before_all + 1);
  EXPECT_TRUE(all.codes().count(absl::StatusCode::kUnavailable));
  EXPECT_GT(others.succeeded(), before_others + 100);
  EXPECT_EQ(others.codes(), std::set<absl::StatusCode>{absl::StatusCode::kOk});
  const int after_all = all.succeeded();
  simulator.Restart(2);
  go(3 * kSecond);
  EXPECT_GT(all.succeeded(), after_all + 50);  // The same session, nobody else restarted.
  EXPECT_EQ(simulator.violations(), std::vector<std::string>());
}

}  // namespace
}  // namespace troupe
