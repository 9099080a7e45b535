#include "devices/storage/v1_checkpoint.h"

#include <map>
#include <string>

#include "devices/status_macros.h"
#include "devices/storage/tensor_slice.h"
#include "devices/tensor_proto.h"
#include "gmock/gmock.h"
#include "graph/protos/checkpoint.pb.h"
#include "graph/protos/graph.pb.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// A V1 file, made by hand.
class V1File {
 public:
  SavedSliceMeta* AddTensor(const std::string& name, DataType type, std::vector<int64_t> dims) {
    SavedSliceMeta* meta = meta_.mutable_meta()->add_tensor();
    meta->set_name(name);
    meta->set_type(type);
    for (const int64_t dim : dims) meta->mutable_shape()->add_dim()->set_size(dim);
    return meta;
  }
  // The values of a slice, to be filled in.
  TensorProto* AddSlice(SavedSliceMeta* meta, const std::string& slice) {
    const TensorSlice parsed = *TensorSlice::Parse(slice);
    parsed.ToProto(meta->add_slice());
    SavedSlice& saved = *slices_[SliceKey(meta->name(), parsed)].mutable_data();
    saved.set_name(meta->name());
    parsed.ToProto(saved.mutable_slice());
    return saved.mutable_data();
  }
  std::string Bytes() const {
    std::map<std::string, std::string> entries = {{"", meta_.SerializeAsString()}};
    for (const auto& [key, slice] : slices_) entries[key] = slice.SerializeAsString();
    return TableBytes(entries);
  }

  SavedTensorSlices meta_;
  std::map<std::string, SavedTensorSlices> slices_;
};

absl::StatusOr<Tensor> ReadOne(const V1File& file, const std::string& name = "a") {
  SimulatedDisk disk;
  disk.Put("/d/v1", file.Bytes());
  const auto reader = OpenCheckpoint(&disk, "/d/v1");
  if (!reader.ok()) return reader.status();
  return (*reader)->Read(name);
}

// Two rows of floats, in two slices.
V1File Good() {
  V1File file;
  SavedSliceMeta* meta = file.AddTensor("a", DT_FLOAT, {2, 2});
  for (int row = 0; row < 2; ++row) {
    TensorProto* values = file.AddSlice(meta, StrCat(row, ",1:-"));
    values->add_float_val(static_cast<float>(row));
    values->add_float_val(7);
  }
  return file;
}

TEST(V1Checkpoint, IsRead) {
  const auto tensor = ReadOne(Good());
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->ToString(), "float[2,2] [[0 7][1 7]]");
}

TEST(V1Checkpoint, IsFoundInEveryByteWhenDamaged) {
  const std::string bytes = Good().Bytes();
  const Tensor want = *ReadOne(Good());
  int same = 0;
  ForEachDamage(bytes, [&](const std::string& damaged, const std::string& what) {
    SimulatedDisk disk;
    disk.Put("/d/v1", damaged);
    const auto reader = OpenCheckpoint(&disk, "/d/v1");
    const auto got = reader.ok() ? (*reader)->Read("a") : reader.status();
    if (got.ok()) {
      ++same;
      EXPECT_EQ(Difference(*got, want), "") << what;
    } else {
      EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << what << got.status();
      EXPECT_THAT(std::string(got.status().message()), HasSubstr("/d/v1"));
    }
  });
  EXPECT_LT(same, 250) << "but for what pads the footer";
}

// What a tensor needs is not allocated before its values are there.
TEST(V1Checkpoint, ClaimsAreHeldAgainstWhatIsThere) {
  // That of the process so far. The claim is larger.
  const int64_t before = HostAllocator()->stats().largest_alloc_size;
  const int64_t claimed = before / static_cast<int64_t>(sizeof(std::string)) + 20'000;
  V1File file;
  SavedSliceMeta* meta = file.AddTensor("a", DT_STRING, {claimed});
  file.AddSlice(meta, "-")->add_string_val("one");
  // Room for the claim, were it compressed.
  file.AddSlice(file.AddTensor("b", DT_STRING, {1}), "-")
      ->add_string_val(std::string(static_cast<size_t>(claimed) / 2, 'x'));
  const absl::Status status = ReadOne(file).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(StrCat("too few for ", claimed, " of string")));
  EXPECT_EQ(HostAllocator()->stats().largest_alloc_size, before);
}

TEST(V1Checkpoint, IsRefusedWhenItsMessagesAreWrong) {
  const auto expect = [](const V1File& file, const char* text) {
    const absl::Status status = ReadOne(file).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  V1File file = Good();
  SavedSliceMeta* meta = file.meta_.mutable_meta()->mutable_tensor(0);
  meta->set_type(static_cast<DataType>(0));
  expect(file, "the type is unknown");
  meta->set_type(DT_INT32);
  expect(file, "it has 0 values of int32, expected 2");
  meta->set_type(DT_FLOAT);
  meta->mutable_shape()->mutable_dim(0)->set_size(int64_t{1} << 40);
  meta->mutable_slice(1)->mutable_extent(0)->set_length(int64_t{1} << 39);
  expect(file, "more than the file can hold");
  meta->mutable_slice(1)->mutable_extent(0)->set_length(-5);
  expect(file, "'a'");

  file = Good();
  meta = file.meta_.mutable_meta()->mutable_tensor(0);
  meta->clear_slice();
  expect(file, "no slice");
  file = Good();
  meta = file.meta_.mutable_meta()->mutable_tensor(0);
  *meta->add_slice() = meta->slice(0);
  expect(file, "twice");
  file = Good();
  *file.meta_.mutable_meta()->add_tensor() = file.meta_.meta().tensor(0);
  file.meta_.mutable_meta()->mutable_tensor(1)->mutable_shape()->mutable_dim(1)->set_size(3);
  expect(file, "another type or shape");
  file = Good();
  file.slices_.erase(file.slices_.begin());
  expect(file, "its values are missing");
  file = Good();
  file.slices_.begin()->second.mutable_data()->set_name("b");
  expect(file, "its values are damaged");
  file = Good();
  file.slices_.begin()->second.mutable_data()->mutable_data()->add_float_val(1);
  expect(file, "it has 3 values of float, expected 2");
  file = Good();
  file.meta_.clear_meta();
  expect(file, "no V1 checkpoint");
  file = Good();
  file.meta_.mutable_meta()->mutable_versions()->set_min_consumer(2);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadOne(file).status()));
}

TEST(V1Checkpoint, IsReadFromSeveralFiles) {
  SimulatedDisk disk;
  for (int part = 0; part < 2; ++part) {
    V1File file;
    SavedSliceMeta* meta = file.AddTensor("a", DT_STRING, {4});
    TensorProto* values = file.AddSlice(meta, StrCat(2 * part, ",2"));
    values->add_string_val(StrCat("first of ", part));
    values->add_string_val("x");
    disk.Put(StrCat("/d/m-0000", part, "-of-00002"), file.Bytes());
  }
  const auto reader = OpenCheckpoint(&disk, "/d/m-*-of-00002");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(
      Difference(**reader,
                 {{"a", Tensor::Vector<std::string>({"first of 0", "x", "first of 1", "x"})}}),
      "");
  EXPECT_TRUE(absl::IsNotFound(OpenCheckpoint(&disk, "/d/n-*-of-00002").status()));
  const auto one = OpenCheckpoint(&disk, "/d/m-00000-of-00002");
  EXPECT_TRUE(absl::IsNotFound((*one)->Read("a").status())) << "half of it is elsewhere";
}

}  // namespace
}  // namespace troupe
