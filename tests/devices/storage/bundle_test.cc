// Bundles, written and read.

#include <memory>
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "devices/storage/bundle_reader.h"
#include "devices/storage/bundle_writer.h"
#include "devices/storage/merge_bundles.h"
#include "devices/storage/slice_copy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<CheckpointReader> Open(FileSystem* disk, const std::string& prefix) {
  auto reader = OpenCheckpoint(disk, prefix);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

std::unique_ptr<BundleWriter> NewWriter(FileSystem* disk, const std::string& prefix) {
  auto writer = BundleWriter::Create(disk, prefix, {true, "test"});
  EXPECT_TRUE(writer.ok()) << writer.status();
  return *std::move(writer);
}

// Some of the rows of a matrix.
TensorSlice Rows(int64_t begin, int64_t count) {
  return TensorSlice({{begin, count}, {0, TensorSlice::kAll}});
}

TEST(Bundle, HoldsEveryType) {
  SimulatedDisk disk;
  const TensorsByName tensors = EveryType();
  ASSERT_EQ(tensors.size(), 25 * 3 + 1);
  ASSERT_TRUE(WriteBundle(&disk, "/d/model", tensors).ok());
  EXPECT_THAT(disk.Files(), ElementsAre("/d/model.data-00000-of-00001", "/d/model.index"));
  const auto reader = Open(&disk, "/d/model");
  EXPECT_EQ(Difference(*reader, tensors), "");
  EXPECT_TRUE(reader->Verify().ok());
  const CheckpointTensor* matrix = *reader->Find("half/matrix");
  EXPECT_EQ(matrix->type, ElementType::kHalf);
  EXPECT_EQ(matrix->shape, Shape({3, 5}));
  EXPECT_TRUE(matrix->slices.empty());
}

TEST(Bundle, OfNothing) {
  SimulatedDisk disk;
  ASSERT_TRUE(WriteBundle(&disk, "/d/model", {}).ok());
  EXPECT_TRUE(Open(&disk, "/d/model")->tensors().empty());
}

TEST(Bundle, GivesSlicesOfWholeTensors) {
  SimulatedDisk disk;
  const Tensor numbers = RandomTensor(ElementType::kInt32, Shape({300, 7, 50}), 1);
  const Tensor strings = RandomTensor(ElementType::kString, Shape({30, 4}), 2);
  ASSERT_TRUE(WriteBundle(&disk, "/d/model", {{"numbers", numbers}, {"strings", strings}}).ok());
  const auto reader = Open(&disk, "/d/model");
  for (const char* text : {"10,5:-:-", "-:2,3:-", "299,1:6,1:49,1", "0,300:-:10,40", "-:-:-"}) {
    const TensorSlice slice = *TensorSlice::Parse(text);
    Tensor want = Tensor::Uninitialized(ElementType::kInt32, slice.In(numbers.shape())->shape());
    CopyCommon(numbers, *TensorSlice(3).In(numbers.shape()), *slice.In(numbers.shape()), &want);
    const auto got = reader->ReadSlice("numbers", slice);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(Difference(*got, want), "") << text;
  }
  const auto got = reader->ReadSlice("strings", Rows(29, 1));
  EXPECT_EQ(Difference(*got, strings.Slice(29, 30)), "");
  EXPECT_TRUE(absl::IsInvalidArgument(reader->ReadSlice("strings", Rows(29, 2)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(reader->ReadSlice("strings", TensorSlice(3)).status()));
}

TEST(Bundle, PutsSlicesTogether) {
  SimulatedDisk disk;
  const Tensor numbers = RandomTensor(ElementType::kDouble, Shape({10, 6}), 1);
  const Tensor strings = RandomTensor(ElementType::kString, Shape({10, 6}), 2);
  const auto writer = NewWriter(&disk, "/d/model");
  for (const auto& [begin, count] :
       std::vector<std::pair<int64_t, int64_t>>{{4, 6}, {0, 1}, {1, 3}}) {
    for (const auto& [name, whole] : TensorsByName{{"numbers", numbers}, {"strings", strings}}) {
      const Tensor part = whole.Slice(begin, begin + count);
      ASSERT_TRUE(writer->AddSlice(name, whole.shape(), Rows(begin, count), part).ok());
    }
  }
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = Open(&disk, "/d/model");
  EXPECT_EQ(Difference(*reader, {{"numbers", numbers}, {"strings", strings}}), "");
  EXPECT_EQ((*reader->Find("numbers"))->slices.size(), 3u);
  EXPECT_EQ(Difference(*reader->ReadSlice("numbers", Rows(3, 4)), numbers.Slice(3, 7)), "");
  EXPECT_EQ(Difference(*reader->ReadSlice("strings", Rows(0, 2)), strings.Slice(0, 2)), "");
  EXPECT_TRUE(reader->Verify().ok());
}

TEST(Bundle, SaysWhichPartsAreMissingOrDouble) {
  SimulatedDisk disk;
  const Tensor whole = RandomTensor(ElementType::kFloat, Shape({10, 2}), 1);
  const auto writer = NewWriter(&disk, "/d/model");
  ASSERT_TRUE(writer->AddSlice("gap", whole.shape(), Rows(0, 4), whole.Slice(0, 4)).ok());
  ASSERT_TRUE(writer->AddSlice("gap", whole.shape(), Rows(6, 4), whole.Slice(6, 10)).ok());
  ASSERT_TRUE(writer->AddSlice("overlap", whole.shape(), Rows(0, 6), whole.Slice(0, 6)).ok());
  ASSERT_TRUE(writer->AddSlice("overlap", whole.shape(), Rows(4, 6), whole.Slice(4, 10)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = Open(&disk, "/d/model");
  const absl::Status gap = reader->Read("gap").status();
  EXPECT_TRUE(absl::IsNotFound(gap)) << gap;
  EXPECT_THAT(std::string(gap.message()), HasSubstr("hold 16 of the 20 elements"));
  EXPECT_TRUE(reader->ReadSlice("gap", Rows(1, 2)).ok());
  EXPECT_EQ(reader->Read("overlap").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(reader->Verify().code(), absl::StatusCode::kDataLoss) << "of what overlaps";
}

TEST(Bundle, HoldsManyParts) {
  constexpr int kParts = 200'000;
  SimulatedDisk disk;
  const auto writer = NewWriter(&disk, "/d/model");
  const Shape shape({kParts, 1});
  for (int i = 0; i < kParts; ++i) {
    const auto part = Tensor::Vector<int32_t>({i}).Reshaped(Shape({1, 1}));
    ASSERT_TRUE(writer->AddSlice("n", shape, Rows(i, 1), part).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = Open(&disk, "/d/model");
  const absl::Time begin = absl::Now();
  const auto read = reader->Read("n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->unchecked_values<int32_t>()[kParts - 1], kParts - 1);
  EXPECT_TRUE(reader->Verify().ok());
  // Each with each other takes hours.
  EXPECT_LT(absl::Now() - begin, absl::Minutes(2));
}

TEST(BundleWriter, RefusesWhatItCannotHold) {
  SimulatedDisk disk;
  const auto writer = NewWriter(&disk, "/d/model");
  const Tensor value = Tensor::Vector<float>({1, 2});
  const auto part = [&](const char* name, const Shape& full, const char* slice, const Tensor& t) {
    return writer->AddSlice(name, full, *TensorSlice::Parse(slice), t);
  };
  ASSERT_TRUE(writer->Add("a", value).ok());
  ASSERT_TRUE(part("p", Shape({4}), "0,2", value).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(writer->Add("a", value)));
  EXPECT_TRUE(absl::IsAlreadyExists(writer->Add("p", value)));
  EXPECT_TRUE(absl::IsAlreadyExists(part("p", Shape({4}), "0,2", value)));
  EXPECT_TRUE(absl::IsInvalidArgument(part("a", Shape({4}), "0,2", value)));
  EXPECT_TRUE(absl::IsInvalidArgument(part("p", Shape({5}), "2,2", value)));
  EXPECT_TRUE(absl::IsInvalidArgument(part("p", Shape({4}), "2,2", Tensor::Vector<int>({1, 2}))));
  EXPECT_TRUE(absl::IsInvalidArgument(part("p", Shape({4}), "2,1", value)));
  EXPECT_TRUE(absl::IsInvalidArgument(part("p", Shape({4}), "3,2", value)));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->Add("", value)));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->Add("none", Tensor())));
  EXPECT_TRUE(absl::IsUnimplemented(
      writer->Add("v", Tensor::Uninitialized(ElementType::kVariant, Shape()))));
  EXPECT_TRUE(absl::IsUnimplemented(
      writer->Add("r", Tensor::Uninitialized(ElementType::kResource, Shape()))));
  ASSERT_TRUE(part("p", Shape({4}), "2,2", value).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Difference(*Open(&disk, "/d/model"),
                       {{"a", value}, {"p", Tensor::Vector<float>({1, 2, 1, 2})}}),
            "");
  EXPECT_TRUE(absl::IsInvalidArgument(BundleWriter::Create(&disk, "/d/").status()));
}

TEST(BundleWriter, LeavesNothingUnlessItFinishes) {
  SimulatedDisk disk;
  {
    const auto writer = NewWriter(&disk, "/d/sub/model");
    ASSERT_TRUE(writer->Add("a", Tensor::Scalar(1)).ok());
    EXPECT_FALSE(OpenCheckpoint(&disk, "/d/sub/model").ok());
  }
  EXPECT_THAT(disk.Files(), ElementsAre());
}

TEST(BundleWriter, ReplacesACheckpointThatStaysReadable) {
  SimulatedDisk disk;
  TensorsByName old = {{"a", Tensor::Scalar(0)}};
  ASSERT_TRUE(WriteBundle(&disk, "/d/model", old).ok());
  ASSERT_TRUE(WriteBundle(&disk, "/d/model-other", old).ok());
  for (int round = 1; round < 5; ++round) {
    const auto reader = Open(&disk, "/d/model");
    const TensorsByName next = {{"a", Tensor::Scalar(round)}, {"b", Tensor::Scalar("x")}};
    ASSERT_TRUE(WriteBundle(&disk, "/d/model", next).ok());
    EXPECT_EQ(Difference(*Open(&disk, "/d/model"), next), "");
    EXPECT_EQ(disk.Files().size(), 4u) << "the old data are gone";
    old = next;
  }
}

TEST(Bundle, NamesWhatIsMissing) {
  SimulatedDisk disk;
  const absl::Status none = OpenCheckpoint(&disk, "/d/model").status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(std::string(none.message()), HasSubstr("/d/model.index"));
  ASSERT_TRUE(WriteBundle(&disk, "/d/model", {{"a", Tensor::Scalar(1)}}).ok());
  const absl::Status unknown = Open(&disk, "/d/model")->Read("b").status();
  EXPECT_TRUE(absl::IsNotFound(unknown));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("Key b not found in checkpoint /d/model"));
  ASSERT_TRUE(disk.Remove("/d/model.data-00000-of-00001").ok());
  const absl::Status lost = Open(&disk, "/d/model")->Read("a").status();
  EXPECT_TRUE(absl::IsNotFound(lost));
  EXPECT_THAT(std::string(lost.message()),
              testing::AllOf(HasSubstr("'a'"), HasSubstr("/d/model.data-00000-of-00001")));
}

TEST(MergeBundles, MakesOneOfSeveral) {
  SimulatedDisk disk;
  const Tensor whole = RandomTensor(ElementType::kInt64, Shape({8, 3}), 1);
  TensorsByName want = {{"whole", whole}};
  std::vector<std::string> parts;
  for (int i = 0; i < 4; ++i) {
    parts.push_back(StrCat("/d/temp/part-", i));
    const auto writer = NewWriter(&disk, parts.back());
    const Tensor own = RandomTensor(ElementType::kFloat, Shape({i + 1}), 10 + i);
    ASSERT_TRUE(writer->Add(StrCat("own_", i), own).ok());
    want[StrCat("own_", i)] = own;
    ASSERT_TRUE(
        writer->AddSlice("whole", whole.shape(), Rows(2 * i, 2), whole.Slice(2 * i, 2 * i + 2))
            .ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  parts.push_back("/d/temp/part-without-tensors");
  ASSERT_TRUE(WriteBundle(&disk, parts.back(), {}).ok());
  MergeOptions options;
  options.remove_directories = true;
  for (int round = 0; round < 2; ++round) {  // the second time it is a part itself
    ASSERT_TRUE(MergeBundles(&disk, parts, "/d/model", options).ok());
    EXPECT_EQ(Difference(*Open(&disk, "/d/model"), want), "");
    EXPECT_EQ(disk.Files().size(), 5u);
    parts = {"/d/model"};
  }
  EXPECT_FALSE(disk.Exists("/d/temp").ok());
}

TEST(MergeBundles, RefusesWhatDoesNotFit) {
  SimulatedDisk disk;
  const Tensor whole = RandomTensor(ElementType::kInt64, Shape({4, 3}), 1);
  const Tensor other = RandomTensor(ElementType::kInt32, Shape({4, 3}), 1);
  const auto write = [&](const char* prefix, const Tensor& tensor, int64_t begin) {
    const auto writer = NewWriter(&disk, prefix);
    EXPECT_TRUE(
        writer->AddSlice("p", tensor.shape(), Rows(begin, 2), tensor.Slice(begin, begin + 2)).ok());
    EXPECT_TRUE(writer->Finish().ok());
  };
  write("/d/0", whole, 0);
  write("/d/1", other, 2);
  write("/d/2", whole, 0);
  ASSERT_TRUE(WriteBundle(&disk, "/d/3", {{"p", whole}}).ok());
  const size_t files = disk.Files().size();
  const std::vector<std::vector<std::string>> kBad = {
      {"/d/0", "/d/1"}, {"/d/0", "/d/2"}, {"/d/0", "/d/3"}, {"/d/3", "/d/3"}, {}};
  for (const auto& parts : kBad) {
    EXPECT_TRUE(absl::IsInvalidArgument(MergeBundles(&disk, parts, "/d/model"))) << parts.size();
    EXPECT_EQ(disk.Files().size(), files) << "nothing was changed";
  }
  EXPECT_TRUE(absl::IsNotFound(MergeBundles(&disk, {"/d/0", "/d/9"}, "/d/model")));
  MergeOptions options;
  options.allow_missing = true;
  EXPECT_TRUE(absl::IsNotFound(MergeBundles(&disk, {"/d/9"}, "/d/model", options)));
  EXPECT_TRUE(MergeBundles(&disk, {"/d/0", "/d/9"}, "/d/model", options).ok());
  EXPECT_TRUE(Open(&disk, "/d/model")->ReadSlice("p", Rows(0, 2)).ok());
}

}  // namespace
}  // namespace troupe
