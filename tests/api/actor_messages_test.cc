// Messages between the actors of two processes, byte by byte: what travels, and what arrives if the
// bytes are others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "api/internal/actor_frames.h"
#include "api/internal/actor_protocol.h"
#include "devices/resource_handle.h"
#include "kernels/queues/queue.h"
#include "tests/api/actor_pair.h"
#include "tests/how_many.h"

namespace {
/// Neither side has announced it.
struct Unannounced {
  int64_t x = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Unannounced& u) {
  return f(caf::meta::type_name("Unannounced"), u.x);
}
}  // namespace

namespace troupe {
namespace {

using Tensors = std::vector<Tensor>;
using actor_protocol::kUnlink;

class ActorMessagesTest : public testing::Test {
 protected:
  ActorMessagesTest() {
    pair_.on_frame = [this](int to, const std::string& body) {
      if (body.empty()) return;
      std::lock_guard<std::mutex> lock(mutex_);
      std::vector<std::string>& kind = frames_[{to, body[0]}];
      if (kind.size() < 20) kind.push_back(body);
    };
  }
  /// A handle that the client has to an actor of the task's.
  caf::actor Reach(const caf::actor& actor) {
    auto published = pair_.task()->Publish("it", actor, {}, absl::Seconds(5));
    EXPECT_TRUE(published.ok()) << published.status();
    published_.push_back(*std::move(published));
    return Find("it", ActorKind::kPublished);
  }
  caf::actor Find(const std::string& name, ActorKind kind) {
    absl::StatusOr<caf::strong_actor_ptr> handle = absl::UnknownError("");
    std::thread thread([&] {
      handle = pair_.client()->Find(ActorPair::kTaskName, kind, name, absl::Seconds(20));
      done_ = true;
    });
    Until([&] { return done_.exchange(false); });
    thread.join();
    EXPECT_TRUE(handle.ok()) << handle.status();
    return handle.ok() ? caf::actor_cast<caf::actor>(*handle) : caf::actor();
  }
  template <typename Condition>
  void Until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      if (!pair_.Arrive()) std::this_thread::yield();
    }
  }
  /// The answer, as text; or the error's code.
  std::string Ask(const caf::actor& actor, caf::message content) {
    std::string answer;
    std::atomic<bool> done{false};
    caf::scoped_actor self(pair_.client()->system());
    std::thread thread([&] {
      self->request(actor, std::chrono::seconds(20), std::move(content))
          .receive(
              [&](const std::string& text) { answer = text; },
              [&](const caf::error& e) { answer = absl::StatusCodeToString(ToStatus(e).code()); });
      done = true;
    });
    Until([&] { return done.load(); });
    thread.join();
    return answer;
  }

  /// A frame to the actor `to` of a side: what an actor of the node `from` says to it.
  std::string Send(int side, caf::actor_id to, caf::message_id id, uint64_t from, caf::actor_id who,
                   const caf::message& content, int64_t size = 100) {
    std::string frame = actor_protocol::ForLife(actor_protocol::kSend,
                                                side == 0 ? ActorPair::kTask : ActorPair::kClient);
    WireWriter writer(&frame);
    writer.Number<uint64_t>(to);
    writer.Number<uint64_t>(id.integer_value());
    writer.Number<uint64_t>(from);
    writer.Number<uint64_t>(who);
    writer.Number<int64_t>(size);
    caf::scoped_execution_unit unit(side == 0 ? &pair_.client()->system()
                                              : &pair_.task()->system());
    Tensors none;
    FrameSerializer sink(&unit, &frame, &none);
    EXPECT_FALSE(content.save(sink));
    return frame;
  }

  ActorPair pair_;
  std::vector<PublishedActor> published_;
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::map<std::pair<int, char>, std::vector<std::string>> frames_;
};

/// Says what it gets. It survives the end of whoever is linked with it: a mutated frame may say
/// that somebody is.
caf::behavior Echo(caf::event_based_actor* self) {
  self->set_exit_handler([](const caf::exit_msg&) {});
  self->set_default_handler(
      [](caf::scheduled_actor*, caf::message_view& view) -> caf::result<caf::message> {
        return caf::make_message(caf::to_string(view.copy_content_to_message()));
      });
  return {[](caf::ping_atom) { return "pong"; }};
}

TEST_F(ActorMessagesTest, ValuesOfManyTypesComeAsTheyWere) {
  const caf::actor echo = Reach(pair_.task()->system().spawn(Echo));
  const auto check = [&](const caf::message& message) {
    EXPECT_EQ(Ask(echo, message), caf::to_string(message));
  };
  check(caf::make_message(int8_t{-1}, uint8_t{200}, int16_t{-300}, uint16_t{60000}));
  check(caf::make_message(int32_t{-70000}, uint32_t{4000000000U}, int64_t{-1} << 62, ~uint64_t{0}));
  check(caf::make_message(1.5f, -2.25, 3.125L, true, false));
  check(caf::make_message(std::string("text\0with a nought", 18), std::u16string(u"sixteen"),
                          std::u32string(U"thirty-two")));
  check(caf::make_message(std::vector<std::string>{"a", "", std::string(100000, 'b')}));
  check(caf::make_message(caf::get_atom_v, std::vector<char>(5000, 'x'), caf::error()));
  check(caf::make_message(1, caf::make_error(caf::sec::end_of_stream, std::string("why"))));
  check(caf::make_message(caf::make_message(1, caf::make_message(2, std::string("deep")))));
  check(caf::make_message(DeviceStatus{"d", "CPU", {"a", "b"}, 1, 2, 3}));
  check(caf::make_message(std::string(3 << 20, 'l')));  // larger than a message of the transport
  check(caf::message());
  // Tensors beside the frame and in it, of all sorts.
  Tensors tensors = {Tensor(), Tensor::Scalar<float>(1), Tensor::Vector<std::string>({"s", "t"}),
                     Tensor::Vector<double>({}), Tensor::Scalar<bool>(true)};
  tensors.push_back(Tensor::Uninitialized(ElementType::kInt64, Shape({100, 50})));
  std::iota(tensors.back().mutable_data<int64_t>(), tensors.back().mutable_data<int64_t>() + 5000,
            0);
  check(caf::make_message(ask_atom_v, tensors));
  check(caf::make_message(tensors, tensors));
}

TEST_F(ActorMessagesTest, WhatCannotTravelIsRefused) {
  const caf::actor echo = Reach(pair_.task()->system().spawn(Echo));
  // Nested without end.
  caf::error deep;
  for (int i = 0; i < 1000; ++i) deep = caf::make_error(caf::sec::runtime_error, std::move(deep));
  EXPECT_EQ(Ask(echo, caf::make_message(1, deep)), "INVALID_ARGUMENT");
  EXPECT_EQ(Ask(echo, caf::make_message(Tensors(5000, Tensor::Vector<std::string>({"s"})))),
            "INVALID_ARGUMENT");
  // More than the peer takes in one piece, which would be the end of the connection.
  const int64_t more = ActorPair::kMaxTensorBytes + 1;
  EXPECT_EQ(Ask(echo, caf::make_message(Tensor::Uninitialized(ElementType::kUint8, Shape({more})))),
            "INVALID_ARGUMENT");
  EXPECT_EQ(Ask(echo, caf::make_message(Tensor::Vector<std::string>({std::string(more, 's')}))),
            "INVALID_ARGUMENT");
  EXPECT_EQ(Ask(echo, caf::make_message(std::string(more, 's'))), "INVALID_ARGUMENT");
  // The connection goes on.
  EXPECT_EQ(Ask(echo, caf::make_message(caf::ping_atom_v)), "pong");
}

// Whoever asks hears why, instead of waiting.
TEST_F(ActorMessagesTest, AnswersThatCannotTravelAreErrors) {
  const caf::actor answers = Reach(pair_.task()->system().spawn([]() -> caf::behavior {
    return {[](caf::get_atom) { return Unannounced{1}; },
            [](ask_atom) { return Tensors(5000, Tensor::Vector<std::string>({"s"})); },
            // A variant of this kind has no form on the wire.
            [](size_atom) { return Tensors{Tensor::Scalar<Variant>(Variant(1))}; },
            [](caf::ping_atom) { return "pong"; }};
  }));
  EXPECT_EQ(Ask(answers, caf::make_message(caf::get_atom_v)), "INVALID_ARGUMENT");
  EXPECT_EQ(Ask(answers, caf::make_message(ask_atom_v)), "INVALID_ARGUMENT");
  EXPECT_EQ(Ask(answers, caf::make_message(size_atom_v)), "UNIMPLEMENTED");
  EXPECT_TRUE(pair_.client()->idle());
  // The connection goes on.
  EXPECT_EQ(Ask(answers, caf::make_message(caf::ping_atom_v)), "pong");
}

// What stands before a full queue is under way: its tensors are held.
TEST_F(ActorMessagesTest, CallsThatWaitAreUnderWay) {
  caf::scoped_actor self(pair_.client()->system());
  const auto refused = [&] {
    int errors = 0;
    while (self->has_next_message()) {
      self->receive([&](const caf::error& error) {
        errors += ToStatus(error).code() == absl::StatusCode::kResourceExhausted ? 1 : 0;
      });
    }
    return errors;
  };
  const int64_t most_messages = ActorHost::kMostMessages;
  const size_t large = ActorHost::kMostBytes / 32;
  for (const size_t size : {size_t{1}, large}) {
    Containers* const containers = &pair_.runtime()->devices()[0]->containers;
    const std::string name = "queue" + std::to_string(size);
    QueueOptions options;
    options.types = {ElementType::kUint8};
    options.capacity = 1;
    ASSERT_TRUE(containers
                    ->FindOrCreate("", name,
                                   [&]() -> absl::StatusOr<RefPtr<Resource>> {
                                     return containers->MakeQueue(name, options);
                                   })
                    .ok());
    const auto queue = *FindWaiting<Queue>(containers, "", name);
    const caf::actor handle = Find(name, ActorKind::kQueue);
    const Tensor element = Tensor::Uninitialized(ElementType::kUint8, Shape({int64_t(size)}));
    const auto put = [&](int64_t times) {
      for (int64_t i = 0; i < times; ++i) {
        self->send(handle, caf::put_atom_v, Tensors{element});
        pair_.Arrive();
      }
      return refused();
    };
    // One is in the queue, the others wait. The frame's own bytes count as well.
    const int64_t most = size == 1 ? most_messages : 31;
    EXPECT_EQ(put(1 + most), 0) << size;
    EXPECT_EQ(put(10), 10) << size;
    if (size == 1) {  // The same process can do nothing else there, not even help.
      self->send(handle, caf::get_atom_v);
      EXPECT_EQ(refused(), 1);
    }
    // But others can: as many as have been taken can be put again.
    for (int i = 0; i < 5; ++i) {
      queue->Dequeue(nullptr, [](const auto& taken) { EXPECT_TRUE(taken.ok()); });
    }
    pair_.Arrive();
    EXPECT_EQ(put(10), 5) << size;
    containers->Reset("");
    pair_.Arrive();
  }
}

// What has been handled is told a quarter at a time; the rest is in nobody's way.
TEST_F(ActorMessagesTest, AMessageOfMoreThanTheBoundMayFollowOthers) {
  const caf::actor takes = Reach(pair_.task()->system().spawn([]() -> caf::behavior {
    return {[](caf::ping_atom) { return std::string("pong"); },
            [](caf::put_atom, const Tensors&) { return std::string("taken"); }};
  }));
  const Tensor large =
      Tensor::Uninitialized(ElementType::kUint8, Shape({ActorPair::kMaxTensorBytes}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Ask(takes, caf::make_message(caf::ping_atom_v)), "pong");
    EXPECT_EQ(Ask(takes, caf::make_message(caf::put_atom_v, Tensors(5, large))), "taken");
  }
}

// Also before the handler of the last one has returned.
TEST_F(ActorMessagesTest, WhoHasAnAnswerMaySendAsMuchAgain) {
  const auto returns = std::make_shared<std::atomic<bool>>(false);
  const caf::actor takes =
      Reach(pair_.task()->system().spawn([returns](caf::event_based_actor* self) -> caf::behavior {
        return {[returns, self](caf::put_atom, const Tensors&) {
          self->make_response_promise().deliver(std::string("taken"));
          while (!*returns) std::this_thread::yield();
        }};
      }));
  const Tensor large =
      Tensor::Uninitialized(ElementType::kUint8, Shape({ActorPair::kMaxTensorBytes}));
  const Tensors larger_than_the_bound(5, large);
  EXPECT_EQ(Ask(takes, caf::make_message(caf::put_atom_v, larger_than_the_bound)), "taken");
  caf::scoped_actor self(pair_.client()->system());
  self->send(takes, caf::put_atom_v, larger_than_the_bound);
  EXPECT_FALSE(self->has_next_message()) << "refused";
  // That one has not been handled.
  self->send(takes, caf::put_atom_v, larger_than_the_bound);
  EXPECT_TRUE(self->has_next_message());
  *returns = true;
}

// Those of a message whose tensors did not come, too.
TEST_F(ActorMessagesTest, ASenderIsToldTheBytesThatItCounts) {
  const caf::actor echo = Reach(pair_.task()->system().spawn(Echo));
  const int64_t size = ActorHost::kMostBytes / 2;
  pair_.Deliver(0, Send(0, echo.id(), caf::make_message_id(), ActorPair::kClient, 0,
                        caf::make_message(caf::ping_atom_v), size));
  const auto told = [&] {
    int64_t bytes = 0;
    std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& frame : frames_[{1, actor_protocol::kCredit}]) {
      int64_t of_this = 0;
      std::memcpy(&of_this, frame.data() + frame.size() - sizeof(of_this), sizeof(of_this));
      bytes += of_this;
    }
    return bytes;
  };
  Until([&] { return told() >= size; });
  EXPECT_EQ(told(), size);
}

TEST_F(ActorMessagesTest, MutatedFramesConcernNobodyElse) {
  // A frame of each kind, either way.
  caf::actor_system& task = pair_.task()->system();
  const caf::actor echo = Reach(task.spawn(Echo));
  Ask(echo, caf::make_message(ask_atom_v, Tensors{Tensor::Scalar<float>(1)}, std::string("text"),
                              std::vector<int64_t>{1, 2, 3}, caf::make_message(1.5)));
  Ask(echo, caf::make_message(echo, DeviceStatus{"d", "CPU", {"a"}, 1, 2, 3}));
  Find("", ActorKind::kTask);
  Find("CPU:0", ActorKind::kDevice);
  auto doomed = task.spawn(Echo);
  const caf::actor handle = [&] {
    published_.push_back(*pair_.task()->Publish("doomed", doomed, {}, absl::Seconds(5)));
    return Find("doomed", ActorKind::kPublished);
  }();
  caf::scoped_actor self(pair_.client()->system());
  self->link_to(handle);
  self->unlink_from(handle);
  Until([&] {
    std::lock_guard<std::mutex> lock(mutex_);
    return frames_.count({0, kUnlink}) != 0;
  });
  self->monitor(handle);
  anon_send_exit(doomed, caf::exit_reason::kill);
  bool down = false;
  Until([&] { return down || (self->has_next_message() && (down = true)); });
  EXPECT_TRUE(down);
  {
    absl::StatusOr<PublishedActor> other = absl::UnknownError("");
    std::thread thread([&] {
      other = pair_.client()->Publish("other", pair_.client()->system().spawn(Echo), {},
                                      absl::Seconds(20));
      done_ = true;
    });
    Until([&] { return done_.exchange(false); });
    thread.join();
    EXPECT_TRUE(other.ok()) << other.status();
  }
  pair_.Arrive();
  std::map<std::pair<int, char>, std::vector<std::string>> frames;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    frames = frames_;
  }
  EXPECT_GE(frames.size(), 11U);
  const int mutations = HowMany("TROUPE_MUTATIONS", 4000, /*one_in=*/10);
  std::mt19937 random(3);
  for (const auto& [to_and_kind, examples] : frames) {
    for (int i = 0; i < mutations; ++i) {
      std::string frame = examples[random() % examples.size()];
      for (uint32_t j = 1 + random() % 4; j > 0; --j) {
        const size_t at = random() % frame.size();
        switch (random() % 5) {
          case 0:
            frame[at] = static_cast<char>(random());
            break;
          case 1:
            frame[at] ^= static_cast<char>(1 << (random() % 8));
            break;
          case 2:
            frame.resize(at + 1);
            break;
          case 3:
            frame.insert(at, random() % 20, static_cast<char>(random()));
            break;
          default: {
            const uint64_t large = ~uint64_t{0} >> (random() % 64);
            frame.replace(at, 8, reinterpret_cast<const char*>(&large), 8);
          }
        }
      }
      Tensors tensors(random() % 2, Tensor::Scalar<float>(1));
      pair_.Deliver(to_and_kind.first, std::move(frame), std::move(tensors));
      if (i % 64 == 0) pair_.Arrive();
    }
  }
  pair_.Arrive();
  EXPECT_TRUE(pair_.connected());
  // Another connection finds all in order.
  pair_.Disconnect();
  pair_.Connect();
  pair_.Arrive();
  const caf::actor again = Find("it", ActorKind::kPublished);
  EXPECT_EQ(Ask(again, caf::make_message(7)), "(7)");
}

// Answers with numbers that were never asked with, or that have been answered, to actors and hosts.
TEST_F(ActorMessagesTest, AnswersThatNobodyWaitsForAreDropped) {
  const caf::actor echo = Reach(pair_.task()->system().spawn(Echo));
  caf::scoped_actor self(pair_.client()->system());
  auto asked = self->request(echo, std::chrono::seconds(20), 1);  // Has not arrived yet.
  const uint64_t next = self->new_request_id(caf::message_priority::normal).integer_value();
  const caf::message_id right = caf::make_message_id(next - 1).response_id();
  const auto forge = [&](caf::message_id id) {
    for (const caf::actor_id to : {self->id(), self->id() + 1, caf::actor_id{0}}) {
      pair_.Deliver(1, Send(1, to, id, ActorPair::kTask, echo.id(),
                            caf::make_message(std::string("forged"))));
    }
  };
  const auto flood = [&] {
    for (uint64_t number = 1; number < 1000; ++number) {
      const caf::message_id urgent = caf::make_message_id(number);
      for (const caf::message_id id :
           {urgent.response_id(), urgent.with_normal_priority().response_id()}) {
        if (id != right) forge(id);
      }
      for (int side : {0, 1}) {
        for (int32_t code : {0, 5, -1}) {
          std::string answer = actor_protocol::Fields(actor_protocol::kAnswer);
          WireWriter writer(&answer);
          writer.Number(number);
          writer.Number(code);
          writer.Raw("a name and an address");
          pair_.Deliver(side, std::move(answer));
        }
      }
    }
  };
  flood();
  EXPECT_FALSE(self->has_next_message());
  std::string answer;
  std::thread thread([&] {
    asked.receive([&](const std::string& text) { answer = text; },
                  [&](const caf::error& error) { answer = caf::to_string(error); });
    done_ = true;
  });
  Until([&] { return done_.exchange(false); });
  thread.join();
  EXPECT_EQ(answer, "(1)");
  forge(right);  // Once more.
  flood();
  EXPECT_FALSE(self->has_next_message());
  EXPECT_TRUE(pair_.connected() && pair_.client()->idle() && pair_.task()->idle());
  EXPECT_EQ(Ask(Find("it", ActorKind::kPublished), caf::make_message(7)), "(7)");
}

TEST_F(ActorMessagesTest, ForgedHandlesReachNobody) {
  const caf::actor echo = Reach(pair_.task()->system().spawn(Echo));
  Ask(echo, caf::make_message(1));
  // An actor that nobody was told of; there are CAF's own as well.
  std::atomic<int> heard{0};
  const caf::actor hidden = pair_.task()->system().spawn(
      [&]() -> caf::behavior { return {[&](caf::ping_atom) { ++heard; }}; });
  for (caf::actor_id id = 0; id <= hidden.id() + 10; ++id) {
    pair_.Deliver(0,
                  Send(0, id, caf::make_message_id(), 0, 0, caf::make_message(caf::ping_atom_v)));
  }
  pair_.Arrive();
  caf::anon_send(hidden, caf::ping_atom_v);
  Until([&] { return heard > 0; });
  EXPECT_EQ(heard, 1);
}

TEST_F(ActorMessagesTest, ATaskIsOneActorByAnyName) {
  const caf::actor task = Find("", ActorKind::kTask);
  EXPECT_EQ(Find("a", ActorKind::kTask), task);
  EXPECT_EQ(Find(std::string(4000, 'b'), ActorKind::kTask), task);
}

TEST_F(ActorMessagesTest, WhoNamesActorsWithoutEndLosesItsConnection) {
  const caf::actor echo = Reach(pair_.task()->system().spawn(Echo));
  Ask(echo, caf::make_message(1));
  caf::actor_id invented = 1 << 20;
  const auto name = [&](caf::actor_id to, int64_t actors) {
    for (int64_t i = 0; i < actors; ++i) {
      pair_.Deliver(0, Send(0, to, caf::make_message_id(), ActorPair::kClient, invented++,
                            caf::make_message(caf::ping_atom_v)));
    }
  };
  const auto watches = [&] {
    std::lock_guard<std::mutex> lock(mutex_);
    return frames_[{1, actor_protocol::kWatch}].size();
  };
  // Who tells something to an actor that is not there is not remembered.
  const size_t before = watches();
  name(invented, 1000);
  EXPECT_EQ(watches(), before);
  // Who tells something to one that is there is, until its process says that it has ended.
  name(echo.id(), ActorHost::kMostProxies - 10);
  EXPECT_GT(watches(), before);
  pair_.Arrive();
  EXPECT_TRUE(pair_.connected());
  EXPECT_EQ(Ask(echo, caf::make_message(7)), "(7)");  // It has let go of them.
  name(echo.id(), ActorHost::kMostProxies);
  pair_.Arrive();
  EXPECT_FALSE(pair_.connected());
}

}  // namespace
}  // namespace troupe
