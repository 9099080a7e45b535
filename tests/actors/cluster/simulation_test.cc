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
  uint64_t updates = 0, elements = 0, gradients = 0, events = 0, fingerprint = 0;
  std::vector<std::string> violations;

  void Add(const Outcome& other) {
    attempted += other.attempted;
    succeeded += other.succeeded;
    updates += other.updates;
    elements += other.elements;
    gradients += other.gradients;
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
  faults.leaves_per_second = one_of({0, 0, 0.2});
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
    const auto add_one_of = [&](const std::vector<std::string>& some) {
      options.work.push_back(some[schedule->Between(0, static_cast<int64_t>(some.size()) - 1)]);
    };
    // The same queue and the same accumulator for all, on two of the tasks.
    if (schedule->Chance(0.7)) {
      add_one_of({"put 0 1", "put 1 1", "put 2 1", "take 0 1", "take 1 1", "pair 2 1"});
    }
    if (schedule->Chance(0.7)) add_one_of({"apply 0 2", "apply 1 2", "apply 2 2", "mean 0 2"});
    if (schedule->Chance(0.4)) {
      add_one_of({"mean 1 2", "mean 2 2", "old 0 2", "old 2 2", "advance 1 2", "count 0 2"});
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
    outcome.elements = simulator.queue_ledger()->num_taken();
    outcome.gradients = simulator.accumulator_ledger()->num_taken();
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

// What one client puts in, another one takes out.
TEST(Simulation, ClientsShareAQueue) {
  ClusterSimulator simulator(2, kTasks, {});
  Clients clients;
  for (const char* kind : {"put 0 1", "put 1 1", "put 2 1", "take 0 1", "take 1 1", "pair 2 1"}) {
    SimulatedClient::Options options{.master = static_cast<int>(clients.size()) % kTasks,
                                     .work = {kind}};
    options.think = 2000;
    clients.push_back(std::make_unique<SimulatedClient>(&simulator, options));
    clients.back()->Start();
  }
  simulator.RunFor(5 * kSecond);
  for (auto& client : clients) {
    EXPECT_GT(client->succeeded(), 100) << client->last();
    client->Stop();
  }
  simulator.RunFor(kSecond);
  simulator.CheckNothingLeft();
  EXPECT_GT(simulator.queue_ledger()->num_taken(), 1000u);
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
}

// A step whose deadline passes while it waits for a second element gives the first one back.
TEST(Simulation, LateStepsTakeNothing) {
  ClusterSimulator simulator(4, kTasks, {});
  SimulatedClient putter(&simulator, {.master = 0, .work = {"put 0 1"}, .think = kSecond});
  SimulatedClient taker(&simulator, {.master = 1, .work = {"pair 2 1"}, .think = 1000});
  putter.Start();
  taker.Start();
  simulator.RunFor(100 * kSecond);
  putter.Stop();
  taker.Stop();
  simulator.RunFor(kSecond);
  simulator.CheckNothingLeft();
  EXPECT_GT(taker.succeeded(), 5);
  EXPECT_GT(taker.attempted() - taker.succeeded(), 100);
  EXPECT_EQ(simulator.queue_ledger()->num_missing(), 0);
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
}

// Whoever takes the mean gets all gradients that are in; the number of them, and steps, go along.
TEST(Simulation, ClientsShareAnAccumulator) {
  ClusterSimulator simulator(2, kTasks, {});
  simulator.accumulator_ledger()->ExpectPromptly(kSecond / 20);
  Clients clients;
  for (const char* kind : {"apply 0 1", "apply 1 1", "apply 2 1", "mean 0 1", "mean 1 1", "old 2 1",
                           "advance 0 1", "count 2 1"}) {
    SimulatedClient::Options options{.master = static_cast<int>(clients.size()) % kTasks,
                                     .work = {kind}};
    options.think = 2000;
    clients.push_back(std::make_unique<SimulatedClient>(&simulator, options));
    clients.back()->Start();
  }
  simulator.RunFor(5 * kSecond);
  for (auto& client : clients) {
    EXPECT_GT(client->succeeded(), 100) << client->last();
    client->Stop();
  }
  simulator.RunFor(kSecond);
  simulator.CheckNothingLeft();
  EXPECT_GT(simulator.accumulator_ledger()->num_taken(), 1000);
  EXPECT_EQ(simulator.accumulator_ledger()->num_missing(), 0);
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
}

// A step whose deadline passes while it waits for a second gradient leaves the first one there, and
// old gradients do not serve it.
TEST(Simulation, LateStepsTakeNoGradients) {
  ClusterSimulator simulator(4, kTasks, {});
  simulator.accumulator_ledger()->ExpectPromptly(kSecond / 20);
  SimulatedClient applier(&simulator,
                          {.master = 0, .work = {"apply 0 1", "old 2 1"}, .think = kSecond});
  SimulatedClient taker(&simulator, {.master = 1, .work = {"mean 2 1"}, .think = 1000});
  applier.Start();
  taker.Start();
  simulator.RunFor(100 * kSecond);
  applier.Stop();
  taker.Stop();
  simulator.RunFor(kSecond);
  simulator.CheckNothingLeft();
  EXPECT_GT(taker.succeeded(), 5);
  EXPECT_GT(taker.attempted() - taker.succeeded(), 100);
  EXPECT_EQ(simulator.accumulator_ledger()->num_missing(), 0);
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
  std::printf(
      "%d of %d steps succeeded, %llu updates, %llu elements of queues, %llu gradients, %llu "
      "events "
      "in %.1f s\n",
      all.succeeded, all.attempted, static_cast<unsigned long long>(all.updates),
      static_cast<unsigned long long>(all.elements), static_cast<unsigned long long>(all.gradients),
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

TEST(Simulation, ATaskThatHasLeftIsNotWaitedForAndItsNameComesBack) {
  ClusterSimulator simulator(11, kTasks, {});
  SimulatedClient all(&simulator, {.work = {"ring"}});
  SimulatedClient others(&simulator, {.work = {"here 0", "from 0 1"}});
  all.Start();
  others.Start();
  simulator.RunFor(3 * kSecond);
  const int before_all = all.succeeded(), before_others = others.succeeded();
  ASSERT_GT(before_all, 0);
  simulator.Leave(2, 20 * kSecond);
  simulator.RunFor(10 * kSecond);
  EXPECT_LE(all.succeeded(), before_all + 100);
  EXPECT_TRUE(all.codes().count(absl::StatusCode::kUnavailable));
  EXPECT_GT(others.succeeded(), before_others + 100);
  EXPECT_EQ(others.codes(), std::set<absl::StatusCode>{absl::StatusCode::kOk});
  // Nobody waits for it.
  SimulatedClient late(&simulator, {.work = {"here 1"}});
  late.Start();
  simulator.RunFor(kSecond);
  EXPECT_GT(late.succeeded(), 10) << late.last();
  const int without = all.succeeded();
  simulator.RunFor(15 * kSecond);
  EXPECT_FALSE(simulator.away(2));
  EXPECT_GT(all.succeeded(), without + 50) << all.last();  // The same session.
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
}

// A master loses sight of a task in a step in which it does not take part itself: nobody but the
// master can tell that task, when it is back, that the value that it has got will not be asked for.
TEST(Simulation, ValuesOfStepsThatTheirMasterGaveUpDoNotStay) {
  int early = 0;
  for (int i = 0; i < 20; ++i) {
    ClusterSimulator simulator(3, kTasks, {});
    SimulatedClient client(&simulator, {.master = 1, .work = {"large 0 2"}, .think = 1000});
    client.Start();
    simulator.RunFor(kSecond + 100 * i);  // at another point of a step
    simulator.Cut(1, 2, 7 * kSecond);
    simulator.RunFor(4 * kSecond);
    early += simulator.task(2)->num_early_steps() > 0 ? 1 : 0;
    simulator.RunFor(5 * kSecond);
    EXPECT_EQ(simulator.task(2)->num_early_steps(), 0U);
    client.Stop();
    simulator.RunFor(kSecond);
    EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
  }
  EXPECT_GT(early, 0);
}

// Steps of another master need the credits that a value holds whose own master has died.
TEST(Simulation, ValuesOfStepsOfADeadMasterDoNotStay) {
  int early = 0;
  for (int i = 0; i < 20; ++i) {
    ClusterSimulator simulator(4, kTasks, {});
    SimulatedClient client(&simulator, {.master = 1, .work = {"large 0 2"}, .think = 1000});
    client.Start();
    simulator.RunFor(kSecond + 100 * i);  // at another point of a step
    simulator.Cut(1, 2, 60 * kSecond);
    simulator.RunFor(kSecond / 2);
    simulator.Kill(1);
    early += simulator.task(2)->num_early_steps() > 0 ? 1 : 0;
    simulator.RunFor(7 * kSecond);
    EXPECT_EQ(simulator.task(2)->num_early_steps(), 0U);
  }
  EXPECT_GT(early, 0);
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
