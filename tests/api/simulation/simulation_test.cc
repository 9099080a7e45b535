// Whole clusters with actors of applications in them, in one thread and virtual time.
#include <gtest/gtest.h>

#include "tests/actors/cluster/simulated_trouble.h"
#include "tests/api/simulation/simulated_actors.h"

namespace troupe {
namespace {

// Sanitizers make everything ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr uint64_t kSeeds = 40;
#else
constexpr uint64_t kSeeds = 1000;
#endif
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
  simulator.RunFor(60 * kSecond);
  EXPECT_EQ(actors.Missing(), "");
  actors.Stop();
  for (auto& client : clients) {
    EXPECT_GT(client->succeeded(), 400) << client->last();
    client->Stop();
  }
  simulator.RunFor(5 * kSecond);
  actors.CheckNothingLeft();
  simulator.CheckNothingLeft();
  const ActorLedger& ledger = *actors.ledger();
  EXPECT_GT(ledger.num_answered(), 10000);
  EXPECT_GT(ledger.num_told(), 1000);
  EXPECT_GT(ledger.num_fired(), 50);
  EXPECT_GT(ledger.num_heard(), 10);
  EXPECT_EQ(ledger.num_losses(), 0);
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
}

// Event by event: also in a process that has simulated others before.
TEST(ActorSimulation, SeedsReplay) {
  std::vector<uint64_t> first;
  for (uint64_t seed = 1; seed <= 10; ++seed) first.push_back(Simulate(seed).fingerprint);
  for (uint64_t seed = 10; seed >= 1; --seed) {
    EXPECT_EQ(Simulate(seed).fingerprint, first[seed - 1]) << seed;
  }
  EXPECT_NE(first[0], first[1]);
}

TEST(ActorSimulation, SurvivesTrouble) {
  const auto [seeds, all] = SimulateSeeds(kSeeds, Simulate);
  EXPECT_GT(all.succeeded, static_cast<int>(seeds) * 20);
}

}  // namespace
}  // namespace troupe
