#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <set>

#include "devices/allocator.h"
#include "tests/actors/cluster/simulated_client.h"
#include "tests/actors/cluster/simulator.h"

namespace troupe {
namespace {

// Sanitizers make everything ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr uint64_t kSeeds = 40;
constexpr double kStepsPerSecond = 0;
#else
constexpr uint64_t kSeeds = 1000;
constexpr double kStepsPerSecond = 10000;  // Of one processor.
#endif
constexpr int kTasks = 3;

using Clients = std::vector<std::unique_ptr<SimulatedClient>>;

struct Outcome {
  int attempted = 0, succeeded = 0;
  uint64_t updates = 0, events = 0, fingerprint = 0;
  std::vector<std::string> violations;

  void Add(const Outcome& other) {
    attempted += other.attempted;
    succeeded += other.succeeded;
    updates += other.updates;
    events += other.events;
  }
};

SimulatedFaults DrawFaults(Schedule* schedule) {
  auto one_of = [&](std::vector<double> values) {
    return values[schedule->Between(0, static_cast<int64_t>(values.size()) - 1)];
  };
  SimulatedFaults faults;
  faults.delay_a_lot = one_of({0, 0.02, 0.1});
  faults.slow_jobs = one_of({0, 0, 0.02});
  faults.kills_per_second = one_of({0, 0.2, 0.6});
  faults.stops_per_second = one_of({0, 0.15});
  faults.cuts_per_second = one_of({0, 0.15});
  faults.breaks_per_second = one_of({0, 0.3});
  faults.forgetful = one_of({0, 0, 1}) > 0;
  return faults;
}

Clients MakeClients(ClusterSimulator* simulator, double restless) {
  Schedule* schedule = simulator->schedule();
  const std::vector<std::string> kinds = {"here 0",   "here 1",   "here 2",    "from 0 1",
                                          "from 2 0", "from 1 2", "large 0 2", "large 1 0",
                                          "loop 0 1", "loop 2 1", "ring",      "ring"};
  Clients clients;
  // Two share a master.
  for (int master : {0, 1, 2, 0}) {
    SimulatedClient::Options options;
    options.master = master;
    options.restless = restless;
    options.callables = schedule->Chance(0.3);
    for (int i = 0; i < 3; ++i) {
      const std::string& kind = kinds[schedule->Between(0, static_cast<int64_t>(kinds.size()) - 1)];
      if (std::count(options.work.begin(), options.work.end(), kind) == 0) {
        options.work.push_back(kind);
      }
    }
    clients.push_back(std::make_unique<SimulatedClient>(simulator, options));
    clients.back()->Start();
  }
  return clients;
}

/// Trouble for some seconds, then peace: nothing may be unanswered, lost, done twice, or left.
Outcome Simulate(uint64_t seed) {
  Outcome outcome;
  const int64_t bytes_before = HostAllocator()->stats().bytes_in_use;
  {
    Schedule choice(seed);
    const SimulatedFaults faults = DrawFaults(&choice);
    ClusterSimulator simulator(seed, kTasks, faults);
    const int64_t variables = HostAllocator()->stats().bytes_in_use - bytes_before;
    Clients clients = MakeClients(&simulator, choice.Chance(0.5) ? 0.05 : 0);
    simulator.RunFor(12 * kSecond);
    simulator.Heal();
    // All recover by themselves: no task and no client is started anew.
    std::vector<int> before;
    for (auto& client : clients) before.push_back(client->succeeded());
    const ClusterTime limit = simulator.now() + 40 * kSecond;
    auto recovered = [&] {
      for (size_t i = 0; i < clients.size(); ++i) {
        if (clients[i]->succeeded() < before[i] + 5) return false;
      }
      return true;
    };
    while (!recovered() && simulator.now() < limit) simulator.RunFor(kSecond / 10);
    if (!recovered()) {
      for (size_t i = 0; i < clients.size(); ++i) {
        simulator.schedule()->Violation("client " + std::to_string(i) + " has had " +
                                        std::to_string(clients[i]->succeeded() - before[i]) +
                                        " steps since; last: " + clients[i]->last());
      }
    }
    if (faults.forgetful) {
      // What nobody uses is given up everywhere, while its sessions go on.
      for (auto& client : clients) client->Rest();
      simulator.RunFor(15 * kSecond);
      simulator.CheckNoGraphs();
      for (auto& client : clients) client->GoOn();
    }
    for (auto& client : clients) client->Stop();
    // Sessions whose creation was given up end with their client.
    simulator.RunFor(3 * kSecond);
    for (auto& client : clients) client->Kill();
    simulator.RunFor(20 * kSecond);
    simulator.CheckNothingLeft();
    for (auto& client : clients) {
      outcome.attempted += client->attempted();
      outcome.succeeded += client->succeeded();
    }
    // The variables are there, and nothing else.
    const int64_t bytes = HostAllocator()->stats().bytes_in_use - bytes_before;
    if (bytes != variables) {
      simulator.schedule()->Violation(std::to_string(bytes - variables) +
                                      " bytes of tensors are left");
    }
    outcome.updates = simulator.ledger()->num_updates();
    outcome.events = simulator.schedule()->num_events();
    outcome.fingerprint = simulator.schedule()->fingerprint();
    outcome.violations = simulator.schedule()->violations();
  }
  if (HostAllocator()->stats().bytes_in_use != bytes_before) {
    outcome.violations.push_back("tensors outlive the cluster");
  }
  return outcome;
}

TEST(Simulation, EveryKindOfWork) {
  ClusterSimulator simulator(1, kTasks, {});
  for (const char* kind : {"here 1", "from 0 1", "from 2 1", "large 0 1", "loop 0 1", "ring"}) {
    SimulatedClient client(&simulator, {.work = {kind}, .think = 1000});
    client.Start();
    simulator.RunFor(kSecond);
    EXPECT_GT(client.succeeded(), 100) << kind << ": " << client.last();
    EXPECT_EQ(client.codes(), std::set<absl::StatusCode>{absl::StatusCode::kOk})
        << kind << ": " << client.last();
    client.Stop();
    simulator.RunFor(kSecond);
  }
  EXPECT_TRUE(simulator.task(0)->links()->connected(1) && simulator.task(0)->links()->connected(2));
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
}

TEST(Simulation, SeedsReplay) {
  EXPECT_EQ(Simulate(7).fingerprint, Simulate(7).fingerprint);
  EXPECT_NE(Simulate(7).fingerprint, Simulate(8).fingerprint);
}

// TROUPE_SEED=N replays one; TROUPE_SEEDS=N runs as many.
TEST(Simulation, SurvivesTrouble) {
  uint64_t first = 1, count = kSeeds;
  if (const char* seed = std::getenv("TROUPE_SEED")) {
    first = std::strtoull(seed, nullptr, 10);
    count = 1;
  } else if (const char* seeds = std::getenv("TROUPE_SEEDS")) {
    count = std::strtoull(seeds, nullptr, 10);
  }
  Outcome all;
  int bad = 0;
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t seed = first; seed < first + count && bad < 10; ++seed) {
    const Outcome outcome = Simulate(seed);
    all.Add(outcome);
    EXPECT_EQ(outcome.violations, std::vector<std::string>()) << "TROUPE_SEED=" << seed;
    bad += !outcome.violations.empty();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%d of %d steps succeeded, %llu updates, %llu events in %.1f s\n", all.succeeded,
              all.attempted, static_cast<unsigned long long>(all.updates),
              static_cast<unsigned long long>(all.events), took.count());
  EXPECT_GT(all.succeeded, static_cast<int>(count) * 50);
}

TEST(Simulation, LostTaskFailsItsStepsAndNoOthers) {
  ClusterSimulator simulator(3, kTasks, {});
  SimulatedClient all(&simulator, {.work = {"ring"}});
  SimulatedClient others(&simulator, {.work = {"here 0", "from 0 1"}});
  all.Start();
  others.Start();
  simulator.RunFor(3 * kSecond);
  const int before_all = all.succeeded(), before_others = others.succeeded();
  ASSERT_GT(before_all, 0);
  simulator.Kill(2);
  simulator.RunFor(8 * kSecond);
  EXPECT_LE(all.succeeded(), before_all + 1);
  EXPECT_TRUE(all.codes().count(absl::StatusCode::kUnavailable));
  EXPECT_GT(others.succeeded(), before_others + 100);
  EXPECT_EQ(others.codes(), std::set<absl::StatusCode>{absl::StatusCode::kOk});
  const int after_all = all.succeeded();
  simulator.Restart(2);
  simulator.RunFor(3 * kSecond);
  EXPECT_GT(all.succeeded(), after_all + 50);  // The same session, nobody else restarted.
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
}

// Signatures that are not used are given up by count, all over the cluster, and come back.
TEST(Simulation, SignaturesDoNotPileUp) {
  ClusterSimulator simulator(5, kTasks, {.forgetful = true});
  SimulatedClient client(&simulator, {.work = {"here 0", "here 1", "here 2", "from 0 1", "from 1 2",
                                               "loop 0 1", "ring"},
                                      .think = 1000});
  client.Start();
  simulator.RunFor(kSecond);
  for (int i = 0; i < 100; ++i) {
    simulator.RunFor(kSecond / 50);
    EXPECT_LE(simulator.task(0)->role()->master()->num_signatures(), 2u);
    for (int task = 0; task < kTasks; ++task) {
      EXPECT_LE(simulator.task(task)->role()->worker()->num_graphs(), 4u);
    }
  }
  EXPECT_GT(client.succeeded(), 500) << client.last();
  EXPECT_EQ(client.codes(), std::set<absl::StatusCode>{absl::StatusCode::kOk}) << client.last();
  client.Rest();
  simulator.RunFor(kSecond);
  simulator.CheckNoGraphs();
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
}

TEST(Simulation, StepsPerSecond) {
  ClusterSimulator simulator(1, kTasks, {});
  Clients clients;
  for (int i = 0; i < 4; ++i) {
    SimulatedClient::Options options{.master = i % kTasks, .work = {"here 0", "from 0 1"}};
    options.think = 100;
    clients.push_back(std::make_unique<SimulatedClient>(&simulator, options));
    clients.back()->Start();
  }
  simulator.RunFor(kSecond);
  auto steps = [&] {
    int sum = 0;
    for (auto& client : clients) sum += client->succeeded();
    return sum;
  };
  const int before = steps();
  const std::clock_t start = std::clock();
  simulator.RunFor(3 * kSecond);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const double rate = (steps() - before) / seconds;
  std::printf("%d steps in %.2f s of processor time: %.0f a second\n", steps() - before, seconds,
              rate);
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
  EXPECT_GT(steps() - before, 1000);
  EXPECT_GT(rate, kStepsPerSecond);
}

}  // namespace
}  // namespace troupe
