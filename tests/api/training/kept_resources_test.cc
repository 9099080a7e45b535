// Trainings whose steps work on what earlier ones have left in accumulators, and in staging areas
// of functions, go on from checkpoints with the same bits, whatever the disk does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "api/internal/held_queues.h"
#include "api/internal/training_state.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/api/training/cut_hook.h"
#include "tests/devices/storage/scheme_disk.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

using testing::HasSubstr;

/// Every bit of `w` depends on a queue, on a dense and a sparse accumulator, and on a staging area
/// that is used by functions only.
struct Model {
  static constexpr int kAhead = 2;

  Model() {
    const std::vector<ElementType> doubles = {ElementType::kDouble};
    step = GlobalStep(s);
    w = ModelVariable(s, ops::Const(s, Tensor::Scalar(0.0)), "w");
    const Output queue = ops::FIFOQueueV2(s.WithOpName("queue"), doubles,
                                          {.shapes = {PartialShape({})}, .capacity = 4});
    const Output drawn = ops::RandomUniform(s, Tensor::Vector<int32_t>({1}), ElementType::kDouble,
                                            {.seed = 1, .seed2 = 2});
    const QueueRunner runner(s, queue, {ops::QueueEnqueueV2(s, queue, {ops::Sum(s, drawn, 0)})});
    const Output x = ops::QueueDequeueV2(s, queue, doubles)[0];

    dense = ops::ResourceConditionalAccumulator(s.WithOpName("dense"), ElementType::kDouble,
                                                PartialShape({}));
    rows = ops::SparseConditionalAccumulator(s.WithOpName("rows"), ElementType::kDouble,
                                             PartialShape({3}));
    const auto two = Tensor::Scalar<int32_t>(2);
    const Output taken = ops::ResourceAccumulatorTakeGradient(s, dense, two, ElementType::kDouble);
    const auto taken_rows = ops::SparseAccumulatorTakeGradient(s, rows, two, ElementType::kDouble);
    const Scope after = s.WithControlDependencies({taken, taken_rows.values});
    const Output now = step.value();
    const Output next_step = ops::Add(s, now, Tensor::Scalar<int64_t>(1));
    std::vector<Node*> puts = Apply(after, next_step, x);
    // Stale, as the accumulator has given as often as there were steps.
    puts.push_back(ops::ResourceAccumulatorApplyGradient(after, dense, now, Tensor::Scalar(1e6)));
    size = ops::ResourceAccumulatorNumAccumulated(s, dense);
    prime = Apply(s, Tensor::Scalar<int64_t>(0), Tensor::Scalar(0.25));

    const Function put = DefineFunction(s, "put", {ElementType::kDouble},
                                        [](const Scope& f, absl::Span<const Output> args) {
                                          ops::Stage(f, {args[0]}, {.shared_name = "area"});
                                          return std::vector<Output>{ops::Identity(f, args[0])};
                                        });
    const Function take =
        DefineFunction(s, "take", {}, [&](const Scope& f, absl::Span<const Output>) {
          return std::vector<Output>{ops::Unstage(f, doubles, {.shared_name = "area"})[0]};
        });
    const Function count =
        DefineFunction(s, "count", {}, [&](const Scope& f, absl::Span<const Output>) {
          return std::vector<Output>{ops::StageSize(f, doubles, {.shared_name = "area"})};
        });
    const OutputList taken_out = Call(s, take, {}), left = Call(s, put, {x});
    area_size = Call(s, count, {})[0];
    prime_area = Call(s, put, {Tensor::Scalar(0.5)})[0].node;

    Output next = ops::Add(s, ops::Mul(s, w.value(), Tensor::Scalar(0.9)), x);
    next = ops::Add(s, next, taken);
    next = ops::Add(s, next, ops::Sum(s, taken_rows.values, 0));
    next = ops::Add(s, next, ops::Mul(s, taken_out[0], Tensor::Scalar(4.0)));
    puts.push_back(left[0].node);
    puts.push_back(w.Assign(s, next));
    train = step.AssignAdd(s.WithControlDependencies(puts), int64_t{1});
  }

  /// Two gradients for each accumulator.
  std::vector<Node*> Apply(const Scope& scope, const Input& at, const Input& x) {
    const Output value = ops::Identity(scope, x);
    const Output tripled = ops::Mul(scope, value, Tensor::Scalar(3.0));
    const Output two_rows = ops::Pack(scope, {value, tripled});
    const auto shape = Tensor::Vector<int64_t>({3});
    return {ops::ResourceAccumulatorApplyGradient(scope, dense, at, value),
            ops::ResourceAccumulatorApplyGradient(scope, dense, at, tripled),
            ops::SparseAccumulatorApplyGradient(scope, rows, at, Tensor::Vector<int64_t>({0, 2}),
                                                two_rows, shape, true),
            ops::SparseAccumulatorApplyGradient(scope, rows, at, Tensor::Vector<int64_t>({1, 2}),
                                                two_rows, shape, true)};
  }

  Scope s = Scope::NewRoot();
  ModelVariable step, w;
  Output dense, rows, size, area_size;
  std::vector<Node*> prime;
  Node *prime_area = nullptr, *train = nullptr;
};

class KeptResources : public testing::Test {
 protected:
  static constexpr char kFolder[] = "kept://run";
  static constexpr int kSteps = 24;

  void SetUp() override {
    disk_->Clear();
    const absl::Status status = Train(kSteps);
    ASSERT_TRUE(status.ok()) << status;
    wanted_ = Result();
    disk_->Clear();
  }

  /// Up to `last_step`, or for so many steps.
  static absl::Status Train(int64_t last_step, int64_t steps = 0) {
    const Model model;
    TROUPE_RETURN_IF_ERROR(model.s.status());
    MonitoredTrainingOptions options = {
        .session = {.threads = 2},
        .checkpoint_dir = kFolder,
        .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(last_step)),
                  std::make_shared<FillHook>(model.prime, model.size, 2),
                  std::make_shared<FillHook>(std::vector<Node*>{model.prime_area}, model.area_size,
                                             Model::kAhead)},
        .save_checkpoints = {.steps = 5},
        .save_summaries = {},
        .log_step_count_steps = 0};
    if (steps > 0) options.hooks.push_back(std::make_shared<CutHook>(steps));
    TROUPE_ASSIGN_OR_RETURN(const auto session, MonitoredTrainingSession(model.s.graph(), options));
    absl::Status status;
    while (status.ok() && !session->should_stop()) {
      status = session->Run({}, {}, {model.train}).status();
    }
    status.Update(session->Close());
    return status;
  }
  static double Result() {
    const auto value = LoadVariable(*LatestCheckpoint(kFolder), "w");
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? value->unchecked_scalar<double>() : 0;
  }

  SchemeDisk* const disk_ = [] {
    static SchemeDisk* const disk = SchemeDisk::Register("kept");
    return disk;
  }();
  double wanted_ = 0;
};

TEST_F(KeptResources, GoOnWithTheSameBits) {
  std::mt19937 random(7);
  for (int round = 0; round < 5; ++round) {
    disk_->Clear();
    int cuts = 0;
    while (true) {
      const absl::Status status = Train(kSteps, std::uniform_int_distribution<>(1, 9)(random));
      if (status.ok()) break;
      ASSERT_TRUE(absl::IsInternal(status)) << status;
      ++cuts;
    }
    EXPECT_EQ(Result(), wanted_) << "after " << cuts << " cuts";
    EXPECT_GT(cuts, 2);
  }

  // Of what the test above depends on.
  disk_->Clear();
  ASSERT_TRUE(Train(10).ok());
  const std::string prefix = *LatestCheckpoint(kFolder);
  auto state = ReadTrainingState(prefix);
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->resources.size(), 3u);
  for (KeptResource& one : state->resources) {
    if (auto* sum = std::get_if<AccumulatorState>(&one.state)) {
      EXPECT_EQ(sum->step, 10);
      EXPECT_EQ(sum->count, 2);
      EXPECT_EQ(sum->indices.size(), one.place.node == "rows" ? 3u : 0u);
      sum->values = sum->indices.empty() ? Tensor::Scalar(0.0) : Tensor::Vector<double>({0, 0, 0});
    } else {
      EXPECT_EQ(std::get<StagingAreaState>(one.state).tuples.size(), 2u);
      EXPECT_EQ(one.place.name, "area");
    }
  }
  ASSERT_TRUE(WriteTrainingState(prefix, *state).ok());
  ASSERT_TRUE(Train(kSteps).ok());
  EXPECT_NE(Result(), wanted_);
}

// The disk is full or read-only from some event on: the training ends with an error, and the next
// one goes on from the last checkpoint.
TEST_F(KeptResources, WhateverTheDiskDoes) {
  int failures = 0;
  for (const auto fault : {SimulatedDisk::Fault::kDiskFull, SimulatedDisk::Fault::kReadOnly}) {
    for (int64_t at = 0;; at += 7) {
      disk_->Clear();
      ASSERT_TRUE(Train(5).ok());
      disk_->SetFault(fault, at);
      const absl::Status status = Train(12);
      const bool failed = disk_->failed();
      // What only event files have missed ends nothing.
      EXPECT_TRUE(status.ok() || failed) << "event " << at << ": " << status;
      disk_->SetFault(SimulatedDisk::Fault::kNone, 0);
      if (!failed) break;
      failures += status.ok() ? 0 : 1;
      const absl::Status again = Train(kSteps);
      ASSERT_TRUE(again.ok()) << "event " << at << ": " << again;
      ASSERT_EQ(Result(), wanted_) << "event " << at;
    }
  }
  EXPECT_GT(failures, 10);
}

// The power is cut at each event of a training: the next one goes on from a checkpoint, with the
// state that stands beside it.
TEST_F(KeptResources, WhenThePowerIsCut) {
  using Fault = SimulatedDisk::Fault;
  constexpr Fault kFaults[] = {Fault::kPowerBefore, Fault::kPowerMiddle, Fault::kPowerAfter};
  int cuts = 0, later = 0;
  for (int64_t at = 0;; at += kSlowBuild ? 5 : 1) {
    disk_->Clear();
    ASSERT_TRUE(Train(5).ok());
    disk_->SetFault(kFaults[at % 3], at);
    const absl::Status status = Train(12);
    if (!disk_->failed()) break;
    ++cuts;
    disk_->Restart(static_cast<uint64_t>(at));
    const auto latest = LatestCheckpoint(kFolder);
    ASSERT_TRUE(latest.ok()) << "event " << at << ": " << latest.status();
    ASSERT_TRUE(ReadTrainingState(*latest).ok()) << "event " << at << ", " << *latest;
    later += *latest != StrCat(kFolder, "/model.ckpt-5") ? 1 : 0;
    const absl::Status again = Train(kSteps);
    ASSERT_TRUE(again.ok()) << "event " << at << ": " << again;
    ASSERT_EQ(Result(), wanted_) << "event " << at;
  }
  EXPECT_GT(cuts, kSlowBuild ? 10 : 50);
  EXPECT_GT(later, kSlowBuild ? 2 : 10);
}

// Some bytes of what is kept are altered: the training does not begin.
TEST_F(KeptResources, AnAlteredFileIsRefused) {
  ASSERT_TRUE(Train(5).ok());
  const std::string path = TrainingStatePath(*LatestCheckpoint(kFolder));
  const std::string whole = disk_->Contents(path);
  ASSERT_GT(whole.size(), 200u);
  for (size_t at = 0; at < whole.size(); at += whole.size() / 40) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ (1 << at % 8));
    disk_->Put(path, altered);
    const absl::Status status = Train(kSteps);
    ASSERT_TRUE(absl::IsDataLoss(status)) << "byte " << at << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
  disk_->Put(path, whole);
  ASSERT_TRUE(Train(kSteps).ok());
  EXPECT_EQ(Result(), wanted_);
}

// What a runner's step has taken from an accumulator is on its way.
TEST_F(KeptResources, AnAccumulatorAtWhichARunnerWaitsIsNotKept) {
  const Scope s = Scope::NewRoot();
  const Output sum = ops::ResourceConditionalAccumulator(s, ElementType::kDouble, PartialShape({}));
  const Output queue = ops::FIFOQueueV2(s, {ElementType::kDouble}, {.capacity = 2});
  const Output taken = ops::ResourceAccumulatorTakeGradient(s, sum, Tensor::Scalar<int32_t>(2),
                                                            ElementType::kDouble);
  const QueueRunner runner(s, queue, {ops::QueueEnqueueV2(s, queue, {taken})});
  Node* const apply = ops::ResourceAccumulatorApplyGradient(s, sum, Tensor::Scalar<int64_t>(0),
                                                            Tensor::Scalar(1.0));
  ASSERT_TRUE(s.ok()) << s.status();
  const auto session = Session::Create(s.graph(), {.threads = 2});
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(**session, coordinator).ok());
  ASSERT_TRUE((*session)->RunTargets({apply}).ok());
  TrainingState state;
  const absl::Status saved = HeldQueues(**session).Save(absl::Seconds(10), &state);
  EXPECT_TRUE(saved.ok()) << saved;
  EXPECT_TRUE(state.resources.empty());
  coordinator.RequestStop();
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_TRUE(coordinator.Join(absl::Seconds(30)).ok());
}

TEST(FillHook, SaysWhatIsNotFilled) {
  const Scope s = Scope::NewRoot();
  const Output size = ops::StageSize(s, {ElementType::kDouble}, {.shared_name = "area"});
  Node* const nothing = ops::NoOp(s);
  const auto session = Session::Create(s.graph(), {.threads = 1});
  Coordinator coordinator;
  FillHook hook({nothing}, size, 1);
  const absl::Status status = hook.AfterCreateSession(**session, coordinator);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(size.name()));
  FillHook wrong({nothing}, ops::Const(s, Tensor::Scalar(1.0f)), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(wrong.AfterCreateSession(**session, coordinator)));
  FillHook none({nothing}, size, 0);
  EXPECT_TRUE(none.AfterCreateSession(**session, coordinator).ok());
}

}  // namespace
}  // namespace troupe
