/// Clients and faults for a simulated cluster: some seconds of trouble, then peace.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_TROUBLE_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_TROUBLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/actors/cluster/simulated_client.h"
#include "tests/actors/cluster/simulator.h"

namespace troupe {

using SimulatedClients = std::vector<std::unique_ptr<SimulatedClient>>;

struct TroubleOptions {
  int tasks = 3;
  int clients = 4;                  ///< The fourth shares a master with the first.
  ClusterTime time = 12 * kSecond;  ///< Of trouble.
  std::vector<std::string> work;    ///< One of these for each client, besides the cluster's own.
  SimulatedApplications* applications = nullptr;
};

struct TroubleOutcome {
  int attempted = 0, succeeded = 0;
  uint64_t updates = 0, elements = 0, gradients = 0, events = 0, fingerprint = 0;
  std::vector<std::string> violations;

  void Add(const TroubleOutcome& other);
};

/// Nothing may be unanswered, lost, done twice, or left.
TroubleOutcome SimulateTrouble(uint64_t seed, const TroubleOptions& options);

/// Has `simulate` go through the seeds from 1 to `usual` (`HowMany`), and prints what came of them.
/// TROUPE_SEED=N replays one; TROUPE_SEEDS=N goes through as many. Violations are the test's
/// failures. The result is the number of seeds, and the sum.
std::pair<uint64_t, TroubleOutcome> SimulateSeeds(
    int usual, const std::function<TroubleOutcome(uint64_t seed)>& simulate);

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_TROUBLE_H_
