// Whole clusters with actors of applications in them, in one thread and virtual time.
#include <gtest/gtest.h>

#include "tests/actors/cluster/simulated_trouble.h"
#include "tests/api/simulation/simulated_actors.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

constexpr int kTasks = 3;

TroubleOutcome Simulate(uint64_t seed) {
  SimulatedActors actors({});
  return SimulateTrouble(seed, {.clients = 2,
                                .time = 5 * kSecond,
                                .work = SimulatedActors::Work(),
                                .applications = &actors});
}

// Without faults all asks but those that their actor refuses are answered, all who are linked hear
// of ends, with the reason, and no process is lost.
TEST(ActorSimulation, InPeaceEverythingIsHeard) {
  SimulatedActors actors({.losses = false});
  ClusterSimulator simulator(1, kTasks, {}, &actors);
  actors.Start();
  std::vector<std::unique_ptr<SimulatedClient>> clients;
  for (const std::string& work : SimulatedActors::Work()) {
    SimulatedClient::Options options{.master = static_cast<int>(clients.size()) % kTasks,
                                     .work = {work}};
    clients.push_back(std::make_unique<SimulatedClient>(&simulator, options));
    clients.back()->Start();
  }
  simulator.RunFor(60 * kSecond / kSlow);
  EXPECT_EQ(actors.Missing(), "");
  actors.Stop();
  for (auto& client : clients) {
    EXPECT_GT(client->succeeded(), 400 / kSlow) << client->last();
    client->Stop();
  }
  simulator.RunFor(5 * kSecond);
  actors.CheckNothingLeft();
  simulator.CheckNothingLeft();
  const ActorLedger& ledger = *actors.ledger();
  EXPECT_GT(ledger.num_answered(), 10000 / kSlow);
  EXPECT_GT(ledger.num_told(), 1000 / kSlow);
  EXPECT_GT(ledger.num_fired(), 50 / kSlow);
  EXPECT_GT(ledger.num_heard(), 10 / kSlow);
  EXPECT_EQ(ledger.num_losses(), 0);
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
}

// Event by event: also in a process that has simulated others before.
TEST(ActorSimulation, SeedsReplay) {
  std::vector<uint64_t> first;
  constexpr uint64_t kSeeds = 10 / kSlow;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) first.push_back(Simulate(seed).fingerprint);
  for (uint64_t seed = kSeeds; seed >= 1; --seed) {
    EXPECT_EQ(Simulate(seed).fingerprint, first[seed - 1]) << seed;
  }
  EXPECT_NE(first[0], first[1]);
}

TEST(ActorSimulation, SurvivesTrouble) {
  const auto [seeds, all] = SimulateSeeds(1000, Simulate);
  EXPECT_GT(all.succeeded, static_cast<int>(seeds) * 20);
}

}  // namespace
}  // namespace troupe
