// What actors of a cluster of processes send to each other.
#include <future>
#include <random>

#include "tests/api/cluster_actors/cluster_actors.h"

struct Point {
  int32_t x = 0;
  std::string name;
  std::vector<int64_t> more;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Point& p) {
  return f(caf::meta::type_name("Point"), p.x, p.name, p.more);
}
struct Unregistered {
  int64_t x = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Unregistered& p) {
  return f(caf::meta::type_name("Unregistered"), p.x);
}
CAF_BEGIN_TYPE_ID_BLOCK(cluster_actors_test, first_custom_type_id)
CAF_ADD_TYPE_ID(cluster_actors_test, (Point))
CAF_END_TYPE_ID_BLOCK(cluster_actors_test)

namespace troupe {
namespace {

/// Nodes know the types above.
class ClusterMessagesTest : public ClusterActorsTest {
 protected:
  std::unique_ptr<caf::actor_system_config> MakeConfig() override {
    auto config = std::make_unique<Config>();
    config->add_message_types<caf::id_block::cluster_actors_test>();
    return config;
  }
};

TEST_F(ClusterMessagesTest, TensorsOfAllSizesComeInOrder) {
  auto sender = Join(0), receiver = Join(1);
  constexpr int kCount = 400;
  std::promise<std::vector<int>> seen;
  auto collect = [&](caf::event_based_actor*) -> caf::behavior {
    auto numbers = std::make_shared<std::vector<int>>();
    return {[numbers, &seen](int number, const Tensors& tensors) {
      // Each tensor is filled with the number.
      for (const Tensor& tensor : tensors) {
        for (float x : tensor.unchecked_values<float>()) {
          if (x != static_cast<float>(number)) number = -1;
        }
      }
      numbers->push_back(number);
      if (numbers->size() == kCount) seen.set_value(*numbers);
    }};
  };
  auto published = receiver->Publish("collector", receiver->system().spawn(collect));
  ASSERT_TRUE(published.ok()) << published.status();
  auto handle = sender->Find<caf::actor>("", "collector");
  ASSERT_TRUE(handle.ok()) << handle.status();
  caf::scoped_actor self(sender->system());
  std::mt19937 random(7);
  for (int i = 0; i < kCount; ++i) {
    Tensors tensors;
    for (uint32_t j = random() % 4; j > 0; --j) {
      const int64_t size = int64_t{1} << (random() % 19);
      Tensor tensor = *Tensor::Allocate(ElementType::kFloat, Shape({size}));
      for (float& x : tensor.mutable_values<float>()) x = static_cast<float>(i);
      tensors.push_back(std::move(tensor));
    }
    self->send(*handle, i, std::move(tensors));
  }
  auto future = seen.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  const std::vector<int> numbers = future.get();
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(numbers[static_cast<size_t>(i)], i);
}

TEST_F(ClusterMessagesTest, MessagesOfTheApplicationAndHandlesTravel) {
  auto first = Join(0), second = Join(1), third = Join(0);
  // Gives the handle that it is told to whoever asks.
  auto keeper = [](caf::event_based_actor*) -> caf::behavior {
    auto kept = std::make_shared<caf::actor>();
    return {[kept](caf::put_atom, const caf::actor& actor) { *kept = actor; },
            [kept](caf::get_atom) { return *kept; }};
  };
  auto mirror = [](caf::event_based_actor*) -> caf::behavior {
    return {[](Point p) {
      ++p.x;
      p.name += "!";
      p.more.push_back(p.x);
      return p;
    }};
  };
  auto published = first->Publish("keeper", first->system().spawn(keeper));
  ASSERT_TRUE(published.ok()) << published.status();
  caf::actor mirror_actor = second->system().spawn(mirror);
  {
    caf::scoped_actor self(second->system());
    self->request(*second->Find<caf::actor>("", "keeper"), caf::infinite, caf::put_atom_v,
                  mirror_actor)
        .receive([] {}, [](const caf::error& e) { FAIL() << ToStatus(e); });
  }
  // The third process has no connection to the second one yet.
  auto keeper_handle = third->Find<caf::actor>("", "keeper");
  ASSERT_TRUE(keeper_handle.ok()) << keeper_handle.status();
  auto handle = Ask<caf::actor>(third->system(), *keeper_handle, caf::get_atom_v);
  ASSERT_TRUE(handle.ok()) << handle.status();
  auto point = Ask<Point>(third->system(), *handle, Point{4, "p", {1}});
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ(point->x, 5);
  EXPECT_EQ(point->name, "p!");
  EXPECT_THAT(point->more, ElementsAre(1, 5));
  // What cannot travel is refused, and nobody else is concerned.
  auto none = Ask<Point>(third->system(), *handle, Unregistered{1});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument) << none.status();
  // A task does not know the application's types.
  auto task = third->FindAny(kTask0, ActorKind::kTask, "", absl::Seconds(5));
  ASSERT_TRUE(task.ok()) << task.status();
  none = Ask<Point>(third->system(), caf::actor_cast<caf::actor>(*task), Point{});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument) << none.status();
  EXPECT_THAT(none.status().message(), HasSubstr("types"));

  // The second process leaves: monitors fire, what was asked fails.
  caf::scoped_actor self(third->system());
  self->monitor(*handle);
  mirror_actor = nullptr;
  second.reset();
  bool down = false;
  self->receive([&](const caf::down_msg&) { down = true; },
                caf::after(std::chrono::seconds(5)) >> [] {});
  EXPECT_TRUE(down);
  point = Ask<Point>(third->system(), *handle, Point{});
  EXPECT_EQ(point.status().code(), absl::StatusCode::kUnavailable) << point.status();
  // And so does what is asked of a handle of its that comes later.
  handle = Ask<caf::actor>(third->system(), *keeper_handle, caf::get_atom_v);
  if (handle.ok() && *handle != nullptr) {
    point = Ask<Point>(third->system(), *handle, Point{});
    EXPECT_EQ(point.status().code(), absl::StatusCode::kUnavailable) << point.status();
  }
}

TEST_F(ClusterMessagesTest, AnActorThatDoesNotKeepUpIsNotSentMore) {
  auto node = Join(0), slow_node = Join(1);
  std::promise<void> go, all_handled;
  std::shared_future<void> gone = go.get_future().share();
  auto slow = [&](caf::blocking_actor* self) {
    gone.wait();
    int handled = 0;
    bool late = false;
    while (handled < 10000 && !late) {
      self->receive([&](int) { ++handled; },
                    caf::after(std::chrono::seconds(10)) >> [&] { late = true; });
    }
    if (!late) all_handled.set_value();
  };
  auto published = slow_node->Publish("slow", slow_node->system().spawn<caf::detached>(slow));
  ASSERT_TRUE(published.ok()) << published.status();
  auto handle = node->Find<caf::actor>("", "slow");
  ASSERT_TRUE(handle.ok()) << handle.status();
  caf::scoped_actor self(node->system());
  constexpr int kTells = 1000000;
  for (int i = 0; i < kTells; ++i) self->send(*handle, i);
  int refused = 0;
  absl::Status why;
  while (self->has_next_message()) {
    self->receive([&](const caf::error& error) {
      why = ToStatus(error);
      ++refused;
    });
  }
  EXPECT_EQ(why.code(), absl::StatusCode::kResourceExhausted) << why;
  EXPECT_EQ(refused, kTells - 10000);
  // Others are not concerned.
  auto task = node->Find<TaskActor>(kTask1, "");
  ASSERT_TRUE(task.ok());
  EXPECT_TRUE(Ask<TaskStatus>(node->system(), *task, status_atom_v).ok());
  go.set_value();
  EXPECT_EQ(all_handled.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

// What holds the I/O thread of a node goes on when the node is gone, and so do what it uses.
TEST_F(ClusterMessagesTest, ANodeMayEndWhileAHandlerHoldsItsThread) {
  auto asking = Join();
  auto held = ClusterNode::Join({.target = Target(0), .heartbeat_timeout = absl::Seconds(2)});
  ASSERT_TRUE(held.ok()) << held.status();
  std::promise<void> entered, go, left;
  std::shared_future<void> gone = go.get_future().share();
  caf::actor waits = (*held)->system().spawn([&]() -> caf::behavior {
    return {[&](int x) {
      entered.set_value();
      gone.wait();
      left.set_value();
      return x;
    }};
  });
  auto published = (*held)->Publish("waits", waits, {.quick = true});
  ASSERT_TRUE(published.ok()) << published.status();
  auto handle = asking->Find<caf::actor>("", "waits");
  ASSERT_TRUE(handle.ok()) << handle.status();
  caf::scoped_actor self(asking->system());
  auto request = self->request(*handle, caf::infinite, 1);
  entered.get_future().wait();
  waits = nullptr;
  published = absl::CancelledError("over");
  held->reset();
  absl::Status status;
  request.receive([](int) {}, [&](const caf::error& error) { status = ToStatus(error); });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  go.set_value();
  left.get_future().wait();
}

}  // namespace
}  // namespace troupe
