// Actors and functions of the application inside of graphs.
#include "api/actors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "api/dataset.h"
#include "api/troupe.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

using Tensors = std::vector<Tensor>;
using testing::HasSubstr;

class ActorsTest : public testing::Test {
 protected:
  ActorsTest() : system_(config_) {}

  /// The thread sanitizer sees the locks of this scheduler, and not the atomics of the usual one.
  struct Config : caf::actor_system_config {
    Config() { set("scheduler.policy", caf::atom("sharing")); }
  };

  /// One output of a node that asks `actor` with `input`.
  Output Ask(const std::string& actor, Output input, ops::AskActorAttrs attrs = {}) {
    return ops::AskActor(s_, {input}, actor, {input.type()}, attrs)[0];
  }
  float Run(Output y, float x = 2) {
    const absl::StatusOr<Tensors> result = Try(y, x);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->at(0).unchecked_scalar<float>() : -1;
  }
  absl::StatusOr<Tensors> Try(Output y, float x = 2, RunOptions options = {}) {
    if (session_ == nullptr) {
      absl::StatusOr<std::unique_ptr<Session>> made = Session::Create(s_.graph());
      if (!made.ok()) return made.status();
      session_ = *std::move(made);
    }
    return session_->Run({{x_, Tensor::Scalar<float>(x)}}, {y}, {}, options);
  }

  Config config_;
  caf::actor_system system_;
  Scope s_ = Scope::NewRoot();
  Output x_ = ops::Placeholder(s_, ElementType::kFloat, {.shape = PartialShape({})});
  std::unique_ptr<Session> session_;
};

caf::behavior Doubler(caf::event_based_actor*) {
  return {[](ask_atom, const Tensors& in) {
    return Tensors{Tensor::Scalar<float>(2 * in.at(0).unchecked_scalar<float>())};
  }};
}

TEST_F(ActorsTest, AnActorAnswers) {
  const auto published = PublishActor("doubler", system_.spawn(Doubler));
  ASSERT_TRUE(published.ok()) << published.status();
  Output y = Ask("doubler", Ask("doubler", x_));
  EXPECT_EQ(Run(y, 3), 12);
  EXPECT_EQ(Run(y, 4), 16);
}

TEST_F(ActorsTest, AFunctionAnswersOnTheCallersThread) {
  std::thread::id thread;
  const auto published = FunctionActor("square", [&](const Tensors& in) -> absl::StatusOr<Tensors> {
    thread = std::this_thread::get_id();
    const float v = in.at(0).unchecked_scalar<float>();
    if (v < 0) return absl::OutOfRangeError("negative");
    if (v > 100) throw std::bad_alloc();
    return Tensors{Tensor::Scalar<float>(v * v)};
  });
  ASSERT_TRUE(published.ok()) << published.status();
  Output y = Ask("square", x_);
  EXPECT_EQ(Run(y, 3), 9);
  EXPECT_EQ(thread, std::this_thread::get_id());
  EXPECT_EQ(Try(y, -1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Try(y, 101).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Run(y, 4), 16);
}

TEST_F(ActorsTest, AQuickActorRunsOnTheCallersThread) {
  std::thread::id thread;
  const auto published =
      PublishActor("quick", system_.spawn([&](caf::event_based_actor* self) -> caf::behavior {
        return {[&, self](ask_atom, const Tensors& in) -> caf::result<Tensors> {
          thread = std::this_thread::get_id();
          const float v = in.at(0).unchecked_scalar<float>();
          if (v < 0) self->quit();
          return Tensors{Tensor::Scalar<float>(v + 1)};
        }};
      }),
                   {.quick = true});
  ASSERT_TRUE(published.ok()) << published.status();
  Output y = x_;
  for (int i = 0; i < 1000; ++i) y = Ask("quick", y);
  EXPECT_EQ(Run(y, 1), 1001);
  EXPECT_EQ(thread, std::this_thread::get_id());
  // Steps on several threads at once.
  std::vector<std::thread> others;
  for (int i = 1; i <= 4; ++i) {
    others.emplace_back([&, i] { EXPECT_EQ(Run(y, static_cast<float>(i)), 1000.0f + i); });
  }
  for (std::thread& other : others) other.join();
  Output once = Ask("quick", x_);
  EXPECT_EQ(Run(once, -1), 0);  // Its last answer.
  EXPECT_EQ(Try(once, 1).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ActorsTest, AHandlerThatThrowsEndsItsActor) {
  for (const bool quick : {false, true}) {
    const auto published =
        PublishActor("thrower", system_.spawn([](caf::event_based_actor*) -> caf::behavior {
          return {[](ask_atom, const Tensors&) -> Tensors { throw std::runtime_error("thrown"); }};
        }),
                     {.quick = quick});
    Output y = Ask("thrower", x_);
    EXPECT_FALSE(Try(y).ok()) << quick;
    EXPECT_EQ(Try(y).status().code(), absl::StatusCode::kUnavailable) << quick;
  }
}

TEST_F(ActorsTest, NamesAreTakenOnce) {
  Output y = Ask("later", x_);
  EXPECT_EQ(Try(y).status().code(), absl::StatusCode::kNotFound);
  {
    const auto published = PublishActor("later", system_.spawn(Doubler));
    ASSERT_TRUE(published.ok()) << published.status();
    EXPECT_EQ(Run(y), 4);
    const auto again = FunctionActor("later", [](const Tensors& in) { return in; });
    EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  }
  EXPECT_EQ(Try(y).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(PublishActor("", system_.spawn(Doubler)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PublishActor("none", caf::actor()).status().code(), absl::StatusCode::kInvalidArgument);
}

caf::behavior Wrong(caf::event_based_actor*) {
  return {[](ask_atom, const Tensors& in) -> caf::result<Tensors> {
    const float what = in.at(0).unchecked_scalar<float>();
    if (what == 0) return Tensors{};
    if (what == 1) return Tensors{Tensor::Scalar<int32_t>(1)};
    if (what == 2) return Tensors{Tensor()};
    if (what == 3) return Tensors{Tensor::Vector<float>({1, 2})};
    if (what == 4) return ToCafError(absl::DataLossError("it is lost"));
    return caf::make_error(caf::sec::runtime_error, "of its own");
  }};
}

TEST_F(ActorsTest, WrongAnswersAreErrorsOfTheNode) {
  const auto published = PublishActor("wrong", system_.spawn(Wrong));
  Output y = Ask("wrong", x_, {.shapes = {PartialShape({})}});
  ASSERT_TRUE(s_.status().ok()) << s_.status();
  for (float what : {0, 1, 2, 3}) {
    const absl::Status status = Try(y, what).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << what;
    EXPECT_THAT(std::string(status.message()), HasSubstr("AskActor")) << what;
  }
  absl::Status status = Try(y, 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it is lost"));
  status = Try(y, 5).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(std::string(status.message()), HasSubstr("of its own"));
}

TEST_F(ActorsTest, ShapesAreCheckedWhenTheNodeIsMade) {
  Ask("any", x_, {.shapes = {PartialShape({}), PartialShape({})}});
  EXPECT_EQ(s_.status().code(), absl::StatusCode::kInvalidArgument);
}

/// Takes requests and never answers; ends when it is told to.
caf::behavior Silent(caf::stateful_actor<std::vector<caf::response_promise>>* self) {
  return {
      [self](ask_atom, const Tensors&) { self->state.push_back(self->make_response_promise()); },
      [self](tell_atom, const Tensors&) { self->quit(); },
  };
}

TEST_F(ActorsTest, WaitsEnd) {
  const auto published = PublishActor("silent", system_.spawn(Silent));
  Output late = Ask("silent", x_, {.timeout_ms = 20});
  Output waits = Ask("silent", x_);
  Node* const end = ops::TellActor(s_, {x_}, "silent");
  ASSERT_TRUE(s_.status().ok()) << s_.status();
  EXPECT_EQ(Try(late).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Try(waits, 1, {.timeout = absl::Milliseconds(20)}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  // The actor ends in the midst of a step that waits for it.
  std::promise<absl::Status> ended;
  session_->RunAsync(
      FeedMap{{x_, Tensor::Scalar<float>(1)}}, {waits}, {},
      [&](const absl::StatusOr<Tensors>& result) { ended.set_value(result.status()); });
  ASSERT_TRUE(session_->RunTargets({end}, {{x_, Tensor::Scalar<float>(1)}}).ok());
  EXPECT_EQ(ended.get_future().get().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Try(waits).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ActorsTest, ACycleOfAsksEndsWithItsDeadline) {
  // Each asks the other before it answers, and does nothing else meanwhile: not even end, so that
  // it must not wait for ever.
  struct Waiting {
    caf::actor other;
  };
  const auto waiter = [](caf::stateful_actor<Waiting>* self) -> caf::behavior {
    return {[self](caf::put_atom, const caf::actor& other) { self->state.other = other; },
            [self](ask_atom, const Tensors& in) {
              auto promise = self->make_response_promise();
              self->request(self->state.other, std::chrono::milliseconds(300), ask_atom_v, in)
                  .await([promise](const Tensors& out) mutable { promise.deliver(out); },
                         [promise](const caf::error& e) mutable { promise.deliver(e); });
              return promise;
            }};
  };
  const caf::actor one = system_.spawn(waiter), two = system_.spawn(waiter);
  caf::anon_send(one, caf::put_atom_v, two);
  caf::anon_send(two, caf::put_atom_v, one);
  const auto published = PublishActor("one", one);
  const auto other = PublishActor("two", two);
  Output y = Ask("one", x_, {.timeout_ms = 50});
  Output z = Ask("two", x_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Try(y).status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(Try(z, 1, {.timeout = absl::Milliseconds(50)}).status().code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  caf::anon_send_exit(one, caf::exit_reason::kill);
  caf::anon_send_exit(two, caf::exit_reason::kill);
  EXPECT_EQ(Try(z, 1, {.timeout = absl::Seconds(20)}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(ActorsTest, AnActorThatDoesNotUnderstand) {
  const auto published =
      PublishActor("deaf", system_.spawn([](caf::event_based_actor* self) -> caf::behavior {
        self->set_default_handler(caf::drop);
        return {[](int) {}};
      }));
  EXPECT_EQ(Try(Ask("deaf", x_)).status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(ActorsTest, WhoDoesNotKeepUpIsNotToldMore) {
  std::promise<void> go_on;
  auto wait = go_on.get_future().share();
  std::atomic<int> heard{0};
  const auto published =
      PublishActor("slow", system_.spawn<caf::detached>([&](caf::event_based_actor*) {
        return caf::behavior{[&, wait](tell_atom, const Tensors&) {
          wait.wait();
          ++heard;
        }};
      }));
  Node* const tell = ops::TellActor(s_, {x_}, "slow");
  absl::Status status;
  int told = 0;
  session_ = *Session::Create(s_.graph());
  while (told < 1000000) {
    status = session_->RunTargets({tell}, {{x_, Tensor::Scalar<float>(1)}});
    if (!status.ok()) break;
    ++told;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(told, 10000);
  go_on.set_value();
  auto await = [&](int count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (heard < count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(heard, count);
  };
  await(told);
  EXPECT_TRUE(session_->RunTargets({tell}, {{x_, Tensor::Scalar<float>(1)}}).ok());
  await(told + 1);
}

TEST_F(ActorsTest, TheGradientIsAnotherActor) {
  const auto square = FunctionActor("square", [](const Tensors& in) -> absl::StatusOr<Tensors> {
    const float v = in.at(0).unchecked_scalar<float>();
    return Tensors{Tensor::Scalar<float>(v * v)};
  });
  const auto gradient = FunctionActor("square'", [](const Tensors& in) -> absl::StatusOr<Tensors> {
    return Tensors{Tensor::Scalar<float>(2 * in.at(0).unchecked_scalar<float>() *
                                         in.at(1).unchecked_scalar<float>())};
  });
  Output y = Ask("square", Ask("square", x_, {.gradient = "square'"}), {.gradient = "square'"});
  const OutputList dx = Gradients(s_, {y}, {x_});
  ASSERT_TRUE(s_.status().ok()) << s_.status();
  EXPECT_EQ(Run(dx[0], 3), 4 * 27);
  Gradients(s_, {Ask("square", x_)}, {x_});
  EXPECT_EQ(s_.status().code(), absl::StatusCode::kUnimplemented);
}

caf::behavior Numbers(caf::event_based_actor*) {
  return {[](ask_atom, const Tensors& in) { return Tensors{in.at(1)}; }};
}

/// A system ends when its actors are published no more, whoever reads elements from them.
TEST_F(ActorsTest, AnIteratorDoesNotKeepItsActor) {
  std::unique_ptr<DatasetIterator> iterator;
  Tensors element;
  {
    Config config;
    caf::actor_system system(config);
    const auto published = PublishActor("numbers", system.spawn(Numbers));
    ASSERT_TRUE(published.ok()) << published.status();
    iterator = *Dataset::FromActor("numbers", {.in_flight = 2}).MakeIterator();
    ASSERT_TRUE(iterator->Next(&element).ok());
  }
  // After what has come.
  absl::Status status;
  for (int i = 0; i < 4 && status.ok(); ++i) status = iterator->Next(&element).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("FromActor(numbers): actor numbers"));
}

}  // namespace
}  // namespace troupe
