// Iterators as resources of graphs, and functions of graphs in datasets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/actors.h"
#include "api/troupe.h"
#include "devices/log.h"
#include "graph/protos/stats.pb.h"
#include "tests/api/dataset/dataset_test_util.h"

namespace troupe {
namespace {

using testing::All;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;
using Values = absl::StatusOr<std::vector<Tensor>>;

class DatasetGraphTest : public ::testing::Test {
 protected:
  void Build(const std::string& dataset) {
    handle = ops::DatasetIterator(s.WithOpName("iterator"), dataset);
    next = ops::DatasetIteratorNext(s, handle, {ElementType::kInt64},
                                    {.output_shapes = {PartialShape(Shape())}})[0];
    initialize = ops::DatasetIteratorInitialize(s, handle);
    save = ops::DatasetIteratorSave(s, handle);
    position = ops::Placeholder(s, ElementType::kString);
    restore = ops::DatasetIteratorRestore(s, handle, position);
    ASSERT_TRUE(s.ok()) << s.status();
  }
  std::unique_ptr<Session> NewSession() {
    SessionOptions options;
    options.threads = 1;  // Whoever waits must not hold a thread.
    return *Session::Create(s.graph(), options);
  }
  static int64_t One(Session& session, Output next) {
    const Values values = session.Run({next});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[0].unchecked_scalar<int64_t>() : -1;
  }

  Scope s = Scope::NewRoot();
  Output handle, next, save, position;
  Node *initialize = nullptr, *restore = nullptr;
};

TEST_F(DatasetGraphTest, ElementsPositionsAndTheEnd) {
  const PublishedDataset published = *PublishDataset("five", Dataset::Range(0, 5));
  EXPECT_EQ(PublishDataset("five", Dataset::Range(0, 5)).status().code(), Code::kAlreadyExists);
  Build("five");
  auto session = NewSession();
  EXPECT_EQ(One(*session, next), 0);
  EXPECT_EQ(One(*session, next), 1);
  const Tensor at_two = (*session->Run({save}))[0];
  EXPECT_EQ(One(*session, next), 2);
  ASSERT_EQ(session->RunTargets({&initialize, 1}), absl::OkStatus());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(One(*session, next), i);
  const absl::Status end = session->Run({next}).status();
  EXPECT_EQ(end.code(), Code::kOutOfRange);
  EXPECT_THAT(std::string(end.message()), HasSubstr("DatasetIteratorNext"));
  ASSERT_EQ(session->RunTargets({&restore, 1}, {{position, at_two}}), absl::OkStatus());
  EXPECT_EQ(One(*session, next), 2);
  EXPECT_EQ(session->RunTargets({&restore, 1}, {{position, Tensor::Scalar("nonsense")}}).code(),
            Code::kInvalidArgument);
}

TEST_F(DatasetGraphTest, WhatDoesNotFit) {
  const PublishedDataset published =
      *PublishDataset("wrong", Dataset::FromTensors({Tensor::Vector<float>({1, 2})}));
  Build("wrong");
  EXPECT_EQ(NewSession()->Run({next}).status().code(), Code::kInvalidArgument);
  s = Scope::NewRoot();
  Build("nobody");
  EXPECT_EQ(NewSession()->Run({next}).status().code(), Code::kNotFound);
}

/// Gives an element whenever the test says so.
struct Valve {
  std::mutex mutex;
  std::condition_variable changed;
  int open = 0;
  void Open(int n) {
    std::lock_guard<std::mutex> lock(mutex);
    open += n;
    changed.notify_all();
  }
  Dataset Numbers(int64_t n) {
    return Dataset::Range(0, n).Map([this](Tensors element) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [this] { return open > 0; });
      --open;
      return element;
    });
  }
};

TEST_F(DatasetGraphTest, AStepThatIsCancelledTakesNoElement) {
  Valve valve;
  const PublishedDataset published = *PublishDataset("valve", valve.Numbers(3));
  Build("valve");
  auto session = NewSession();
  RunOptions soon;
  soon.timeout = absl::Milliseconds(30);
  EXPECT_EQ(session->Run(FeedMap{}, {&next, 1}, {}, soon).status().code(), Code::kDeadlineExceeded);
  valve.Open(3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(One(*session, next), i);
}

TEST_F(DatasetGraphTest, StepsThatWaitEndWithTheIterator) {
  Valve valve;
  const PublishedDataset published = *PublishDataset("valve", valve.Numbers(100));
  Build("valve");
  for (const bool reset : {false, true}) {
    auto session = NewSession();
    std::future<Values> waits =
        std::async(std::launch::async, [&] { return session->Run({next}); });
    // Mostly it waits by then, and the valve opens while the session ends: nothing tells either.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::thread opens([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      valve.Open(4);
    });
    const absl::Status ended = reset ? session->Reset() : session->Close();
    EXPECT_EQ(ended, absl::OkStatus());
    EXPECT_EQ(waits.get().status().code(), Code::kCancelled);
    opens.join();
    valve.Open(100);
    session.reset();
    std::lock_guard<std::mutex> lock(valve.mutex);
    valve.open = 0;
  }
}

/// What a training that was killed goes on with (docs/long-training.md).
TEST_F(DatasetGraphTest, ThePositionIsPartOfTheKernelStates) {
  const PublishedDataset published = *PublishDataset(
      "shuffled", Dataset::Range(0, 50).Shuffle({.window = 10, .seed = 3}).Repeat());
  Build("shuffled");
  auto session = NewSession();
  for (int i = 0; i < 77; ++i) One(*session, next);
  const Session::KernelStates states = *session->SaveKernelStates();
  std::vector<int64_t> expected, got;
  for (int i = 0; i < 30; ++i) expected.push_back(One(*session, next));
  auto later = NewSession();
  ASSERT_EQ(later->RestoreKernelStates(states), absl::OkStatus());
  for (int i = 0; i < 30; ++i) got.push_back(One(*later, next));
  EXPECT_EQ(got, expected);
}

TEST_F(DatasetGraphTest, APositionThatIsNotSavedIsLogged) {
  static int times = 0;  // Nothing is logged twice in ten seconds.
  const std::string name = StrCat("fails", ++times);
  const PublishedDataset published = *PublishDataset(
      name, Dataset::Range(0, 50).Map([](const Tensors&) -> absl::StatusOr<Tensors> {
        return absl::DataLossError("no such element");
      }));
  Build(name);
  auto session = NewSession();
  EXPECT_EQ(session->Run({next}).status().code(), Code::kDataLoss);
  std::mutex mutex;
  std::string log;
  SetLogSink([&](const LogRecord& record) {
    std::lock_guard<std::mutex> lock(mutex);
    log += record.text;
  });
  EXPECT_TRUE(session->SaveKernelStates().ok());
  SetLogSink(nullptr);
  EXPECT_THAT(log, HasSubstr(StrCat("The position of 'iterator', an iterator of the dataset ", name,
                                    ", is not saved: DATA_LOSS: Map: no such element")));
}

TEST_F(DatasetGraphTest, TracedStepsHaveTheStages) {
  const PublishedDataset published =
      *PublishDataset("traced", Dataset::Range(0, 50).Skip(3), {.name = "numbers"});
  Build("traced");
  auto session = NewSession();
  RunOptions trace;
  trace.trace = true;
  RunMetadata metadata;
  ASSERT_TRUE(session->Run(FeedMap{}, {&next, 1}, {}, trace, &metadata).ok());
  const auto& devices = metadata.step_stats().dev_stats();
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [](const auto& d) { return d.device() == "/dataset:numbers"; });
  ASSERT_NE(found, devices.end());
  ASSERT_EQ(found->node_stats_size(), 3);
  EXPECT_EQ(found->node_stats(0).node_name(), "Prefetch");
  EXPECT_THAT(found->node_stats(0).timeline_label(), HasSubstr(" ready"));
  EXPECT_THAT(found->node_stats(2).timeline_label(), HasSubstr("/s, busy "));
}

TEST_F(DatasetGraphTest, TracedStepsHaveTheIteratorsOfFunctions) {
  const PublishedDataset published =
      *PublishDataset("called", Dataset::Range(0, 50), {.name = "in_function"});
  const Function inner = DefineFunction(
      s, "Inner", {ElementType::kInt64}, [](const Scope& body, absl::Span<const Output> args) {
        const Output handle = ops::DatasetIterator(body, "called");
        const Output element = ops::DatasetIteratorNext(body, handle, {ElementType::kInt64},
                                                        {.output_shapes = {PartialShape({})}})[0];
        return std::vector<Output>{ops::Add(body, args[0], element)};
      });
  const Function outer = DefineFunction(s, "Outer", {ElementType::kInt64},
                                        [&inner](const Scope& body, absl::Span<const Output> args) {
                                          const Output once = Call(body, inner, {args[0]})[0];
                                          return std::vector<Output>{Call(body, inner, {once})[0]};
                                        });
  const Output x = ops::Const(s, Tensor::Scalar<int64_t>(100));
  const Output called = Call(s, outer, {x})[0];
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = NewSession();
  RunOptions trace;
  trace.trace = true;
  const auto traced = [&](const Output& fetch) {
    RunMetadata metadata;
    EXPECT_EQ(session->Run(FeedMap{}, {&fetch, 1}, {}, trace, &metadata).status(),
              absl::OkStatus());
    const auto& devices = metadata.step_stats().dev_stats();
    return std::count_if(devices.begin(), devices.end(),
                         [](const auto& d) { return d.device() == "/dataset:in_function"; });
  };
  EXPECT_EQ(traced(called), 1) << "once, though it is called twice";
  EXPECT_EQ(traced(ops::Neg(s, x)), 0) << "a step that does not call it";
}

TEST_F(DatasetGraphTest, ASaverKeepsThePosition) {
  const testing::TempFolder folder;
  const PublishedDataset published = *PublishDataset("saved", Dataset::Range(0, 50));
  Build("saved");
  const Saveable saveable(
      "input", handle.node, {SavedTensor{"input", "", ElementType::kString, PartialShape(Shape())}},
      [&](const Scope& scope) {
        return std::vector<Output>{ops::DatasetIteratorSave(scope, handle)};
      },
      [&](const Scope& scope, absl::Span<const Output> tensors) {
        return ops::DatasetIteratorRestore(scope, handle, tensors[0]);
      });
  Saver saver(s, {saveable});
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = NewSession();
  for (int i = 0; i < 7; ++i) One(*session, next);
  const absl::StatusOr<std::string> path = saver.Save(*session, folder.Path("model"), 7);
  ASSERT_TRUE(path.ok()) << path.status();
  One(*session, next);
  auto later = NewSession();
  ASSERT_EQ(saver.Restore(*later, *path), absl::OkStatus());
  EXPECT_EQ(One(*later, next), 7);
}

TEST_F(DatasetGraphTest, FunctionsOfTheGraph) {
  const Function square = DefineFunction(
      s, "Square2", {ElementType::kInt64}, [](const Scope& body, absl::Span<const Output> args) {
        return std::vector<Output>{ops::Mul(body, args[0], args[0]), args[0]};
      });
  ASSERT_TRUE(s.ok()) << s.status();
  std::vector<std::string> expected;
  for (int64_t i = 0; i < 40; ++i) {
    expected.push_back(testing::Text({Tensor::Scalar(i * i), Tensor::Scalar(i)}));
  }
  for (const int parallel : {1, 3}) {
    EXPECT_EQ(All(Dataset::Range(0, 40).Map(s.graph(), square, {.parallel = parallel})), expected);
  }
  absl::Status status;
  All(Dataset::Range(0, 40).Enumerate().Map(s.graph(), square), 1, &status);
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
  All(Dataset::FromTensors({Tensor::Vector<float>({1})}).Map(s.graph(), square), 1, &status);
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
}

TEST_F(DatasetGraphTest, RandomNumbersOfFunctionsGoOnFromAPosition) {
  const Function draw = DefineFunction(
      s, "Draw", {ElementType::kInt64}, [](const Scope& body, absl::Span<const Output> args) {
        return std::vector<Output>{
            args[0], ops::RandomUniform(body, Tensor::Vector<int32_t>({2}), ElementType::kFloat,
                                        {.seed = 1, .seed2 = 2})};
      });
  ASSERT_TRUE(s.ok()) << s.status();
  const Dataset dataset = Dataset::Range(0, 40).Map(s.graph(), draw).Prefetch(4);
  const std::vector<std::string> all = All(dataset);
  ASSERT_EQ(all.size(), 40u);
  const auto iterator = testing::Begin(dataset);
  testing::Take(*iterator, 7);
  const absl::StatusOr<std::string> position = iterator->Save();
  ASSERT_TRUE(position.ok()) << position.status();
  const auto restored = testing::Begin(dataset);
  ASSERT_EQ(restored->Restore(*position), absl::OkStatus());
  EXPECT_EQ(testing::Take(*restored, 100), std::vector<std::string>(all.begin() + 7, all.end()));
}

// What comes after a file has been read is no longer on the thread that made the call.
TEST_F(DatasetGraphTest, FunctionsThatReadFilesRunAtOnce) {
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;
  const auto both = FunctionActor("both", [&](Tensors in) -> absl::StatusOr<Tensors> {
    std::unique_lock<std::mutex> lock(mutex);
    ++calls;
    changed.notify_all();
    if (!changed.wait_for(lock, std::chrono::seconds(20), [&] { return calls == 2; })) {
      return absl::DeadlineExceededError("the other call does not come");
    }
    return in;
  });
  ASSERT_TRUE(both.ok()) << both.status();
  const testing::TempFolder folder;
  const Function read = DefineFunction(
      s, "Read2", {ElementType::kString}, [](const Scope& body, absl::Span<const Output> args) {
        return std::vector<Output>{
            ops::AskActor(body, {ops::ReadFile(body, args[0])}, "both", {ElementType::kString})[0]};
      });
  ASSERT_TRUE(s.ok()) << s.status();
  const Tensor paths =
      Tensor::Vector<std::string>({folder.Write("a", "A"), folder.Write("b", "B")});
  EXPECT_THAT(All(Dataset::FromTensors({paths}).Map(s.graph(), read, {.parallel = 2})),
              ElementsAre("string[] \"A\"", "string[] \"B\""));
}

// A position waits for calls under way, and they for the thread of files.
TEST_F(DatasetGraphTest, FunctionsThatWriteFilesEndBeforeAPosition) {
  std::promise<void> called, go_on;
  std::once_flag first;
  const std::shared_future<void> waits = go_on.get_future().share();
  const auto gate = FunctionActor("gate", [&](Tensors in) -> absl::StatusOr<Tensors> {
    std::call_once(first, [&] { called.set_value(); });
    waits.wait();
    return in;
  });
  ASSERT_TRUE(gate.ok()) << gate.status();
  const testing::TempFolder folder;
  const Function write = DefineFunction(
      s, "Write", {ElementType::kInt64}, [&](const Scope& body, absl::Span<const Output> args) {
        const Output passed = ops::AskActor(body, {args[0]}, "gate", {ElementType::kInt64})[0];
        const Output text = ops::AsString(body, passed);
        const Scope written =
            body.WithControlDependencies({ops::WriteFile(body, folder.Path("written"), text)});
        return std::vector<Output>{ops::Identity(written, passed)};
      });
  ASSERT_TRUE(s.ok()) << s.status();
  const PublishedDataset published =
      *PublishDataset("writes", Dataset::Range(0, 20).Map(s.graph(), write));
  Build("writes");
  auto session = NewSession();
  std::future<Values> element =
      std::async(std::launch::async, [&] { return session->Run({next}); });
  called.get_future().wait();
  std::future<Values> saved = std::async(std::launch::async, [&] { return session->Run({save}); });
  // Mostly it waits by then; whatever it does, both end.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  go_on.set_value();
  for (const std::future<Values>* step : {&saved, &element}) {
    // Nothing could be ended that waits for itself.
    if (step->wait_for(std::chrono::seconds(60)) != std::future_status::ready) std::abort();
  }
  EXPECT_TRUE(element.get().ok());
  const Values position = saved.get();
  ASSERT_TRUE(position.ok()) << position.status();
  auto later = NewSession();
  ASSERT_EQ(later->RunTargets({&restore, 1}, {{this->position, (*position)[0]}}), absl::OkStatus());
  EXPECT_GE(One(*later, next), 0);
}

}  // namespace
}  // namespace troupe
