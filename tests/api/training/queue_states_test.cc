// Trainings that read from queues, and go on from checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "api/input.h"
#include "api/internal/held_queues.h"
#include "api/internal/training_state.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "kernels/actors/tensor_actor.h"
#include "tests/api/training/cut_hook.h"

namespace troupe {
namespace {

using testing::Each;
using testing::HasSubstr;

/// 0, 1 and so on, up to `limit`: a number a step, counted by a local variable.
Output Numbers(const Scope& s, int64_t limit) {
  const Output counter =
      ops::VariableV2(s.WithOpName("counter"), PartialShape({}), ElementType::kInt64);
  const Output zero = ops::Assign(s.WithOpName("zero"), counter, Tensor::Scalar<int64_t>(0));
  s.graph()->AddToCollection(collections::kLocalVariableInitializers, zero.node->name());
  return ops::CountUpTo(s, counter, limit);
}

/// A training of which every bit depends on the order of a shuffling queue, on the random numbers
/// that its runner draws, and on how far the runner has counted.
struct Shuffled {
  Shuffled() {
    step = GlobalStep(s);
    w = ModelVariable(s, ops::Const(s, Tensor::Scalar(0.0)), "w");
    // Elements are chosen from ten, not from as many as happen to be there.
    const Output queue = ops::RandomShuffleQueueV2(
        s.WithOpName("queue"), {ElementType::kDouble},
        {.shapes = {PartialShape({})}, .capacity = 10, .min_after_dequeue = 9, .seed = 3});
    const Output noise = ops::RandomUniform(s, Tensor::Vector<int32_t>({1}), ElementType::kDouble,
                                            {.seed = 1, .seed2 = 2});
    const Output number = ops::Cast(s, Numbers(s, INT64_MAX), ElementType::kDouble);
    const Output element = ops::Add(s, number, ops::Sum(s, noise, 0));
    const QueueRunner runner(s, queue, {ops::QueueEnqueueV2(s, queue, {element})});
    const Output x = ops::QueueDequeueV2(s, queue, {ElementType::kDouble})[0];
    const Output next = ops::Add(s, ops::Mul(s, w.value(), Tensor::Scalar(0.9)), x);
    train = step.AssignAdd(s.WithControlDependencies({Output(w.Assign(s, next))}), int64_t{1});
  }

  Scope s = Scope::NewRoot();
  ModelVariable step, w;
  Node* train = nullptr;
};

/// A training that counts how often each of some numbers has come, by way of two queues that
/// several steps fill at once.
struct Counted {
  static constexpr int64_t kNumbers = 300;

  Counted() {
    const auto int64 = std::vector<ElementType>{ElementType::kInt64};
    const auto scalar = std::vector<PartialShape>{PartialShape({})};
    step = GlobalStep(s);
    seen = ModelVariable(s, {kNumbers}, ZerosInitializer(), "seen", /*trainable=*/false,
                         ElementType::kInt32);
    const Output shuffled = ops::RandomShuffleQueueV2(
        s.WithOpName("shuffled"), int64, {.shapes = scalar, .capacity = 9, .min_after_dequeue = 4});
    const Output numbers =
        ops::FIFOQueueV2(s.WithOpName("numbers"), int64, {.shapes = scalar, .capacity = 3});
    // The order in which they are made is not that in which they must be held.
    const Output pair = ops::QueueDequeueManyV2(s, numbers, Tensor::Scalar<int32_t>(2), int64)[0];
    Node* const shuffle = ops::QueueEnqueueManyV2(s, shuffled, {pair});
    Node* const count = ops::QueueEnqueueV2(s, numbers, {Numbers(s, kNumbers)});
    const QueueRunner shuffling(s, shuffled, {shuffle, shuffle, shuffle});
    const QueueRunner counting(s, numbers, {count, count});
    const Output taken = ops::QueueDequeueUpToV2(s, shuffled, Tensor::Scalar<int32_t>(3), int64)[0];
    const Output ones = ops::OnesLike(s, ops::Cast(s, taken, ElementType::kInt32));
    Node* const add = ops::ResourceScatterAdd(s, seen.handle(), taken, ones);
    train = step.AssignAdd(s.WithControlDependencies({Output(add)}), int64_t{1});
  }

  Scope s = Scope::NewRoot();
  ModelVariable step, seen;
  Node* train = nullptr;
};

/// The same of numbers that stand in files, which are read in two epochs.
struct ReadFromFiles {
  static constexpr int64_t kFiles = 4, kNumbersOfFile = 25;

  explicit ReadFromFiles(const std::string& folder) {
    std::filesystem::create_directories(folder);
    std::vector<std::string> names;
    for (int64_t file = 0; file < kFiles; ++file) {
      std::vector<int64_t> numbers(kNumbersOfFile);
      std::iota(numbers.begin(), numbers.end(), file * kNumbersOfFile);
      names.push_back(StrCat(folder, "/", file));
      std::ofstream(names.back())
          .write(reinterpret_cast<const char*>(numbers.data()), kNumbersOfFile * sizeof(int64_t));
    }
    step = GlobalStep(s);
    seen = ModelVariable(s, {kFiles * kNumbersOfFile}, ZerosInitializer(), "seen",
                         /*trainable=*/false, ElementType::kInt32);
    const Output files =
        StringInputProducer(s, Tensor::Vector<std::string>(names), {.num_epochs = 2, .seed = 1});
    const Output reader = ops::FixedLengthRecordReaderV2(s, /*record_bytes=*/8);
    const auto record = ops::ReaderReadV2(s, reader, files);
    const Output number = ops::Sum(s, ops::DecodeRaw(s, record.value, ElementType::kInt64), 0);
    const OutputList taken =
        Batch(s, {number}, 3, {.capacity = 8, .allow_smaller_final_batch = true});
    const Output ones = ops::OnesLike(s, ops::Cast(s, taken[0], ElementType::kInt32));
    Node* const add = ops::ResourceScatterAdd(s, seen.handle(), taken[0], ones);
    train = step.AssignAdd(s.WithControlDependencies({Output(add)}), int64_t{1});
  }

  Scope s = Scope::NewRoot();
  ModelVariable step, seen;
  Node* train = nullptr;
};

/// A training whose steps work on what was left two steps ago in a staging area, a staging map and
/// a barrier. Every bit depends on all that they hold.
struct Staged {
  static constexpr int kAhead = 2;

  Staged() {
    const std::vector<ElementType> doubles = {ElementType::kDouble};
    step = GlobalStep(s);
    w = ModelVariable(s, ops::Const(s, Tensor::Scalar(0.0)), "w");
    const Output one = ops::Const(s, Tensor::Vector<int32_t>({1}));
    const Output drawn = ops::RandomUniform(s, one, ElementType::kDouble, {.seed = 1, .seed2 = 2});
    const Output noise = ops::Sum(s, drawn, 0);
    key = ops::PlaceholderWithDefault(s, step.value(), PartialShape({}));
    const Output indices = ops::Const(s, Tensor::Vector<int32_t>({0}));
    barrier = ops::Barrier(s.WithOpName("barrier"), doubles, {.shapes = {PartialShape({})}});
    put = {
        ops::Stage(s, {noise}, {.capacity = kAhead + 1, .shared_name = "area"}),
        ops::OrderedMapStage(s, key, indices, {noise}, doubles, {.shared_name = "map"}),
        ops::BarrierInsertMany(s, barrier, ops::ExpandDims(s, ops::AsString(s, key), 0), drawn, 0)};
    size = ops::StageSize(s, doubles, {.capacity = kAhead + 1, .shared_name = "area"});
    // Of the same number for each: what is lost or too much would be seen.
    const Output staged =
        ops::Unstage(s, doubles, {.capacity = kAhead + 1, .shared_name = "area"})[0];
    const auto mapped = ops::OrderedMapUnstageNoKey(s, indices, doubles, {.shared_name = "map"});
    const auto complete = ops::BarrierTakeMany(s, barrier, 1, doubles);
    Output next = ops::Mul(s, w.value(), Tensor::Scalar(0.9));
    next = ops::Add(s, next, staged);
    next = ops::Add(s, next, ops::Mul(s, mapped.values[0], Tensor::Scalar(2.0)));
    next = ops::Add(s, next, ops::Mul(s, ops::Sum(s, complete.values[0], 0), Tensor::Scalar(4.0)));
    std::vector<Node*> all = put;
    all.push_back(w.Assign(s, next));
    train = step.AssignAdd(s.WithControlDependencies(all), int64_t{1});
  }

  /// Puts in what the first steps take, unless it is there.
  struct Prime final : SessionRunHook {
    explicit Prime(const Staged& model) : model(model) {}
    absl::Status AfterCreateSession(Session& session, Coordinator&) override {
      TROUPE_ASSIGN_OR_RETURN(const auto sizes, session.Run({model.size}));
      if (sizes[0].unchecked_scalar<int32_t>() > 0) return absl::OkStatus();
      for (int64_t i = 0; i < kAhead; ++i) {
        TROUPE_RETURN_IF_ERROR(
            session.RunTargets(model.put, {{model.key, Tensor::Scalar<int64_t>(i - kAhead)}}));
      }
      return absl::OkStatus();
    }
    const Staged& model;
  };

  Scope s = Scope::NewRoot();
  ModelVariable step, w;
  Output key, barrier, size;
  std::vector<Node*> put;
  Node* train = nullptr;
};

class QueueStates : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Trains up to `last_step`, the end of the input, or for so many steps.
  template <typename Model>
  absl::Status Train(const Model& model, int64_t last_step, int64_t steps = 0,
                     int64_t save_every = 3) {
    TROUPE_RETURN_IF_ERROR(model.s.status());
    MonitoredTrainingOptions options = {
        .session = {.threads = 2},
        .checkpoint_dir = folder_,
        .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(last_step))},
        .save_checkpoints = {.steps = save_every}};
    if (steps > 0) options.hooks.push_back(std::make_shared<CutHook>(steps));
    if constexpr (requires { typename Model::Prime; }) {
      options.hooks.push_back(std::make_shared<typename Model::Prime>(model));
    }
    TROUPE_ASSIGN_OR_RETURN(const auto session, MonitoredTrainingSession(model.s.graph(), options));
    absl::Status status;
    while (status.ok() && !session->should_stop()) {
      status = session->Run({}, {}, {model.train}).status();
    }
    if (absl::IsOutOfRange(status)) status = absl::OkStatus();
    status.Update(session->Close());
    return status;
  }
  /// The same from the beginning to its end, cut after up to `most` steps each time; how often.
  template <typename Model, typename... Args>
  int TrainWithCuts(std::mt19937* random, int most, int64_t last_step, int64_t save_every,
                    const Args&... args) {
    std::filesystem::remove_all(folder_);
    absl::Status status = absl::InternalError("not begun");
    int cuts = -1;
    for (; absl::IsInternal(status); ++cuts) {
      const int steps = std::uniform_int_distribution<>(1, most)(*random);
      status = Train(Model(args...), last_step, steps, save_every);
    }
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_GT(cuts, 2);
    return cuts;
  }
  template <typename T>
  std::vector<T> Variable(const std::string& name) {
    const auto value = LoadVariable(*LatestCheckpoint(folder_), name);
    EXPECT_TRUE(value.ok()) << value.status();
    if (!value.ok()) return {};
    const auto span = value->unchecked_values<T>();
    return {span.begin(), span.end()};
  }

  const std::string folder_ = testing::TempDir() + "troupe_queue_states_test";
};

TEST_F(QueueStates, AShufflingQueueGoesOnWithTheSameBits) {
  constexpr int kSteps = 100;
  ASSERT_TRUE(Train(Shuffled(), kSteps).ok());
  const std::vector<double> wanted = Variable<double>("w");
  std::filesystem::remove_all(folder_);
  ASSERT_TRUE(Train(Shuffled(), kSteps, 0, 1000).ok());
  EXPECT_EQ(Variable<double>("w"), wanted) << "saving changes nothing";

  std::mt19937 random(1);
  for (int round = 0; round < 5; ++round) {
    const int cuts = TrainWithCuts<Shuffled>(&random, 25, kSteps, 3);
    EXPECT_EQ(Variable<double>("w"), wanted) << "after " << cuts << " cuts";
  }

  // Of what the test above depends on.
  std::filesystem::remove_all(folder_);
  ASSERT_TRUE(Train(Shuffled(), 30).ok());
  auto state = ReadTrainingState(*LatestCheckpoint(folder_));
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->queues.count("queue"), 1u);
  // The runner may be between two steps.
  const size_t held = state->queues["queue"].elements.size(),
               waiting = state->queues["queue"].waiting.size();
  EXPECT_THAT(held, testing::AnyOf(9, 10));
  ASSERT_EQ(state->variables.count("counter"), 1u);
  EXPECT_EQ(state->variables["counter"].unchecked_scalar<int64_t>(),
            static_cast<int64_t>(30 + held + waiting));
  state->queues.clear();
  ASSERT_TRUE(WriteTrainingState(*LatestCheckpoint(folder_), *state).ok());
  ASSERT_TRUE(Train(Shuffled(), kSteps).ok());
  EXPECT_NE(Variable<double>("w"), wanted);
}

TEST_F(QueueStates, StagingAreasAndBarriersGoOnWithTheSameBits) {
  constexpr int kSteps = 40;
  ASSERT_TRUE(Train(Staged(), kSteps).ok());
  const std::vector<double> wanted = Variable<double>("w");
  std::filesystem::remove_all(folder_);
  ASSERT_TRUE(Train(Staged(), kSteps, 0, 1000).ok());
  EXPECT_EQ(Variable<double>("w"), wanted) << "saving changes nothing";

  std::mt19937 random(4);
  for (int round = 0; round < 5; ++round) {
    const int cuts = TrainWithCuts<Staged>(&random, 12, kSteps, 3);
    EXPECT_EQ(Variable<double>("w"), wanted) << "after " << cuts << " cuts";
  }

  // Of what the test above depends on.
  std::filesystem::remove_all(folder_);
  ASSERT_TRUE(Train(Staged(), 20).ok());
  const std::string prefix = *LatestCheckpoint(folder_);
  const auto state = ReadTrainingState(prefix);
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->resources.size(), 3u);
  const std::string whole = [&] {
    std::ifstream file(TrainingStatePath(prefix), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  // What was on a device that is not there begins anew.
  TrainingState moved = *state;
  for (KeptResource& one : moved.resources) {
    if (std::holds_alternative<BarrierState>(one.state)) {
      std::get<BarrierState>(one.state) = {};
    } else {
      one.place.device = "/device:CPU:7";
    }
  }
  ASSERT_TRUE(WriteTrainingState(prefix, moved).ok());
  const absl::Status anew = Train(Staged(), kSteps);
  EXPECT_TRUE(anew.ok()) << anew;
  EXPECT_NE(Variable<double>("w"), wanted);
  std::filesystem::remove_all(folder_);

  // A torn file is an error, and nothing is lost.
  ASSERT_TRUE(Train(Staged(), 20).ok());
  {
    std::ofstream file(TrainingStatePath(prefix), std::ios::binary);
    file.write(whole.data(), static_cast<std::streamsize>(whole.size() - 20));
  }
  const absl::Status torn = Train(Staged(), kSteps);
  EXPECT_TRUE(absl::IsDataLoss(torn)) << torn;
  EXPECT_THAT(std::string(torn.message()), HasSubstr(TrainingStatePath(prefix)));
  std::ofstream(TrainingStatePath(prefix), std::ios::binary)
      .write(whole.data(), static_cast<std::streamsize>(whole.size()));
  ASSERT_TRUE(Train(Staged(), kSteps).ok());
  EXPECT_EQ(Variable<double>("w"), wanted);
}

TEST_F(QueueStates, EveryElementComesOnceHoweverOftenItIsCut) {
  std::mt19937 random(2);
  for (int round = 0; round < 5; ++round) {
    const int cuts = TrainWithCuts<Counted>(&random, 30, INT64_MAX, 1 + round);
    EXPECT_THAT(Variable<int32_t>("seen"), Each(1)) << "after " << cuts << " cuts";
  }
  // Once more: the queues are closed and empty, and stay so.
  EXPECT_TRUE(Train(Counted(), INT64_MAX).ok());
  EXPECT_THAT(Variable<int32_t>("seen"), Each(1));
}

TEST_F(QueueStates, ReadersGoOnWithinTheirFiles) {
  const std::string files = folder_ + "_files";
  std::mt19937 random(3);
  for (int round = 0; round < 5; ++round) {
    const int cuts = TrainWithCuts<ReadFromFiles>(&random, 12, INT64_MAX, 1 + round % 3, files);
    EXPECT_THAT(Variable<int32_t>("seen"), Each(2)) << "after " << cuts << " cuts";
  }
  std::filesystem::remove_all(files);
}

TEST_F(QueueStates, StepsThatDoNotComeToRestAreNamed) {
  const Scope s = Scope::NewRoot();
  const auto make = [&s](const char* name) {
    return ops::FIFOQueueV2(s.WithOpName(name), {ElementType::kInt64}, {.capacity = 2});
  };
  const Output queue = make("queue"), never_filled = make("never_filled");
  const QueueRunner runner(
      s, queue,
      {ops::QueueEnqueueV2(s, queue,
                           {ops::QueueDequeueV2(s, never_filled, {ElementType::kInt64})[0]})});
  ASSERT_TRUE(s.ok()) << s.status();
  const auto session = Session::Create(s.graph(), {.threads = 2});
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(**session, coordinator).ok());
  TrainingState state;
  const absl::Status saved = HeldQueues(**session).Save(absl::Milliseconds(20), &state);
  EXPECT_TRUE(absl::IsDeadlineExceeded(saved)) << saved;
  EXPECT_THAT(std::string(saved.message()), HasSubstr("queue 'queue'"));
  coordinator.RequestStop();
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_TRUE(coordinator.Join(absl::Seconds(30)).ok());
}

/// Answers 1, but for the fifth time, when it is not there.
class AbsentOnce final : public TensorActor {
 public:
  uint64_t Ask(std::vector<Tensor>, absl::Duration, Answer answer) override {
    if (++asked_ == 5) {
      answer(absl::UnavailableError("the source was lost"));
    } else {
      answer(std::vector<Tensor>{Tensor::Scalar(1.0)});
    }
    return 0;
  }
  void Forget(uint64_t) override {}
  absl::Status Tell(std::vector<Tensor>) override { return absl::OkStatus(); }

 private:
  std::atomic<int> asked_{0};
};

// A step that does not need what a runner has lost would go on, and the end of the queue would be
// the end of the training.
TEST_F(QueueStates, ARunnerThatLosesItsTaskIsNoEnd) {
  ASSERT_TRUE(TensorActors::Global()->Add("absent_once", std::make_shared<AbsentOnce>()).ok());
  const Scope s = Scope::NewRoot();
  const ModelVariable step = GlobalStep(s);
  const Output queue = ops::FIFOQueueV2(s.WithOpName("queue"), {ElementType::kDouble},
                                        {.shapes = {PartialShape({})}, .capacity = 2});
  const Output one = ops::AskActor(s, {step.value()}, "absent_once", {ElementType::kDouble})[0];
  const QueueRunner runner(s, queue, {ops::QueueEnqueueV2(s, queue, {one})});
  const Output x = ops::QueueDequeueV2(s, queue, {ElementType::kDouble})[0];
  Node* const train = step.AssignAdd(s.WithControlDependencies({x}), int64_t{1});
  ASSERT_TRUE(s.ok()) << s.status();
  const auto session = MonitoredTrainingSession(
      s.graph(), {.session = {.threads = 2},
                  .checkpoint_dir = folder_,
                  .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(20))},
                  .save_checkpoints = {.steps = 1}});
  ASSERT_TRUE(session.ok()) << session.status();
  absl::Status status;
  while (status.ok() && !(*session)->should_stop()) {
    status = (*session)->Run({}, {}, {train}).status();
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ((*session)->num_sessions(), 2);
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_EQ(Variable<int64_t>("global_step"), std::vector<int64_t>{20});
  TensorActors::Global()->Remove("absent_once");
}

TEST_F(QueueStates, WhatDoesNotFitBeginsAnew) {
  ASSERT_TRUE(Train(Shuffled(), 12).ok());
  const std::string prefix = *LatestCheckpoint(folder_);
  auto state = ReadTrainingState(prefix);
  ASSERT_TRUE(state.ok()) << state.status();
  QueueState& queue = state->queues["queue"];
  const QueueState whole = queue;
  state->queues["nobody"] = whole;
  state->queues["w"] = whole;
  state->variables["nobody"] = state->variables["queue"] = Tensor::Scalar(1.0f);
  state->variables["counter"] = Tensor::Scalar(1.0f);
  for (int i = 0; i < 4; ++i) {
    queue = whole;
    if (i == 0) queue.elements[3] = {Tensor::Scalar(1.0f)};
    if (i == 1) queue.waiting = {{Tensor::Vector<double>({1, 2})}};
    if (i == 2) queue.elements[0].clear();
    if (i == 3) queue.generator = "no place of a generator's, at all";
    ASSERT_TRUE(WriteTrainingState(prefix, *state).ok());
    const absl::Status trained = Train(Shuffled(), 12 + i);
    EXPECT_TRUE(trained.ok()) << i << ": " << trained;
  }
}

}  // namespace
}  // namespace troupe
