#include "devices/storage/v1_checkpoint_writer.h"

#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/local_file_system.h"
#include "devices/storage/whole_file.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

std::string Path(const std::string& name) { return ::testing::TempDir() + "v1_writer/" + name; }

TEST(V1CheckpointWriter, WritesWhatTensorFlowWrites) {
  const auto files = NewLocalFileSystem();
  for (const std::string name : {"v1", "v1-00000-of-00002", "v1-00001-of-00002"}) {
    const auto recorded = OpenCheckpoint(files.get(), TestData(name));
    ASSERT_TRUE(recorded.ok()) << recorded.status();
    auto writer = V1CheckpointWriter::Create(files.get(), Path(name));
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const auto& [tensor, about] : (*recorded)->tensors()) {
      for (const TensorSlice& slice : about.slices) {
        const auto part = (*recorded)->ReadSlice(tensor, slice);
        ASSERT_TRUE(part.ok()) << part.status();
        const absl::Status added = (*writer)->AddSlice(tensor, about.shape, slice, *part);
        ASSERT_TRUE(added.ok()) << added;
      }
    }
    const absl::Status finished = (*writer)->Finish();
    ASSERT_TRUE(finished.ok()) << finished;
    EXPECT_EQ(*ReadWholeFile(files.get(), Path(name)), *ReadWholeFile(files.get(), TestData(name)))
        << name;
  }
}

TEST(V1CheckpointWriter, EveryTypeComesBack) {
  const auto files = NewLocalFileSystem();
  auto writer = *V1CheckpointWriter::Create(files.get(), Path("types"));
  TensorsByName kept;
  for (const auto& [name, tensor] : EveryType()) {
    const absl::Status added = writer->Add(name, tensor);
    if (absl::IsUnimplemented(added)) continue;
    ASSERT_TRUE(added.ok()) << added;
    kept[name] = tensor;
  }
  EXPECT_GT(kept.size(), 15u);
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = OpenCheckpoint(files.get(), Path("types"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(Difference(**reader, kept), "");
}

TEST(V1CheckpointWriter, RefusesWhatDoesNotFit) {
  const auto files = NewLocalFileSystem();
  auto writer = *V1CheckpointWriter::Create(files.get(), Path("bad"));
  const Tensor two = Tensor::Vector<float>({1, 2}), other = Tensor::Vector<int32_t>({1, 2});
  const TensorSlice rows = *TensorSlice::Parse("0,2"), late = *TensorSlice::Parse("3,2");
  EXPECT_TRUE(absl::IsInvalidArgument(writer->Add("", two)));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->AddSlice("a", Shape({4}), late, two)));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->AddSlice("a", Shape({4, 4}), rows, two)));
  EXPECT_TRUE(writer->AddSlice("a", Shape({4}), rows, two).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(writer->AddSlice("a", Shape({4}), rows, two)));
  const TensorSlice next = *TensorSlice::Parse("2,2");
  EXPECT_TRUE(absl::IsInvalidArgument(writer->AddSlice("a", Shape({4}), next, other)));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->AddSlice("a", Shape({5}), next, two)));
  EXPECT_FALSE(files->Exists(Path("bad")).ok());
}

}  // namespace
}  // namespace troupe
