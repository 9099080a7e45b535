#include "api/internal/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "devices/storage/record_reader.h"
#include "devices/storage/record_writer.h"
#include "devices/tensor_proto.h"
#include "graph/protos/training_state.pb.h"
#include "tests/devices/storage/scheme_disk.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr char kPrefix[] = "state://d/m";
constexpr char kFile[] = "state://d/m.troupe-state";

SimulatedDisk* Disk() {
  static SchemeDisk* const disk = SchemeDisk::Register("state");
  disk->Clear();
  EXPECT_TRUE(disk->CreateDirectories("state://d").ok());
  return disk;
}

TrainingState Example() {
  TrainingState state{.global_step = 7, .kernels = {{"noise", "where it is"}}};
  QueueState& queue = state.queues["queue"];
  queue.closing = true;
  queue.generator = std::string(32, '\3');
  queue.elements = {{Tensor::Scalar(1.5f), Tensor::Vector<std::string>({"a", ""})},
                    {Tensor::Scalar(0.0f), Tensor::Vector<std::string>({})}};
  queue.waiting = {{Tensor::Scalar(2.5f), Tensor::Vector<std::string>({"c"})}};
  state.queues["empty"].closed = true;
  state.resources.push_back(
      {{"put", "/device:CPU:0", "c", "area"},
       StagingAreaState{{3, 1000}, {{Tensor::Scalar(1.5f)}, {Tensor::Scalar<int64_t>(2)}}}});
  StagingMapState map{.options = {2, 0}, .types = {ElementType::kFloat, ElementType::kString}};
  map.complete[-1] = {Tensor::Scalar(1.0f), Tensor()};
  map.incomplete[7] = {Tensor(), Tensor::Scalar<std::string>("s")};
  state.resources.push_back({{"map", "/device:CPU:1", "", "map"}, std::move(map)});
  BarrierState barrier{.next_index = -5, .closed = true};
  barrier.ready = {{-7, "k", {Tensor::Scalar(1.0f), Tensor::Scalar(2.0f)}}};
  barrier.incomplete = {{-6, "l", {Tensor(), Tensor::Scalar(3.0f)}}};
  state.resources.push_back({{"barrier", "", "", "barrier"}, std::move(barrier)});
  state.resources.push_back(
      {{"sum", "", "", "sum"},
       AccumulatorState{7, 2, Tensor::Vector<float>({1, 2}), {4, 1}, {2, 1}}});
  state.resources.push_back({{"none", "", "", "none"}, AccumulatorState{.step = 3}});
  for (const auto& [name, tensor] : EveryType()) state.variables[name] = tensor;
  state.variables["zeros"] = Tensor::Vector<int64_t>({0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  return state;
}

// As of an iterator with a window full of images: a message has 2 GiB at most.
TEST(TrainingState, LargeStatesOfKernelsHaveRecordsOfTheirOwn) {
  SimulatedDisk* const disk = Disk();
  TrainingState state{.global_step = 7};
  state.kernels["a"] = "small";
  for (const std::string name : {"b", "c", "d"}) {
    std::string& bytes = state.kernels[name];
    bytes.resize(name == "c" ? size_t{34} << 20 : size_t{10} << 20);
    for (size_t i = 0; i < bytes.size(); i += 4099)
      bytes[i] = static_cast<char>(i / 4099 + name[0]);
  }
  state.kernels["e"] = "";
  state.variables["v"] = Tensor::Scalar(1.0f);
  ASSERT_TRUE(WriteTrainingState(kPrefix, state).ok());
  const auto records = RecordReader::Open(disk, kFile);
  std::string record;
  std::vector<size_t> sizes;
  while (*(*records)->Next(&record)) sizes.push_back(record.size() >> 20);
  EXPECT_THAT(sizes, testing::ElementsAre(10, 16, 16, 2, 10, 0));
  const auto read = ReadTrainingState(kPrefix);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->kernels == state.kernels);
  EXPECT_EQ(read->variables.size(), 1u);
}

TEST(TrainingState, IsReadAsItWasWritten) {
  Disk();
  const TrainingState state = Example();
  ASSERT_TRUE(WriteTrainingState(kPrefix, state).ok());
  const auto read = ReadTrainingState(kPrefix);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->global_step, 7);
  EXPECT_EQ(read->kernels, state.kernels);
  ASSERT_EQ(read->queues.size(), 2u);
  for (const auto& [name, want] : state.queues) {
    const QueueState& got = read->queues.at(name);
    EXPECT_EQ(got.closed, want.closed);
    EXPECT_EQ(got.closing, want.closing);
    EXPECT_EQ(got.generator, want.generator);
    for (const auto tuples : {&QueueState::elements, &QueueState::waiting}) {
      ASSERT_EQ((got.*tuples).size(), (want.*tuples).size());
      for (size_t i = 0; i < (want.*tuples).size(); ++i) {
        ASSERT_EQ((got.*tuples)[i].size(), (want.*tuples)[i].size());
        for (size_t j = 0; j < (want.*tuples)[i].size(); ++j) {
          EXPECT_EQ(Difference((got.*tuples)[i][j], (want.*tuples)[i][j]), "");
        }
      }
    }
  }
  ASSERT_EQ(read->resources.size(), state.resources.size());
  for (size_t i = 0; i < state.resources.size(); ++i) {
    EXPECT_EQ(read->resources[i].place, state.resources[i].place);
    ResourceStateDef want, got;
    const auto wanted = StateToDef(state.resources[i].state, &want);
    const auto tuples = StateToDef(read->resources[i].state, &got);
    EXPECT_EQ(got.SerializeAsString(), want.SerializeAsString()) << want.DebugString();
    ASSERT_EQ(tuples.size(), wanted.size());
    for (size_t t = 0; t < wanted.size(); ++t) {
      TupleDef want_tuple, got_tuple;
      EXPECT_TRUE(TupleToDef(wanted[t], &want_tuple).ok());
      EXPECT_TRUE(TupleToDef(tuples[t], &got_tuple).ok());
      EXPECT_EQ(got_tuple.SerializeAsString(), want_tuple.SerializeAsString());
    }
  }
  ASSERT_EQ(read->variables.size(), state.variables.size());
  for (const auto& [name, want] : state.variables) {
    EXPECT_EQ(Difference(read->variables.at(name), want), "") << name;
  }
}

TEST(TrainingState, OrphansAreRemoved) {
  SimulatedDisk* const disk = Disk();
  for (const char* name : {"m-1", "m-2", "m-3", "m-4"}) {
    ASSERT_TRUE(WriteTrainingState(StrCat("state://d/", name), {}).ok());
  }
  disk->Put("state://d/m-2.index", "");
  disk->Put("state://d/m-3", "");
  disk->SetFault(SimulatedDisk::Fault::kReadOnly, 0);
  EXPECT_TRUE(RemoveOrphanedStates("state://d", {}).ok()) << "it ends no training";
  disk->SetFault(SimulatedDisk::Fault::kNone, 0);
  EXPECT_TRUE(ReadTrainingState("state://d/m-1").ok());
  EXPECT_TRUE(RemoveOrphanedStates("state://d", {"m-4.troupe-state"}).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadTrainingState("state://d/m-1").status()));
  for (const char* name : {"m-2", "m-3", "m-4"}) {
    EXPECT_TRUE(ReadTrainingState(StrCat("state://d/", name)).ok()) << name;
  }
}

TEST(TrainingState, DamageIsFound) {
  SimulatedDisk* const disk = Disk();
  TrainingState state = Example();
  state.variables.erase(++ ++state.variables.begin(), state.variables.end());
  ASSERT_TRUE(WriteTrainingState(kPrefix, state).ok());
  int damages = 0;
  ForEachDamage(disk->Contents(kFile), [&](const std::string& damaged, const std::string& what) {
    disk->Put(kFile, damaged);
    EXPECT_TRUE(absl::IsDataLoss(ReadTrainingState(kPrefix).status())) << what;
    ++damages;
  });
  EXPECT_GT(damages, 100);
}

// A state that is written while the disk fails is there as a whole or not at all, and the one
// before it stays.
TEST(TrainingState, FaultsOfTheDiskLeaveOneState) {
  using Fault = SimulatedDisk::Fault;
  SimulatedDisk* const disk = Disk();
  int whole = 0, none = 0;
  for (const Fault fault : {Fault::kPowerBefore, Fault::kPowerMiddle, Fault::kPowerAfter,
                            Fault::kDiskFull, Fault::kReadOnly}) {
    for (int64_t at = 0;; ++at) {
      bool failed = false;
      for (uint64_t seed = 0; seed < 5; ++seed) {
        Disk();
        disk->Put("state://d/other", "");  // The folder stays.
        ASSERT_TRUE(WriteTrainingState("state://d/before", Example()).ok());
        disk->SetFault(fault, at);
        const absl::Status written = WriteTrainingState(kPrefix, Example());
        failed = disk->failed();
        EXPECT_TRUE(failed || written.ok()) << written;
        disk->Restart(seed);
        const auto before = ReadTrainingState("state://d/before");
        ASSERT_TRUE(before.ok()) << before.status();
        const auto read = ReadTrainingState(kPrefix);
        EXPECT_TRUE(read.ok() || !written.ok()) << read.status();
        if (read.ok()) {
          EXPECT_EQ(read->resources.size(), Example().resources.size());
        } else {
          ASSERT_TRUE(absl::IsNotFound(read.status())) << at << ": " << read.status();
        }
        ++(read.ok() ? whole : none);
      }
      if (!failed) break;
    }
  }
  EXPECT_GT(whole, 20);
  EXPECT_GT(none, 50);
}

/// A file of these records.
absl::Status Read(SimulatedDisk* disk, const TrainingStateDef& def,
                  const std::vector<std::string>& records) {
  auto writer = RecordWriter::Create(disk, kFile);
  EXPECT_TRUE((*writer)->Write(def.SerializeAsString()).ok());
  for (const std::string& record : records) EXPECT_TRUE((*writer)->Write(record).ok());
  EXPECT_TRUE((*writer)->Close().ok());
  return ReadTrainingState(kPrefix).status();
}

TEST(TrainingState, ClaimsAreHeldAgainstWhatIsThere) {
  SimulatedDisk* const disk = Disk();
  TupleDef tuple;
  TensorToProto(Tensor::Scalar(1.0f), tuple.add_component());
  const std::string one = tuple.SerializeAsString();
  TrainingStateDef def;
  def.add_queue()->set_node("q");
  const auto expect = [&](const std::vector<std::string>& records, const char* why) {
    const absl::Status status = Read(disk, def, records);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(std::string(status.message()), HasSubstr("m.troupe-state"));
  };
  expect({one}, "more records than it says");
  def.mutable_queue(0)->set_elements(int64_t{1} << 62);
  expect({one, one}, "it ends before an element of queue 'q'");
  def.mutable_queue(0)->set_elements(1);
  def.mutable_queue(0)->set_waiting(1);
  expect({one}, "it ends before an element of queue 'q'");
  EXPECT_TRUE(Read(disk, def, {one, one}).ok());
  expect({one, "\xff"}, "an element of queue 'q' is no");
  // A single value that is to be repeated a billion times.
  TensorProto* const large = tuple.mutable_component(0);
  large->mutable_tensor_shape()->add_dim()->set_size(1000000000);
  expect({one, tuple.SerializeAsString()}, "bytes claims 1e+09 elements");
  for (const int64_t size : {int64_t{-1}, INT64_MAX}) {
    large->mutable_tensor_shape()->mutable_dim(0)->set_size(size);
    expect({one, tuple.SerializeAsString()}, "an element of queue 'q'");
  }
  large->Clear();
  large->set_dtype(DT_VARIANT);
  expect({one, tuple.SerializeAsString()}, "is no tuple of tensors");
  def.add_variable("v");
  expect({one, one}, "it ends before the value of variable 'v'");
  expect({one, one, ""}, "the value of variable 'v' is not one tensor");
  def.clear_variable();
  tuple.Clear();
  tuple.add_component();
  expect({one, tuple.SerializeAsString()}, "lacks a component");
  def.clear_queue();
  def.add_kernel()->set_node("k");
  def.mutable_kernel(0)->set_records(int64_t{1} << 62);
  expect({one, one}, "it ends before the end of the state of 'k'");
  def.mutable_kernel(0)->set_records(2);
  EXPECT_TRUE(Read(disk, def, {one, one}).ok());
}

TEST(TrainingState, ResourcesAreHeldAgainstTheirTuples) {
  SimulatedDisk* const disk = Disk();
  TupleDef tuple;
  TensorToProto(Tensor::Scalar(1.0f), tuple.add_component());
  const std::string one = tuple.SerializeAsString();
  TrainingStateDef def;
  ResourceStateDef* const resource = def.add_resource();
  resource->set_node("r");
  const auto expect = [&](std::vector<std::string> records, const char* why) {
    const absl::Status status = Read(disk, def, records);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(std::string(status.message()), HasSubstr("'r'"));
  };
  expect({}, "of a kind that this version does not know");
  resource->mutable_staging_area();
  resource->set_tuples(int64_t{1} << 62);
  expect({one}, "it ends before a tuple of 'r'");
  resource->set_tuples(1);
  EXPECT_TRUE(Read(disk, def, {one}).ok());
  constexpr char kNotAsMany[] = "has not as many tuples as it says";
  resource->mutable_staging_map()->add_complete(1);
  EXPECT_TRUE(Read(disk, def, {one}).ok());
  resource->mutable_staging_map()->add_incomplete(1);
  expect({one}, kNotAsMany);
  resource->mutable_barrier()->add_index(1);
  expect({one}, kNotAsMany);
  resource->mutable_barrier()->add_key("k");
  EXPECT_TRUE(Read(disk, def, {one}).ok());
  for (const int64_t ready : {int64_t{-1}, int64_t{2}}) {
    resource->mutable_barrier()->set_ready(ready);
    expect({one}, kNotAsMany);
  }
  resource->mutable_accumulator()->set_count(1);
  EXPECT_TRUE(Read(disk, def, {one}).ok());
  expect({""}, kNotAsMany);
  resource->set_tuples(2);
  expect({one, one}, kNotAsMany);
  resource->set_tuples(1);
  resource->mutable_queue()->set_elements(-1);
  expect({one}, kNotAsMany);
  resource->mutable_queue()->set_elements(0);
  expect({one}, kNotAsMany);
  resource->set_reader("where");
  expect({one}, kNotAsMany);
}

}  // namespace
}  // namespace troupe
