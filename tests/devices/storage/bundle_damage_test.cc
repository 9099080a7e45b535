// Bundles that were damaged, and bundles that nobody would write.

#include <map>
#include <string>

#include "devices/storage/bundle_reader.h"
#include "gmock/gmock.h"
#include "graph/protos/checkpoint.pb.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

using testing::HasSubstr;

const char kIndex[] = "/d/model.index";
const char kData[] = "/d/model.data-00000-of-00001";

TEST(BundleDamage, IsFoundInEveryByte) {
  const TensorsByName tensors = {{"a", Tensor::Vector<float>({1, 2, 3})},
                                 {"b", Tensor::Vector<bool>({true, false})},
                                 {"s", Tensor::Vector<std::string>({"", "one", "two"})}};
  SimulatedDisk good;
  ASSERT_TRUE(WriteBundle(&good, "/d/model", tensors).ok());
  for (const char* file : {kIndex, kData}) {
    int same = 0, refused = 0;
    ForEachDamage(good.Contents(file), [&](const std::string& damaged, const std::string& what) {
      SimulatedDisk disk;
      disk.Put(kIndex, good.Contents(kIndex));
      disk.Put(kData, good.Contents(kData));
      disk.Put(file, damaged);
      const auto reader = OpenCheckpoint(&disk, "/d/model");
      if (!reader.ok()) {
        ++refused;
        EXPECT_EQ(reader.status().code(), absl::StatusCode::kDataLoss) << what;
        EXPECT_THAT(std::string(reader.status().message()), HasSubstr(kIndex)) << what;
        return;
      }
      for (const auto& [name, want] : tensors) {
        const auto got = (*reader)->Read(name);
        if (got.ok()) {
          EXPECT_EQ(Difference(*got, want), "") << file << " " << what;
          ++same;
        } else {
          ++refused;
          EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << what;
          EXPECT_THAT(std::string(got.status().message()),
                      testing::AllOf(HasSubstr(kData), HasSubstr("'" + name + "'")));
        }
      }
      // Each byte of the data belongs to a tensor.
      if (std::string(file) == kData) {
        EXPECT_FALSE((*reader)->Verify().ok()) << what;
      }
    });
    EXPECT_GT(refused, 50);
    EXPECT_GT(same, 50);
  }
}

// A bundle with an index of the test's own.
class HostileBundle : public testing::Test {
 protected:
  HostileBundle() {
    header_.set_num_shards(1);
    entry_.set_dtype(DT_FLOAT);
    entry_.mutable_shape()->add_dim()->set_size(2);
    entry_.set_size(8);
    entry_.set_crc32c(0x9b53a4ef);
  }
  absl::Status Read() {
    SimulatedDisk disk;
    std::map<std::string, std::string> entries = {{"", header_.SerializeAsString()},
                                                  {"a", entry_.SerializeAsString()}};
    entries.insert(more_.begin(), more_.end());
    disk.Put(kIndex, TableBytes(entries));
    disk.Put(kData, std::string(100, 'x'));
    const auto reader = OpenCheckpoint(&disk, "/d/model");
    return reader.ok() ? (*reader)->Read("a").status() : reader.status();
  }
  void ExpectDataLoss(const char* text) {
    const absl::Status status = Read();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  BundleHeaderProto header_;
  BundleEntryProto entry_;
  std::map<std::string, std::string> more_;
};

TEST_F(HostileBundle, WithAWrongChecksum) { ExpectDataLoss("'a', /d/model.data-00000-of-00001"); }

TEST_F(HostileBundle, OfABigEndianMachine) {
  header_.set_endianness(BundleHeaderProto::BIG);
  EXPECT_TRUE(absl::IsUnimplemented(Read()));
}

TEST_F(HostileBundle, OfTheFuture) {
  header_.mutable_version()->set_min_consumer(2);
  EXPECT_TRUE(absl::IsFailedPrecondition(Read()));
  header_.mutable_version()->set_min_consumer(1);
  header_.mutable_version()->add_bad_consumers(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Read()));
}

TEST_F(HostileBundle, WithoutAHeader) {
  SimulatedDisk disk;
  for (const std::map<std::string, std::string>& entries :
       {std::map<std::string, std::string>{}, {{"a", entry_.SerializeAsString()}}}) {
    disk.Put(kIndex, TableBytes(entries));
    EXPECT_EQ(OpenCheckpoint(&disk, "/d/model").status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST_F(HostileBundle, WithAnEntryThatIsNoMessage) {
  more_["b"] = "\xff\xff\xff";
  ExpectDataLoss("'b'");
}

TEST_F(HostileBundle, WithImpossibleTypes) {
  for (const int type : {-1, 0, 101, 5000}) {
    entry_.set_dtype(static_cast<DataType>(type));
    ExpectDataLoss("the type is unknown");
  }
  for (const DataType type : {DT_INT2, DT_FLOAT8_E5M2FNUZ, DT_RESOURCE, DT_VARIANT}) {
    entry_.set_dtype(type);
    EXPECT_TRUE(absl::IsUnimplemented(Read())) << type;
  }
}

TEST_F(HostileBundle, WithImpossibleShapes) {
  entry_.mutable_shape()->mutable_dim(0)->set_size(-1);
  ExpectDataLoss("'a' is damaged");
  entry_.mutable_shape()->mutable_dim(0)->set_size(int64_t{1} << 62);
  ExpectDataLoss("more than 2^63");
  entry_.set_dtype(DT_STRING);
  ExpectDataLoss("strings cannot be in 8 bytes");
  entry_.set_dtype(DT_FLOAT);
  entry_.mutable_shape()->mutable_dim(0)->set_size(3);
  ExpectDataLoss("type and shape need 12");
}

TEST_F(HostileBundle, WithImpossiblePlaces) {
  entry_.set_shard_id(1);
  ExpectDataLoss("shard 1 of 1");
  entry_.set_shard_id(-1);
  ExpectDataLoss("shard -1 of 1");
  entry_.set_shard_id(0);
  for (const int64_t offset : {int64_t{-1}, INT64_MAX}) {
    entry_.set_offset(offset);
    ExpectDataLoss("'a' is damaged");
  }
  entry_.set_offset(INT64_MAX - 8);
  ExpectDataLoss("the file is truncated");
  entry_.set_offset(93);
  ExpectDataLoss("the file is truncated");
  entry_.set_offset(0);
  entry_.set_size(-8);
  ExpectDataLoss("'a' is damaged");
  header_.set_num_shards(-1);
  ExpectDataLoss("no header");
}

TEST_F(HostileBundle, WithImpossibleSlices) {
  TensorSliceProto::Extent* extent = entry_.add_slices()->add_extent();
  extent->set_length(2);
  ExpectDataLoss("the slice '0,2' is missing");
  // The slice's own entry has another shape.
  BundleEntryProto slice = entry_;
  slice.clear_slices();
  slice.mutable_shape()->mutable_dim(0)->set_size(1);
  slice.set_size(4);
  more_[SliceKey("a", *TensorSlice::Parse("0,2"))] = slice.SerializeAsString();
  ExpectDataLoss("another type or shape");
  extent->set_start(1);
  ExpectDataLoss("not inside");
  extent->set_start(-1);
  ExpectDataLoss("'a' is damaged");
  entry_.mutable_slices(0)->clear_extent();
  ExpectDataLoss("'a' is damaged");
}

TEST(BundleDamage, OfStringsIsFound) {
  // Lengths that a stranger chose, with right checksums of themselves or not.
  SimulatedDisk disk;
  ASSERT_TRUE(
      WriteBundle(&disk, "/d/model", {{"s", Tensor::Vector<std::string>({"ab", "c"})}}).ok());
  const std::string good = disk.Contents(kData);
  ASSERT_EQ(good.substr(0, 2), "\2\1");
  for (const std::string& lengths :
       {std::string("\1\2"), std::string("\3\1"), std::string("\xff\1"), std::string("\xff\xff"),
        std::string("\0\0", 2)}) {
    disk.Put(kData, lengths + good.substr(2));
    const absl::Status status = (*OpenCheckpoint(&disk, "/d/model"))->Read("s").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
}

}  // namespace
}  // namespace troupe
