// The disk fails at each event of a save by a saver, state file, MetaGraph and removal of old
// checkpoints included: the last complete checkpoint restores.
#include <gtest/gtest.h>

#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/devices/storage/scheme_disk.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

using Fault = SimulatedDisk::Fault;
constexpr Fault kFaults[] = {Fault::kPowerBefore, Fault::kPowerMiddle, Fault::kPowerAfter,
                             Fault::kDiskFull, Fault::kReadOnly};

/// Variables on two devices that all have the number of a step.
class Program {
 public:
  explicit Program(SaverOptions options) {
    for (int i = 0; i < 3; ++i) {
      const Scope there = s_.WithDevice(i == 0 ? "/device:CPU:1" : "/device:CPU:0");
      variables_.emplace_back(there, Shape({50}), ZerosInitializer(), "v" + std::to_string(i));
      sets_.push_back(variables_.back().Assign(
          s_, ops::Fill(s_, Tensor::Vector<int32_t>({50}), ops::Identity(s_, step_))));
    }
    options.max_to_keep = 2;
    saver_ = std::make_unique<Saver>(s_, variables_, options);
    EXPECT_TRUE(s_.ok()) << s_.status();
    session_ = *Session::Create(s_.graph(), {.threads = 2, .num_cpu_devices = 2});
  }

  /// With a saver that knows what was saved before, as a program that is started again has it.
  absl::Status Save(int step) {
    TROUPE_RETURN_IF_ERROR(
        session_->RunTargets(sets_, {{step_, Tensor::Scalar(static_cast<float>(step))}}));
    TROUPE_ASSIGN_OR_RETURN(const auto saver, Saver::FromProto(*s_.graph(), saver_->ToProto()));
    const auto state = GetCheckpointState("cut://run");
    if (state.ok()) TROUPE_RETURN_IF_ERROR(saver->recover_last_checkpoints(state->all));
    return saver->Save(*session_, "cut://run/model", step).status();
  }

  /// The step that the last checkpoint is of; an error if it does not restore.
  absl::StatusOr<int> Restore() {
    TROUPE_ASSIGN_OR_RETURN(const std::string latest, LatestCheckpoint("cut://run"));
    TROUPE_RETURN_IF_ERROR(saver_->Restore(*session_, latest));
    std::vector<Output> reads;
    for (const ModelVariable& variable : variables_) reads.push_back(variable.value());
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session_->Run(reads));
    const int step = static_cast<int>(values[0].unchecked_values<float>()[0]);
    for (const Tensor& value : values) {
      for (const float element : value.unchecked_values<float>()) {
        if (element != static_cast<float>(step)) return absl::InternalError("of two steps");
      }
    }
    if (latest != "cut://run/model-" + std::to_string(step)) {
      return absl::InternalError(latest + " holds step " + std::to_string(step));
    }
    return step;
  }

 private:
  Scope s_ = Scope::NewRoot();
  const Output step_ = ops::Placeholder(s_, ElementType::kFloat, {.shape = PartialShape({})});
  std::vector<ModelVariable> variables_;
  std::vector<Node*> sets_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Session> session_;
};

void CutEverywhere(const SaverOptions& options) {
  static SchemeDisk* const disk = SchemeDisk::Register("cut");
  Program program(options);
  int old = 0, fresh = 0, events = 0;
  const int seeds = HowMany("TROUPE_SEEDS", 3, /*one_in=*/3);
  for (const Fault fault : kFaults) {
    for (int64_t at = 0;; ++at) {
      bool failed = false;
      for (int seed = 0; seed < seeds; ++seed) {
        disk->Clear();
        for (int step = 1; step <= 3; ++step) ASSERT_TRUE(program.Save(step).ok());
        disk->SetFault(fault, at);
        const absl::Status status = program.Save(4);
        failed = disk->failed();
        EXPECT_TRUE(failed || status.ok()) << status;
        disk->Restart(seed);
        const absl::StatusOr<int> step = program.Restore();
        ASSERT_TRUE(step.ok()) << "event " << at << ", seed " << seed << ": " << step.status();
        ASSERT_TRUE(*step == 3 || *step == 4) << *step;
        if (status.ok()) {
          EXPECT_EQ(*step, 4) << "a save that is done stays";
        }
        ++(*step == 3 ? old : fresh);
        // The next save is none the worse for what was left.
        const absl::Status again = program.Save(5);
        ASSERT_TRUE(again.ok()) << again;
        ASSERT_EQ(program.Restore().value_or(-1), 5);
      }
      ++events;
      if (!failed) break;
    }
  }
  EXPECT_GT(old, 33 * seeds);
  EXPECT_GT(fresh, 16 * seeds);
  EXPECT_GT(events, 100);
}

TEST(SaverPowerCut, LeavesTheLastCheckpoint) { CutEverywhere({}); }
TEST(SaverPowerCut, LeavesTheLastCheckpointOfShards) { CutEverywhere({.sharded = true}); }
TEST(SaverPowerCut, LeavesTheLastCheckpointOfTheOldFormat) {
  CutEverywhere({.write_version = SaverOptions::Format::kV1});
}

}  // namespace
}  // namespace troupe
