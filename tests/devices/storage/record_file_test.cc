#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"
#include "devices/storage/record_reader.h"
#include "devices/storage/record_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

using testing::HasSubstr;
constexpr FileCompression kCompressions[] = {FileCompression::kNone, FileCompression::kZlib,
                                             FileCompression::kGzip};

std::string Write(const std::vector<std::string>& records, FileCompression compression) {
  SimulatedDisk disk;
  const auto writer = RecordWriter::Create(&disk, "/r", {compression});
  EXPECT_TRUE(writer.ok()) << writer.status();
  for (const std::string& record : records) EXPECT_TRUE((*writer)->Write(record).ok());
  EXPECT_TRUE((*writer)->Close().ok());
  return disk.Contents("/r");
}

// Records up to the first error, which is the status.
struct Got {
  std::vector<std::string> records;
  absl::Status status;
};
Got ReadAll(const std::string& bytes, const RecordReaderOptions& options) {
  SimulatedDisk disk;
  disk.Put("/d/r", bytes);
  Got got;
  const auto reader = RecordReader::Open(&disk, "/d/r", options);
  if (!reader.ok()) return {{}, reader.status()};
  std::string record;
  while (true) {
    const absl::StatusOr<bool> next = (*reader)->Next(&record);
    got.status = next.status();
    if (!next.ok() || !*next) return got;
    got.records.push_back(record);
  }
}

TEST(RecordFile, HoldsRecords) {
  std::vector<std::string> records = {"", "one", std::string(3 << 20, 'x'), "", "last"};
  for (int i = 0; i < 1000; ++i) records.push_back(std::string(i, static_cast<char>(i)));
  for (const FileCompression compression : kCompressions) {
    const std::string bytes = Write(records, compression);
    const Got got = ReadAll(bytes, {compression});
    EXPECT_TRUE(got.status.ok()) << got.status;
    EXPECT_EQ(got.records, records);
    EXPECT_TRUE(ReadAll(Write({}, compression), {compression}).status.ok());
    EXPECT_TRUE(ReadAll("", {compression}).status.ok())
        << "an empty file is read as TensorFlow does";
  }
  EXPECT_EQ(Write({"abc"}, FileCompression::kNone).substr(12, 3), "abc");
}

TEST(RecordFile, IsReadFromTheMiddle) {
  const std::string bytes = Write({"one", "three", "x"}, FileCompression::kNone);
  RecordReaderOptions options;
  options.offset = 12 + 3 + 4;
  EXPECT_EQ(ReadAll(bytes, options).records, (std::vector<std::string>{"three", "x"}));
  options.compression = FileCompression::kGzip;
  EXPECT_TRUE(absl::IsInvalidArgument(ReadAll(bytes, options).status));
}

TEST(RecordFile, GivesOnlyWhatWasWrittenWhenItIsDamaged) {
  const std::vector<std::string> records = {"first", "", "a third one", std::string(30, 'z')};
  for (const FileCompression compression : kCompressions) {
    const std::string bytes = Write(records, compression);
    int refused = 0, cases = 0;
    ForEachDamage(bytes, [&](const std::string& damaged, const std::string& what) {
      const Got got = ReadAll(damaged, {compression});
      ++cases;
      refused += got.status.ok() ? 0 : 1;
      ASSERT_LE(got.records.size(), records.size()) << what;
      for (size_t i = 0; i < got.records.size(); ++i) EXPECT_EQ(got.records[i], records[i]) << what;
      // Only at a border of plain records a file may end without anybody's noticing; the rest of an
      // empty compressed file, and the time in gzip's header, mean nothing.
      if (got.status.ok() && compression == FileCompression::kNone) {
        EXPECT_EQ(damaged.size(), damaged.substr(0, bytes.size()).size());
        EXPECT_TRUE(what.starts_with("cut off")) << what;
      } else if (got.status.ok() && !what.starts_with("cut off at byte 0")) {
        EXPECT_EQ(got.records, records) << what;
      }
      if (!got.status.ok()) {
        EXPECT_EQ(got.status.code(), absl::StatusCode::kDataLoss) << what << got.status;
        EXPECT_THAT(std::string(got.status.message()), HasSubstr("/d/r"));
        EXPECT_THAT(std::string(got.status.message()), HasSubstr("record at byte "));
      }
    });
    EXPECT_GT(refused, cases * 3 / 4);
  }
}

TEST(RecordFile, SaysWhereItIsDamaged) {
  std::string bytes = Write({"one", "two"}, FileCompression::kNone);
  const size_t second = 12 + 3 + 4;
  const auto message = [](const std::string& damaged) {
    return std::string(ReadAll(damaged, {}).status.message());
  };
  EXPECT_THAT(message(bytes.substr(0, second + 5)),
              HasSubstr("/d/r, record at byte 19: its header is cut off after 5 bytes"));
  EXPECT_THAT(message(bytes.substr(0, second + 13)),
              HasSubstr("record at byte 19: it is cut off: 2 bytes are missing"));
  bytes[second] ^= 1;
  EXPECT_THAT(message(bytes), HasSubstr("record at byte 19: the checksum of its length is wrong"));
  bytes[second] ^= 1;
  bytes[second + 12] ^= 1;
  EXPECT_THAT(message(bytes), HasSubstr("record at byte 19: its checksum is wrong"));
}

TEST(RecordFile, TellsItsCompression) {
  // The first length of the last one makes the file begin like a zlib stream.
  const std::vector<std::string> files[] = {{"one", "two"}, {}, {""}, {std::string(0x178, 'x')}};
  for (const std::vector<std::string>& records : files) {
    for (const FileCompression compression : kCompressions) {
      const Got got = ReadAll(Write(records, compression), {FileCompression::kAny});
      EXPECT_TRUE(got.status.ok()) << got.status;
      EXPECT_EQ(got.records, records);
    }
  }
  EXPECT_TRUE(absl::IsDataLoss(ReadAll("no records at all", {FileCompression::kAny}).status));
  SimulatedDisk disk;
  EXPECT_TRUE(
      absl::IsInvalidArgument(RecordWriter::Create(&disk, "/r", {FileCompression::kAny}).status()));
}

TEST(RecordFile, ThatClaimsMuchTakesNoMemory) {
  for (const uint64_t length : {uint64_t{1} << 31, uint64_t{1} << 40, UINT64_MAX}) {
    std::string bytes;
    AppendFixed(length, &bytes);
    AppendFixed(MaskCrc32c(Crc32c(bytes)), &bytes);
    bytes += "a little";
    const absl::Status status = ReadAll(bytes, {}).status;
    EXPECT_EQ(status.code(), length == uint64_t{1} << 31 ? absl::StatusCode::kDataLoss
                                                         : absl::StatusCode::kResourceExhausted);
  }
  RecordReaderOptions options;
  options.max_record_bytes = 2;
  EXPECT_TRUE(
      absl::IsResourceExhausted(ReadAll(Write({"abc"}, FileCompression::kNone), options).status));
}

TEST(RecordFile, IsReadWhileItIsWritten) {
  const std::string bytes = Write({"one", "two", "three"}, FileCompression::kNone);
  SimulatedDisk disk;
  const auto file = disk.Create("/r");
  const auto reader = RecordReader::Open(&disk, "/r");
  std::vector<std::string> records;
  std::string record;
  for (const char byte : bytes) {
    ASSERT_TRUE((*file)->Append({&byte, 1}).ok());
    const absl::StatusOr<bool> next = (*reader)->Next(&record);
    if (next.ok() && *next) records.push_back(record);
  }
  EXPECT_EQ(records, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ((*reader)->offset(), bytes.size());
}

TEST(RecordFile, IsReadUpToTheLastFlush) {
  for (const FileCompression compression : kCompressions) {
    SimulatedDisk disk;
    const auto writer = RecordWriter::Create(&disk, "/r", {compression});
    ASSERT_TRUE((*writer)->Write("flushed").ok());
    ASSERT_TRUE((*writer)->Flush().ok());
    const Got got = ReadAll(disk.Contents("/r"), {compression});
    EXPECT_EQ(got.records, std::vector<std::string>{"flushed"});
    EXPECT_EQ(got.status.ok(), compression == FileCompression::kNone)
        << "the stream's end is missing";
    ASSERT_TRUE((*writer)->Sync().ok());
    ASSERT_TRUE(disk.SyncDirectory("/").ok());
    disk.Restart(1);
    EXPECT_EQ(ReadAll(disk.Contents("/r"), {compression}).records.size(), 1u);
  }
}

TEST(RecordFile, MayBeOfSeveralGzipStreams) {
  const std::string one = Write({"one"}, FileCompression::kGzip);
  const std::string two = Write({"two"}, FileCompression::kGzip);
  const Got got = ReadAll(one + two, {FileCompression::kGzip});
  EXPECT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.records, (std::vector<std::string>{"one", "two"}));
  EXPECT_FALSE(ReadAll(one + "garbage", {FileCompression::kGzip}).status.ok());
  const std::string zlib = Write({"one"}, FileCompression::kZlib);
  EXPECT_FALSE(ReadAll(zlib + zlib, {FileCompression::kZlib}).status.ok());
  EXPECT_FALSE(ReadAll(one, {FileCompression::kZlib}).status.ok());
}

TEST(RecordWriter, PassesTheFilesErrorOn) {
  for (const FileCompression compression : kCompressions) {
    for (int64_t at = 0;; ++at) {
      SimulatedDisk disk;
      disk.SetFault(SimulatedDisk::Fault::kDiskFull, at);
      const auto writer = RecordWriter::Create(&disk, "/r", {compression});
      absl::Status status = writer.status();
      if (status.ok()) status.Update((*writer)->Write("record"));
      if (status.ok()) status.Update((*writer)->Close());
      EXPECT_EQ(absl::IsResourceExhausted(status), disk.failed());
      if (!disk.failed()) break;
    }
  }
  SimulatedDisk disk;
  EXPECT_TRUE(absl::IsInvalidArgument(
      RecordWriter::Create(&disk, "/r", {FileCompression::kGzip, 10}).status()));
}

TEST(ParseFileCompression, TakesTensorFlowsNames) {
  EXPECT_EQ(*ParseFileCompression(""), FileCompression::kNone);
  EXPECT_EQ(*ParseFileCompression("NONE"), FileCompression::kNone);
  EXPECT_EQ(*ParseFileCompression("ZLIB"), FileCompression::kZlib);
  EXPECT_EQ(*ParseFileCompression("GZIP"), FileCompression::kGzip);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseFileCompression("gzip").status()));
}

}  // namespace
}  // namespace troupe
