// Two processes' actors under random delays, cuts and restarts: every request is answered once,
// every message comes once at most and in order, who is linked hears of the other's end once, and
// nothing is left.
#include <gtest/gtest.h>

#include <caf/scheduler/test_coordinator.hpp>
#include <map>
#include <random>

#include "tests/api/actor_pair.h"
#include "tests/how_many.h"

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

/// What a simulation of two processes, whose actors run when it says so, is made of.
class PairSimulation {
 protected:
  explicit PairSimulation(uint32_t seed) : random_(seed) {}

  caf::actor_system& Use(ActorHost* host) {
    configs_.push_back(std::make_unique<Config>());
    return **host->System(configs_.back().get());
  }
  static caf::scheduler::test_coordinator& Scheduler(ActorHost* host) {
    return dynamic_cast<caf::scheduler::test_coordinator&>(host->system().scheduler());
  }
  void RunOne() {
    for (ActorHost* host : {pair_.task(), pair_.client()}) Scheduler(host).try_run_once();
  }
  /// All that is under way arrives and is handled.
  void Settle() {
    bool any = true;
    while (any) {
      any = pair_.Arrive();
      for (ActorHost* host : {pair_.task(), pair_.client()}) any |= Scheduler(host).run() > 0;
    }
  }
  /// What the task has published, for the client. All that is under way arrives.
  caf::strong_actor_ptr Find(const std::string& name) {
    auto found = std::make_shared<absl::StatusOr<caf::strong_actor_ptr>>(
        absl::UnknownError("nobody has answered"));
    pair_.client()->FindAsync(ActorPair::kTaskName, ActorKind::kPublished, name, absl::Seconds(20),
                              [found](auto answer) { *found = std::move(answer); });
    pair_.Arrive();
    EXPECT_TRUE(found->ok()) << found->status();
    return found->ok() ? **found : nullptr;
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Config>> configs_;  ///< Outlive the pair.
  ActorPair pair_;
};

/// Runs `Kind` with the seeds from 1 on, and returns how many that were.
template <typename Kind>
int RunSeeds() {
  const int count = HowMany("TROUPE_SEEDS", 100, /*one_in=*/10);
  for (int seed = 1; seed <= count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Kind(seed).Run();
  }
  return count;
}

class RequestSimulation final : PairSimulation {
 public:
  explicit RequestSimulation(uint32_t seed) : PairSimulation(seed) {
    caf::actor_system& system = Use(pair_.client());
    caf::actor_config config;
    asker_ = caf::make_actor<Asker, caf::strong_actor_ptr>(system.next_actor_id(), system.node(),
                                                           &system, config);
    Use(pair_.task());
    Publish();
  }

  void Run() {
    handle_ = Find("it");
    for (int step = 0; step < 400; ++step) {
      const uint32_t what = random_() % 1000;
      if (what < 350) {
        Send(what % 2 == 0);
      } else if (what < 700) {
        for (uint32_t i = random_() % 4; i > 0; --i) pair_.ArriveOne(random_());
      } else if (what < 980) {
        RunOne();
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
        handle_ = Find("it");
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
    handle_ = Find("it");
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

  caf::actor it_;
  std::unique_ptr<PublishedActor> published_;
  caf::strong_actor_ptr asker_, handle_;
  uint64_t number_ = 1, asked_ = 0, next_life_ = 100;
  int told_ = 0;
};
int RequestSimulation::values = 0;
int RequestSimulation::told = 0;

TEST(ActorSimulationTest, EveryRequestIsAnsweredOnce) {
  const int count = RunSeeds<RequestSimulation>();
  // Most are answered by the actor itself, and told.
  EXPECT_GT(RequestSimulation::values, 20 * count);
  EXPECT_GT(RequestSimulation::told, 20 * count);
}

/// Ends only when it is told to, and remembers what it gets.
class Linked final : public caf::monitorable_actor {
 public:
  explicit Linked(caf::actor_config& config) : caf::monitorable_actor(config) {}
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    if (getf(is_terminated_flag)) return;
    if (what->content().match_elements<caf::exit_msg>()) {
      on_exit(what->content().get_as<caf::exit_msg>(0));
    } else {
      on_message(what->sender);
    }
  }
  std::function<void(const caf::exit_msg&)> on_exit = [](const caf::exit_msg&) { FAIL(); };
  std::function<void(const caf::strong_actor_ptr& sender)> on_message = {};
};

/// Pairs of an actor that links itself (and unlinks), and one of the other process.
class LinkSimulation final : PairSimulation {
 public:
  explicit LinkSimulation(uint32_t seed) : PairSimulation(seed) {
    for (ActorHost* host : {pair_.task(), pair_.client()}) Use(host);
    // Each of the client's actors meets a new one of the task's.
    greeter_ = Make(pair_.task());
    Of(greeter_)->on_message = [this](const caf::strong_actor_ptr& sender) {
      met_ = {Make(pair_.task()), sender};
      Of(met_.first)->on_message = [](const caf::strong_actor_ptr&) {};
      sender->enqueue(met_.first, caf::make_message_id(), caf::make_message(1), nullptr);
    };
    published_ = std::make_unique<PublishedActor>(*pair_.task()->Publish(
        "greeter", caf::actor_cast<caf::actor>(greeter_), {}, absl::Seconds(5)));
  }
  ~LinkSimulation() {
    for (auto& pair : pairs_) {
      for (End* end : {&pair->owner, &pair->other}) End_(end, caf::error());
    }
  }

  void Run() {
    const caf::strong_actor_ptr greeter = Find("greeter");
    ASSERT_NE(greeter, nullptr);
    for (int i = 0; i < 4; ++i) Meet(greeter);
    for (int step = 0; step < 200; ++step) {
      Pair& pair = *pairs_[random_() % pairs_.size()];
      const uint32_t what = random_() % 100;
      if (what < 30) {
        Toggle(&pair);
      } else if (what < 60) {
        pair_.ArriveOne(random_());
      } else if (what < 90) {
        RunOne();
      } else if (what < 94) {
        End_(what % 2 == 0 ? &pair.owner : &pair.other, Reasons()[random_() % Reasons().size()]);
      } else if (what < 97) {
        Meet(greeter);
      }
    }
    const bool settled = random_() % 2 == 0;
    if (settled) {
      Settle();
      for (auto& pair : pairs_) CheckSettled(*pair);
    }
    cut_ = true;
    pair_.Disconnect();
    Settle();
    for (auto& pair : pairs_) {
      EXPECT_FALSE(!pair->owner.ended && pair->linked) << "the owner hears of it";
      const bool told = pair->other.exits == 1;
      if (settled && !pair->other.ended) {
        EXPECT_EQ(told, pair->linked_at_cut || pair->linked);
      }
    }
    EXPECT_TRUE(pair_.client()->idle());
    EXPECT_TRUE(pair_.task()->idle());
  }

  static int exits;

 private:
  struct End {
    caf::strong_actor_ptr self, handle;  ///< The handle is what the other one has of it.
    bool ended = false;
    caf::error reason;
    int exits = 0;
  };
  struct Pair {
    End owner, other;
    bool linked = false;         ///< As the owner knows.
    bool linked_at_cut = false;  ///< Until then.
  };

  static const std::vector<caf::error>& Reasons() {
    static const std::vector<caf::error> reasons = {
        caf::error(), caf::make_error(caf::exit_reason::kill),
        caf::make_error(caf::sec::runtime_error, std::string("why"))};
    return reasons;
  }
  static Linked* Of(const caf::strong_actor_ptr& actor) {
    return static_cast<Linked*>(actor->get());
  }
  static caf::strong_actor_ptr Make(ActorHost* host) {
    caf::actor_system& system = host->system();
    caf::actor_config config;
    return caf::make_actor<Linked, caf::strong_actor_ptr>(system.next_actor_id(), system.node(),
                                                          &system, config);
  }
  /// A new pair; either end is the owner.
  void Meet(const caf::strong_actor_ptr& greeter) {
    caf::strong_actor_ptr here = Make(pair_.client()), of_there;
    Of(here)->on_message = [&](const caf::strong_actor_ptr& sender) { of_there = sender; };
    met_ = {};
    greeter->enqueue(here, caf::make_message_id(), caf::make_message(1), nullptr);
    while (of_there == nullptr && pair_.Arrive()) {
    }
    ASSERT_NE(of_there, nullptr);
    Of(here)->on_message = [](const caf::strong_actor_ptr&) {};
    End client{here, met_.second, false, {}, 0}, task{met_.first, of_there, false, {}, 0};
    const bool client_owns = random_() % 2 == 0;
    pairs_.push_back(std::make_unique<Pair>());
    Pair* pair = pairs_.back().get();
    pair->owner = client_owns ? client : task;
    pair->other = client_owns ? task : client;
    Of(pair->owner.self)->on_exit = [this, pair](const caf::exit_msg& exit) {
      EXPECT_TRUE(pair->linked);
      pair->linked = false;
      pair->linked_at_cut = cut_;
      OnExit(exit, pair->other, &pair->owner);
    };
    Of(pair->other.self)->on_exit = [this, pair](const caf::exit_msg& exit) {
      EXPECT_TRUE(cut_ || (pair->owner.ended && pair->linked));
      EXPECT_EQ(pair->other.exits, 0);
      OnExit(exit, pair->owner, &pair->other);
    };
  }
  void OnExit(const caf::exit_msg& exit, const End& from, End* to) {
    EXPECT_EQ(exit.source, from.handle->get()->address());
    if (cut_) {
      // What was told before may have arrived.
      EXPECT_EQ(exit.reason, caf::make_error(caf::exit_reason::remote_link_unreachable));
    } else {
      EXPECT_TRUE(from.ended);
      EXPECT_EQ(exit.reason, from.reason);
    }
    ++to->exits;
    ++exits;
  }
  void Toggle(Pair* pair) {
    if (pair->owner.ended) return;
    pair->linked = !pair->linked;
    if (pair->linked) {
      Of(pair->owner.self)->link_to(pair->other.handle);
    } else {
      Of(pair->owner.self)->unlink_from(pair->other.handle);
    }
  }
  void End_(End* end, const caf::error& reason) {
    if (std::exchange(end->ended, true)) return;
    end->reason = reason;
    Of(end->self)->cleanup(caf::error(reason), nullptr);
  }
  void CheckSettled(const Pair& pair) {
    EXPECT_FALSE(pair.linked && !pair.owner.ended && pair.other.ended);
    if (!pair.other.ended) {
      EXPECT_EQ(pair.other.exits, pair.owner.ended && pair.linked ? 1 : 0);
    }
  }

  caf::strong_actor_ptr greeter_;
  std::pair<caf::strong_actor_ptr, caf::strong_actor_ptr> met_;
  std::unique_ptr<PublishedActor> published_;
  std::vector<std::unique_ptr<Pair>> pairs_;
  bool cut_ = false;
};
int LinkSimulation::exits = 0;

TEST(ActorSimulationTest, WhoIsLinkedHearsOfTheEndOnce) {
  const int count = RunSeeds<LinkSimulation>();
  EXPECT_GT(LinkSimulation::exits, 5 * count);
}

}  // namespace
}  // namespace troupe
