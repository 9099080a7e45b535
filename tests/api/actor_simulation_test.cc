// Two processes' actors under random delays, cuts and restarts: every request is answered once,
// every message comes once at most and in order, and nothing is left.
#include <gtest/gtest.h>

#include <caf/scheduler/test_coordinator.hpp>
#include <map>
#include <random>
#include <thread>

#include "tests/api/actor_pair.h"

namespace troupe {
namespace {

using Tensors = std::vector<Tensor>;

/// Actors run when the test says so.
struct Config : caf::actor_system_config {
  Config() { set("scheduler.policy", caf::atom("testing")); }
};

/// Counts the answers to each of its requests.
class Asker final : public caf::monitorable_actor {
 public:
  explicit Asker(caf::actor_config& config) : caf::monitorable_actor(config) {}
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    if (!what->mid.is_response()) return;
    const uint64_t id = what->mid.request_id().integer_value();
    ++answers[id];
    if (what->content().match_elements<uint64_t>()) {
      EXPECT_EQ(what->content().get_as<uint64_t>(0), id);
      ++values;
    }
  }
  std::map<uint64_t, int> answers;
  int values = 0;
};

class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed) {
    caf::actor_system& system = Use(pair_.client());
    caf::actor_config config;
    asker_ = caf::make_actor<Asker, caf::strong_actor_ptr>(system.next_actor_id(), system.node(),
                                                           &system, config);
    Use(pair_.task());
    Publish();
  }

  void Run() {
    Find();
    for (int step = 0; step < 400; ++step) {
      const uint32_t what = random_() % 1000;
      if (what < 350) {
        Send(what % 2 == 0);
      } else if (what < 700) {
        for (uint32_t i = random_() % 4; i > 0; --i) pair_.ArriveOne(random_());
      } else if (what < 980) {
        for (ActorHost* host : {pair_.task(), pair_.client()}) Scheduler(host).try_run_once();
      } else if (what < 990) {
        pair_.Disconnect();
        Again();
      } else if (what < 995) {
        published_.reset();
        it_ = nullptr;  // of a system that ends
        pair_.Start(0, next_life_++);
        Use(pair_.task());
        Publish();
        Again();
      } else {
        caf::anon_send_exit(it_, caf::exit_reason::kill);
        Settle();
        published_.reset();
        Publish();
        Settle();
        Find();
      }
    }
    Settle();
    pair_.Disconnect();
    Settle();
    auto* asker = static_cast<Asker*>(asker_->get());
    EXPECT_EQ(asker->answers.size(), asked_);
    for (const auto& [id, count] : asker->answers) EXPECT_EQ(count, 1) << "request " << id;
    EXPECT_TRUE(pair_.client()->idle());
    EXPECT_TRUE(pair_.task()->idle());
    values += asker->values;
    told += told_;
  }

  static int values, told;

 private:
  caf::actor_system& Use(ActorHost* host) {
    configs_.push_back(std::make_unique<Config>());
    return **host->System(configs_.back().get());
  }
  static caf::scheduler::test_coordinator& Scheduler(ActorHost* host) {
    return dynamic_cast<caf::scheduler::test_coordinator&>(host->system().scheduler());
  }
  /// All that is under way arrives and is handled.
  void Settle() {
    bool any = true;
    while (any) {
      any = pair_.Arrive();
      for (ActorHost* host : {pair_.task(), pair_.client()}) any |= Scheduler(host).run() > 0;
    }
  }
  void Publish() {
    // What one actor sends to another grows.
    it_ = pair_.task()->system().spawn([this]() -> caf::behavior {
      auto last = std::make_shared<uint64_t>(0);
      const auto check = [last](uint64_t number, const Tensors& tensors) {
        EXPECT_LT(*last, number);
        *last = number;
        for (const Tensor& tensor : tensors) {
          EXPECT_EQ(tensor.unchecked_data<uint64_t>()[tensor.num_elements() - 1], number);
        }
      };
      return {[check](uint64_t number, uint64_t id, const Tensors& tensors) {
                check(number, tensors);
                return id;
              },
              [this, check](uint64_t number, const Tensors& tensors) {
                check(number, tensors);
                ++told_;
              }};
    });
    published_ =
        std::make_unique<PublishedActor>(*pair_.task()->Publish("it", it_, {}, absl::Seconds(5)));
  }
  void Again() {
    Settle();
    pair_.Connect();
    Settle();
    Find();
  }
  void Find() {
    std::atomic<bool> done{false};
    absl::StatusOr<caf::strong_actor_ptr> found = absl::UnknownError("");
    std::thread thread([&] {
      found = pair_.client()->Find(ActorPair::kTaskName, ActorKind::kPublished, "it",
                                   absl::Seconds(20));
      done = true;
    });
    while (!done) {
      if (!pair_.Arrive()) std::this_thread::yield();
    }
    thread.join();
    ASSERT_TRUE(found.ok()) << found.status();
    handle_ = *found;
  }
  void Send(bool ask) {
    Tensors tensors;
    for (uint32_t i = random_() % 3; i > 0; --i) {
      tensors.push_back(Tensor::Uninitialized(ElementType::kUint64,
                                              Shape({1 + static_cast<int64_t>(random_() % 2000)})));
      const int64_t last = tensors.back().num_elements() - 1;
      tensors.back().mutable_data<uint64_t>()[last] = number_;
    }
    if (ask) {
      const uint64_t id = ++asked_;
      handle_->enqueue(caf::make_mailbox_element(asker_, caf::message_id(id).with_normal_priority(),
                                                 {}, number_++, id, std::move(tensors)),
                       nullptr);
    } else {
      handle_->enqueue(caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, number_++,
                                                 std::move(tensors)),
                       nullptr);
    }
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Config>> configs_;  ///< Outlive the pair.
  ActorPair pair_;
  caf::actor it_;
  std::unique_ptr<PublishedActor> published_;
  caf::strong_actor_ptr asker_, handle_;
  uint64_t number_ = 1, asked_ = 0, next_life_ = 100;
  int told_ = 0;
};
int Simulation::values = 0;
int Simulation::told = 0;

TEST(ActorSimulationTest, EveryRequestIsAnsweredOnce) {
  const char* seeds = std::getenv("TROUPE_SEEDS");
  const uint32_t count = seeds != nullptr ? static_cast<uint32_t>(std::atoi(seeds)) : 100;
  for (uint32_t seed = 1; seed <= count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Simulation(seed).Run();
  }
  // Most are answered by the actor itself, and told.
  EXPECT_GT(Simulation::values, 20 * static_cast<int>(count));
  EXPECT_GT(Simulation::told, 20 * static_cast<int>(count));
}

}  // namespace
}  // namespace troupe
