#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "tests/actors/cluster/simulated_trouble.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

constexpr int kTasks = 3;

using Clients = SimulatedClients;

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

/// A client for each kind of work, busy for five seconds (or a part of it); nothing is left
/// afterwards.
void RunClients(ClusterSimulator* simulator, const std::vector<const char*>& kinds) {
  Clients clients;
  for (const char* kind : kinds) {
    SimulatedClient::Options options{.master = static_cast<int>(clients.size()) % kTasks,
                                     .work = {kind}};
    options.think = 2000;
    clients.push_back(std::make_unique<SimulatedClient>(simulator, options));
    clients.back()->Start();
  }
  simulator->RunFor(5 * kSecond / kSlow);
  for (auto& client : clients) {
    EXPECT_GT(client->succeeded(), 100 / kSlow) << client->last();
    client->Stop();
  }
  simulator->RunFor(kSecond);
  simulator->CheckNothingLeft();
  EXPECT_EQ(simulator->schedule()->violations(), std::vector<std::string>());
}

/// What one client gives, now and then, is not enough for the other one, most of whose steps end
/// with their deadline, and must leave alone what they have not got.
void RunLateTaker(ClusterSimulator* simulator, const std::vector<std::string>& giver,
                  const std::string& taker) {
  SimulatedClient gives(simulator, {.master = 0, .work = giver, .think = kSecond});
  SimulatedClient takes(simulator, {.master = 1, .work = {taker}, .think = 1000});
  gives.Start();
  takes.Start();
  simulator->RunFor(100 * kSecond / kSlow);
  gives.Stop();
  takes.Stop();
  simulator->RunFor(kSecond);
  simulator->CheckNothingLeft();
  EXPECT_GT(takes.succeeded(), 5 / kSlow);
  EXPECT_GT(takes.attempted() - takes.succeeded(), 100 / kSlow);
  EXPECT_EQ(simulator->schedule()->violations(), std::vector<std::string>());
}

// What one client puts in, another one takes out.
TEST(Simulation, ClientsShareAQueue) {
  ClusterSimulator simulator(2, kTasks, {});
  RunClients(&simulator, {"put 0 1", "put 1 1", "put 2 1", "take 0 1", "take 1 1", "pair 2 1"});
  EXPECT_GT(simulator.queue_ledger()->num_taken(), 1000u / kSlow);
}

// A step whose deadline passes while it waits for a second element gives the first one back.
TEST(Simulation, LateStepsTakeNothing) {
  ClusterSimulator simulator(4, kTasks, {});
  RunLateTaker(&simulator, {"put 0 1"}, "pair 2 1");
  EXPECT_EQ(simulator.queue_ledger()->num_missing(), 0);
}

// Whoever takes the mean gets all gradients that are in; the number of them, and steps, go along.
TEST(Simulation, ClientsShareAnAccumulator) {
  ClusterSimulator simulator(2, kTasks, {});
  simulator.accumulator_ledger()->ExpectPromptly(kSecond / 20);
  RunClients(&simulator, {"apply 0 1", "apply 1 1", "apply 2 1", "mean 0 1", "mean 1 1", "old 2 1",
                          "advance 0 1", "count 2 1"});
  EXPECT_GT(simulator.accumulator_ledger()->num_taken(), 1000 / kSlow);
  EXPECT_EQ(simulator.accumulator_ledger()->num_missing(), 0);
}

// A step whose deadline passes while it waits for a second gradient leaves the first one there, and
// old gradients do not serve it.
TEST(Simulation, LateStepsTakeNoGradients) {
  ClusterSimulator simulator(4, kTasks, {});
  simulator.accumulator_ledger()->ExpectPromptly(kSecond / 20);
  RunLateTaker(&simulator, {"apply 0 1", "old 2 1"}, "mean 2 1");
  EXPECT_EQ(simulator.accumulator_ledger()->num_missing(), 0);
}

const std::vector<std::string> kSynchronization = {
    "lock 0 1",    "lock 1 1",    "lock 2 1",   "table 0 1",  "table 1 1", "stage 0 1", "stage 1 1",
    "unstage 2 1", "unstage 0 1", "insert 0 2", "insert 1 2", "join 2 2",  "joins 0 2"};

// Counts under a mutex; what is staged, joined, and put into a table, comes out once.
TEST(Simulation, ClientsSynchronize) {
  ClusterSimulator simulator(2, kTasks, {});
  RunClients(&simulator,
             {"lock 0 1", "lock 1 1", "table 0 1", "stage 0 1", "unstage 2 1", "insert 0 2",
              "insert 1 2", "join 2 2", "lock 2 1", "joins 0 2", "stage 1 1", "unstage 0 1"});
  using Place = SimulatedWork::Place;
  EXPECT_GT(simulator.mutex_ledger()->num_held(), 1000 / kSlow);
  EXPECT_GT(simulator.table_ledger()->num_found(), 500 / kSlow);
  EXPECT_GT(simulator.queue_ledger(Place::kStage)->num_taken(), 500u / kSlow);
  EXPECT_GT(simulator.queue_ledger(Place::kBarrier)->num_taken(), 500u / kSlow);
}

// A step whose deadline passes while it waits for a second tuple takes none.
TEST(Simulation, LateStepsLeaveBarriersAlone) {
  ClusterSimulator simulator(4, kTasks, {});
  RunLateTaker(&simulator, {"insert 0 1"}, "joins 2 1");
  EXPECT_EQ(simulator.queue_ledger(SimulatedWork::Place::kBarrier)->num_missing(), 0);
}

// The same while tasks and clients die, and messages are late.
TEST(Simulation, SynchronizationSurvivesTrouble) {
  const auto [seeds, all] = SimulateSeeds(250, [](uint64_t seed) {
    TroubleOptions options;
    options.work = kSynchronization;
    return SimulateTrouble(seed, options);
  });
  EXPECT_GT(all.succeeded, static_cast<int>(seeds) * 50);
}

TEST(Simulation, SeedsReplay) {
  const auto print = [](uint64_t seed) { return SimulateTrouble(seed, {}).fingerprint; };
  const uint64_t seven = print(7);
  EXPECT_NE(seven, print(8));
  EXPECT_EQ(seven, print(7));
}

TEST(Simulation, SurvivesTrouble) {
  const auto [seeds, all] =
      SimulateSeeds(1000, [](uint64_t seed) { return SimulateTrouble(seed, {}); });
  EXPECT_GT(all.succeeded, static_cast<int>(seeds) * 50);
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
  for (int i = 0; i < 20; i += kSlow) {
    ClusterSimulator simulator(3, kTasks, {});
    SimulatedClient client(&simulator, {.master = 1, .work = {"large 0 2"}, .think = 1000 * kSlow});
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
  for (int i = 0; i < 20; i += kSlow) {
    ClusterSimulator simulator(4, kTasks, {});
    SimulatedClient client(&simulator, {.master = 1, .work = {"large 0 2"}, .think = 1000 * kSlow});
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
  for (int i = 0; i < 100; i += kSlow) {
    simulator.RunFor(kSecond / 50);
    EXPECT_LE(simulator.task(0)->role()->master()->num_signatures(), 2u);
    for (int task = 0; task < kTasks; ++task) {
      EXPECT_LE(simulator.task(task)->role()->worker()->num_graphs(), 4u);
    }
  }
  EXPECT_GT(client.succeeded(), 500 / kSlow) << client.last();
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
  simulator.RunFor(3 * kSecond / kSlow);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const double rate = (steps() - before) / seconds;
  std::printf("%d steps in %.2f s of processor time: %.0f a second\n", steps() - before, seconds,
              rate);
  EXPECT_EQ(simulator.schedule()->violations(), std::vector<std::string>());
  EXPECT_GT(steps() - before, 1000 / kSlow);
  if (!kSlowBuild) {
    EXPECT_GT(rate, 10000);  // Of one processor.
  }
}

}  // namespace
}  // namespace troupe
