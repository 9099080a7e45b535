#include "api/training/monitored_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "api/training/basic_hooks.h"
#include "api/training/queue_runner.h"
#include "api/troupe.h"
#include "tests/source_dir.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Notes its calls; in one of them it fails once, or asks for the end.
class NotingHook final : public SessionRunHook {
 public:
  NotingHook(std::string name, std::vector<std::string> event, std::vector<std::string>* calls)
      : name_(std::move(name)), event_(std::move(event)), calls_(calls) {}

  absl::Status Begin(const Scope&) override { return Note("begin"); }
  absl::Status AfterCreateSession(Session&, Coordinator&) override {
    return Note("after_create_session");
  }
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override {
    const absl::Status status = Note("before_run", &context);
    if (!status.ok()) return status;
    return SessionRunArgs();
  }
  absl::Status AfterRun(SessionRunContext& context, const SessionRunValues&) override {
    return Note("after_run", &context);
  }
  absl::Status End(Session&) override { return Note("end"); }

 private:
  absl::Status Note(const std::string& call, SessionRunContext* context = nullptr) {
    calls_->push_back(name_ + "." + call);
    if (event_.size() != 3 || event_[0] != name_ || event_[1] != call) return absl::OkStatus();
    const std::string what = event_[2];
    event_.clear();
    if (what == "stop") {
      context->RequestStop();
      return absl::OkStatus();
    }
    static const std::map<std::string, absl::StatusCode> codes = {
        {"ABORTED", absl::StatusCode::kAborted},
        {"INTERNAL", absl::StatusCode::kInternal},
        {"OUT_OF_RANGE", absl::StatusCode::kOutOfRange},
        {"UNAVAILABLE", absl::StatusCode::kUnavailable}};
    return absl::Status(codes.at(what), "as it was told");
  }

  const std::string name_;
  std::vector<std::string> event_;
  std::vector<std::string>* const calls_;
};

/// A variable that counts its steps.
struct Model {
  Model() {
    step = GlobalStep(s);
    x = ops::Placeholder(s, ElementType::kFloat);
    y = ops::Mul(s, x, 2.0f);
    train = step.AssignAdd(s, int64_t{1});
    init = GlobalVariablesInitializer(s);
  }
  SessionCreator Creator() const {
    return [this]() -> absl::StatusOr<std::unique_ptr<Session>> {
      auto session = Session::Create(s.graph(), {.threads = 2});
      if (session.ok()) {
        const absl::Status status = (*session)->RunTargets({init});
        if (!status.ok()) return status;
      }
      return session;
    };
  }
  absl::StatusOr<std::unique_ptr<MonitoredSession>> Start(
      Hooks hooks, MonitoredSessionOptions options = {}) const {
    return MonitoredSession::Create(s.graph(), Creator(), std::move(hooks), options);
  }
  FeedMap Feed(float value) const { return {{x, Tensor::Scalar(value)}}; }

  Scope s = Scope::NewRoot();
  ModelVariable step;
  Output x, y;
  Node *train = nullptr, *init = nullptr;
};

std::string Play(const std::string& name, int steps, const std::vector<std::string>& event) {
  const Model model;
  std::vector<std::string> calls;
  std::string result = "OK";
  const auto say = [&result](const absl::Status& status) {
    if (!status.ok() && !absl::IsOutOfRange(status)) {
      result = absl::StatusCodeToString(status.code());
    }
  };
  {
    auto session = model.Start({std::make_shared<NotingHook>("a", event, &calls),
                                std::make_shared<NotingHook>("b", event, &calls)},
                               {.recover = name.rfind("singular", 0) != 0});
    if (!session.ok()) return std::string(session.status().message());
    for (int i = 0; i < steps && !(*session)->should_stop(); ++i) {
      const absl::Status status = (*session)->Run({}, {}, {model.train}).status();
      say(status);
      if (!status.ok()) break;
      calls.push_back("ran");
    }
    say((*session)->Close());
  }
  return absl::StrJoin(calls, " ") + ": " + result;
}

TEST(MonitoredSession, CallsHooksInTensorFlowsOrder) {
  std::ifstream file(std::string(TROUPE_SOURCE_DIR) + "/tests/api/training/hook_order.txt");
  int scenarios = 0;
  for (std::string line; std::getline(file, line); ++scenarios) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 3));
    ASSERT_EQ(parts.size(), 4u) << line;
    const std::vector<std::string> event = absl::StrSplit(parts[2], ' ');
    EXPECT_EQ(Play(parts[0], std::stoi(parts[1]), event), parts[3]) << parts[0];
  }
  EXPECT_EQ(scenarios, 9);
}

TEST(MonitoredSession, GivesWhatWasAskedForAndHooksTheirs) {
  /// Fetches and feeds of its own.
  class Asking final : public SessionRunHook {
   public:
    explicit Asking(const Model& model) : model_(model) {}
    absl::Status Begin(const Scope& scope) override {
      twice_ = ops::Add(scope, model_.y, model_.y);
      return absl::OkStatus();
    }
    absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override {
      EXPECT_THAT(context.original_args().fetches, ElementsAre(model_.y));
      EXPECT_THAT(context.original_targets(), ElementsAre(model_.train));
      return SessionRunArgs{.feeds = model_.Feed(21), .fetches = {model_.y, twice_}, .trace = true};
    }
    absl::Status AfterRun(SessionRunContext&, const SessionRunValues& values) override {
      EXPECT_EQ(values.results.size(), 2u);
      EXPECT_EQ(values.results[0].unchecked_scalar<float>(), 42);
      EXPECT_EQ(values.results[1].unchecked_scalar<float>(), 84);
      EXPECT_NE(values.metadata, nullptr);
      ++steps;
      return absl::OkStatus();
    }
    int steps = 0;

   private:
    const Model& model_;
    Output twice_;
  };
  const Model model;
  const auto hook = std::make_shared<Asking>(model);
  auto session = model.Start({hook});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto values = (*session)->Run({}, {model.y}, {model.train});
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_EQ(values->size(), 1u);
  EXPECT_EQ((*values)[0].unchecked_scalar<float>(), 42);
  EXPECT_EQ(hook->steps, 1);

  // Both feed it.
  const auto twice = (*session)->Run(model.Feed(1), {model.y}, {model.train});
  EXPECT_TRUE(absl::IsInvalidArgument(twice.status())) << twice.status();
  EXPECT_TRUE((*session)->should_stop());
  EXPECT_TRUE(absl::IsFailedPrecondition((*session)->Run({}, {model.y}).status()));
}

TEST(MonitoredSession, StopsAtAStep) {
  for (const bool last : {true, false}) {
    const Model model;
    auto hook = std::make_shared<StopAtStepHook>(last ? StopAtStepHook::LastStep(7)
                                                      : StopAtStepHook::Steps(7));
    auto session = model.Start({hook});
    ASSERT_TRUE(session.ok()) << session.status();
    int steps = 0;
    while (!(*session)->should_stop()) {
      ASSERT_TRUE((*session)->Run({}, {}, {model.train}).ok());
      ++steps;
    }
    EXPECT_EQ(steps, 7);
    EXPECT_TRUE((*session)->Close().ok());
    EXPECT_TRUE((*session)->Close().ok());
    EXPECT_TRUE(absl::IsFailedPrecondition((*session)->Run({}, {}, {model.train}).status()));
  }
}

TEST(MonitoredSession, ALossMakesANewSession) {
  const Model model;
  int made = 0;
  auto session =
      MonitoredSession::Create(model.s.graph(), [&]() -> absl::StatusOr<std::unique_ptr<Session>> {
        if (++made == 2) return absl::UnavailableError("not back yet");
        return model.Creator()();
      });
  ASSERT_TRUE(session.ok()) << session.status();
  int tries = 0;
  const absl::Status status = (*session)->RunStep(
      [&](Session& raw, const MonitoredSession::HookedRun& run) -> absl::Status {
        if (++tries == 1) return absl::AbortedError("a task was lost");
        EXPECT_TRUE(raw.RunTargets({model.train}).ok());
        return run(model.Feed(1), {model.y}, {}).status();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(made, 3);
  EXPECT_EQ((*session)->num_sessions(), 2);
}

TEST(MonitoredSession, ALossThatLastsIsAnError) {
  const Model model;
  auto session = MonitoredSession::Create(model.s.graph(),
                                          [] { return absl::UnavailableError("nobody is there"); },
                                          {}, {.recovery_timeout = absl::Milliseconds(200)});
  EXPECT_TRUE(absl::IsUnavailable(session.status())) << session.status();
}

TEST(MonitoredSession, BadHooksAreErrors) {
  class Throws final : public SessionRunHook {
    absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override {
      throw std::bad_alloc();
    }
  };
  const Model model;
  EXPECT_TRUE(absl::IsInvalidArgument(model.Start({nullptr}).status()));
  auto session = model.Start({std::make_shared<Throws>()});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(absl::IsResourceExhausted((*session)->Run({}, {}, {model.train}).status()));
  EXPECT_TRUE((*session)->Close().ok());

  const Scope s = Scope::NewRoot();
  ops::Placeholder(s, ElementType::kFloat);
  auto stepless =
      MonitoredSession::Create(s.graph(), [&] { return Session::Create(s.graph()); },
                               {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(1))});
  EXPECT_TRUE(absl::IsFailedPrecondition(stepless.status()));
  EXPECT_THAT(std::string(stepless.status().message()), HasSubstr("GlobalStep(scope)"));
}

TEST(MonitoredSession, QueueRunnersFillAndTheirErrorIsTheSteps) {
  for (const bool fails : {false, true}) {
    Model model;
    const Output queue = ops::FIFOQueueV2(model.s, {ElementType::kFloat},
                                          {.shapes = {PartialShape({})}, .capacity = 3});
    Output element = ops::Const(model.s, Tensor::Scalar(1.0f));
    if (fails) {
      element = ops::CheckNumerics(model.s, ops::Log(model.s, ops::Neg(model.s, element)), "bad");
    }
    const QueueRunner runner(model.s, queue, {ops::QueueEnqueueV2(model.s, queue, {element})});
    const Output taken = ops::QueueDequeueV2(model.s, queue, {ElementType::kFloat})[0];
    ASSERT_TRUE(model.s.ok()) << model.s.status();
    auto session = model.Start({std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(20))});
    ASSERT_TRUE(session.ok()) << session.status();
    absl::Status status;
    do {  // At least one step: the runner may have failed already.
      status = (*session)->Run({}, {taken}, {model.train}).status();
    } while (status.ok() && !(*session)->should_stop());
    if (fails) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("bad")) << status;
      EXPECT_TRUE((*session)->should_stop());
    } else {
      EXPECT_TRUE(status.ok()) << status;
    }
    EXPECT_TRUE((*session)->Close().ok());
  }
}

// --- hooks ---------------------------------------------------------------------------------------

absl::Time At(int seconds) { return absl::FromUnixSeconds(1000 + seconds); }

TEST(HookTimer, IsDueBySteps) {
  HookTimer timer({.steps = 10}, [] { return At(0); });
  EXPECT_TRUE(timer.IsDue(5));
  EXPECT_FALSE(timer.Note(5).has_value());
  EXPECT_FALSE(timer.IsDue(5));
  EXPECT_FALSE(timer.IsDue(14));
  EXPECT_TRUE(timer.IsDue(15));
  EXPECT_EQ(timer.Note(17)->steps, 12);
}

TEST(HookTimer, IsDueByTime) {
  int now = 0;
  HookTimer timer({.time = absl::Seconds(5)}, [&] { return At(now); });
  timer.Note(1);
  now = 4;
  EXPECT_FALSE(timer.IsDue(2));
  now = 5;
  EXPECT_FALSE(timer.IsDue(1));  // The same step.
  EXPECT_TRUE(timer.IsDue(2));
  EXPECT_EQ(timer.Note(2)->time, absl::Seconds(5));
}

TEST(HookTimer, RefusesWhatMakesNoSense) {
  for (const HookInterval& bad :
       {HookInterval{}, HookInterval{.steps = 1, .time = absl::Seconds(1)},
        HookInterval{.steps = -1}, HookInterval{.time = -absl::Seconds(1)}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(HookTimer(bad, absl::Now).Check()));
  }
}

TEST(Hooks, CountStepsASecond) {
  const Model model;
  int now = 0;
  std::vector<std::pair<int64_t, double>> reports;
  auto session = model.Start({std::make_shared<StepCounterHook>(
      HookInterval{.steps = 4},
      [&](int64_t step, double rate) { reports.emplace_back(step, rate); },
      [&] { return At(now); })});
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 10; ++i, now += 2) {
    ASSERT_TRUE((*session)->Run({}, {}, {model.train}).ok());
  }
  EXPECT_THAT(reports,
              ElementsAre(std::pair<int64_t, double>(5, 0.5), std::pair<int64_t, double>(9, 0.5)));
}

TEST(Hooks, NoticeNan) {
  for (const bool fail : {true, false}) {
    const Model model;
    auto session = model.Start({std::make_shared<NanTensorHook>(model.y, fail)});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Run(model.Feed(1), {}, {model.train}).ok());
    EXPECT_FALSE((*session)->should_stop());
    const absl::Status status = (*session)->Run(model.Feed(NAN), {}, {model.train}).status();
    EXPECT_EQ(status.code(), fail ? absl::StatusCode::kInternal : absl::StatusCode::kOk);
    EXPECT_TRUE((*session)->should_stop());
  }
}

TEST(Hooks, LogTensors) {
  const Model model;
  std::vector<std::string> lines;
  auto session = model.Start({std::make_shared<LoggingTensorHook>(
      LoggingTensorHook::NamedOutputs{{"step", model.step.value()}},
      LoggingTensorHook::Options{
          .interval = {.steps = 3},
          .at_end = true,
          .format =
              [](absl::Span<const Tensor> values) {
                return StrCat(values[0].unchecked_scalar<int64_t>());
              },
          .print = [&](const std::string& line) { lines.push_back(line); }})});
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 5; ++i) {
    // Alone, so that the order of read and update is known.
    ASSERT_TRUE((*session)
                    ->RunStep([&](Session& raw, const MonitoredSession::HookedRun& run) {
                      const absl::Status status = run({}, {}, {model.init}).status();
                      return status.ok() ? raw.RunTargets({model.train}) : status;
                    })
                    .ok());
  }
  EXPECT_EQ(lines.size(), 2u);
  ASSERT_TRUE((*session)->Close().ok());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.back(), "1");
}

TEST(Hooks, EvaluateAtTheEnd) {
  const Model model;
  const auto hook = std::make_shared<FinalOpsHook>(std::vector<Output>{model.y}, model.Feed(4));
  auto session = model.Start({hook});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(hook->values(), IsEmpty());
  EXPECT_TRUE((*session)->Close().ok());
  ASSERT_EQ(hook->values().size(), 1u);
  EXPECT_EQ(hook->values()[0].unchecked_scalar<float>(), 8);
}

TEST(Hooks, FeedByAFunction) {
  const Model model;
  float next = 0;
  auto session = model.Start({std::make_shared<FeedFnHook>([&]() -> absl::StatusOr<FeedMap> {
    if (next == 2) return absl::OutOfRangeError("that was all");
    return model.Feed(++next);
  })});
  ASSERT_TRUE(session.ok()) << session.status();
  for (const float expected : {2.0f, 4.0f}) {
    const auto values = (*session)->Run({}, {model.y});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_scalar<float>(), expected);
  }
  EXPECT_TRUE(absl::IsOutOfRange((*session)->Run({}, {model.y}).status()));
  EXPECT_TRUE((*session)->should_stop());
  EXPECT_TRUE((*session)->Close().ok());
}

TEST(Hooks, WaitForTheGlobalStep) {
  const Model model;
  auto late =
      model.Start({std::make_shared<GlobalStepWaiterHook>(1, /*timeout=*/absl::Milliseconds(1))});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded((*late)->Run({}, {}, {model.train}).status()));

  const Model other;
  auto session = other.Start({std::make_shared<GlobalStepWaiterHook>(1)});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->session()->RunTargets({other.train}).ok());
  EXPECT_TRUE((*session)->Run({}, {}, {other.train}).ok());
}

}  // namespace
}  // namespace troupe
