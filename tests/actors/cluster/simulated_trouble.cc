#include "tests/actors/cluster/simulated_trouble.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "devices/allocator.h"
#include "tests/how_many.h"

namespace troupe {

namespace {

SimulatedFaults DrawFaults(Schedule* schedule) {
  auto one_of = [&](std::vector<double> values) {
    return values[schedule->Between(0, static_cast<int64_t>(values.size()) - 1)];
  };
  SimulatedFaults faults;
  faults.delay_a_lot = one_of({0, 0.02, 0.1});
  faults.slow_jobs = one_of({0, 0, 0.02});
  faults.no_memory = one_of({0, 0, 0.01});
  faults.kills_per_second = one_of({0, 0.2, 0.6});
  faults.stops_per_second = one_of({0, 0.15});
  faults.cuts_per_second = one_of({0, 0.15});
  faults.breaks_per_second = one_of({0, 0.3});
  faults.forgetful = one_of({0, 0, 1}) > 0;
  faults.leaves_per_second = one_of({0, 0, 0.2});
  return faults;
}

SimulatedClients MakeClients(ClusterSimulator* simulator, const TroubleOptions& from,
                             double restless) {
  Schedule* schedule = simulator->schedule();
  const std::vector<std::string> kinds = {"here 0",   "here 1",   "here 2",    "from 0 1",
                                          "from 2 0", "from 1 2", "large 0 2", "large 1 0",
                                          "loop 0 1", "loop 2 1", "ring",      "ring"};
  SimulatedClients clients;
  for (int i = 0; i < from.clients; ++i) {
    SimulatedClient::Options options;
    options.master = i % from.tasks;
    options.restless = restless;
    options.callables = schedule->Chance(0.3);
    for (int of_three = 0; of_three < 3; ++of_three) {
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
    if (!from.work.empty()) add_one_of(from.work);
    clients.push_back(std::make_unique<SimulatedClient>(simulator, options));
    clients.back()->Start();
  }
  return clients;
}

}  // namespace

void TroubleOutcome::Add(const TroubleOutcome& other) {
  attempted += other.attempted;
  succeeded += other.succeeded;
  updates += other.updates;
  elements += other.elements;
  gradients += other.gradients;
  events += other.events;
}

TroubleOutcome SimulateTrouble(uint64_t seed, const TroubleOptions& options) {
  TroubleOutcome outcome;
  SimulatedApplications* const applications = options.applications;
  const int64_t bytes_before = HostAllocator()->stats().bytes_in_use;
  {
    Schedule choice(seed);
    const SimulatedFaults faults = DrawFaults(&choice);
    ClusterSimulator simulator(seed, options.tasks, faults, applications);
    const int64_t variables = HostAllocator()->stats().bytes_in_use - bytes_before;
    SimulatedClients clients = MakeClients(&simulator, options, choice.Chance(0.5) ? 0.05 : 0);
    if (applications != nullptr) applications->Start();
    simulator.RunFor(options.time);
    simulator.Heal();
    if (applications != nullptr) applications->Heal();
    // All recover by themselves: no task and no client is started anew.
    std::vector<int> before;
    for (auto& client : clients) before.push_back(client->succeeded());
    const ClusterTime limit = simulator.now() + 40 * kSecond;
    auto recovered = [&] {
      for (size_t i = 0; i < clients.size(); ++i) {
        if (clients[i]->succeeded() < before[i] + 5) return false;
      }
      return applications == nullptr || applications->Missing().empty();
    };
    while (!recovered() && simulator.now() < limit) simulator.RunFor(kSecond / 10);
    if (!recovered()) {
      if (applications != nullptr && !applications->Missing().empty()) {
        simulator.schedule()->Violation(applications->Missing());
      }
      for (size_t i = 0; i < clients.size(); ++i) {
        if (clients[i]->succeeded() >= before[i] + 5) continue;
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
    if (applications != nullptr) applications->Stop();
    // Sessions whose creation was given up end with their client.
    simulator.RunFor(3 * kSecond);
    for (auto& client : clients) client->Kill();
    simulator.RunFor(20 * kSecond);
    if (applications != nullptr) applications->CheckNothingLeft();
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

std::pair<uint64_t, TroubleOutcome> SimulateSeeds(
    int usual, const std::function<TroubleOutcome(uint64_t seed)>& simulate) {
  uint64_t first = 1, count = HowMany("TROUPE_SEEDS", usual);
  if (const char* seed = std::getenv("TROUPE_SEED")) {
    first = std::strtoull(seed, nullptr, 10);
    count = 1;
  }
  TroubleOutcome all;
  int bad = 0;
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t seed = first; seed < first + count && bad < 10; ++seed) {
    const TroubleOutcome outcome = simulate(seed);
    all.Add(outcome);
    EXPECT_EQ(outcome.violations, std::vector<std::string>()) << "TROUPE_SEED=" << seed;
    bad += !outcome.violations.empty();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf(
      "%d of %d steps succeeded, %llu updates, %llu elements of queues, %llu gradients, %llu "
      "events in %.1f s\n",
      all.succeeded, all.attempted, static_cast<unsigned long long>(all.updates),
      static_cast<unsigned long long>(all.elements), static_cast<unsigned long long>(all.gradients),
      static_cast<unsigned long long>(all.events), took.count());
  return {count, all};
}

}  // namespace troupe
