// Files of records of every form.
#include "kernels/io/file_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "devices/storage/compressed_file.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

using Kind = FileRecordsOptions::Kind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Records = std::vector<std::pair<std::string, std::string>>;

class FileRecordsTest : public ::testing::Test {
 protected:
  FileRecordsTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + "file_records_" + info->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/f";
  }
  ~FileRecordsTest() override { std::filesystem::remove_all(folder_); }

  FileSystem* files() { return *FileSystems().Find(path_); }
  void Write(std::string_view bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string Bytes() { return *ReadWholeFile(files(), path_); }

  void WriteRecords(const std::vector<std::string>& records, FileCompression compression) {
    const auto writer = *RecordWriter::Create(files(), path_, {.compression = compression});
    for (const std::string& record : records) ASSERT_TRUE(writer->Write(record).ok());
    ASSERT_TRUE(writer->Close().ok());
  }
  void Compress(std::string_view bytes, ZlibFormat format) {
    const auto file = *NewDeflatingFile(*files()->Create(path_), format, -1);
    ASSERT_TRUE(file->Append(bytes).ok());
    ASSERT_TRUE(file->Close().ok());
  }

  /// Keys are without the file's name.
  absl::StatusOr<Records> Read(const FileRecordsOptions& options, RecordPlace place = {}) {
    auto file = FileRecords::Open(options, path_, place);
    if (!file.ok()) return file.status();
    Records records;
    std::string key, value;
    while (true) {
      const absl::StatusOr<bool> there = (*file)->Next(&key, &value);
      if (!there.ok()) return there.status();
      if (!*there) return records;
      EXPECT_EQ(key.compare(0, path_.size(), path_), 0);
      records.emplace_back(key.substr(path_.size()), value);
    }
  }
  /// What is left from each place in the file is what a reader finds that is opened there.
  void ExpectResumable(const FileRecordsOptions& options) {
    const auto all = Read(options);
    ASSERT_TRUE(all.ok()) << all.status();
    const auto file = *FileRecords::Open(options, path_);
    std::string key, value;
    for (size_t i = 0; i <= all->size(); ++i) {
      const auto rest = Read(options, file->place());
      ASSERT_TRUE(rest.ok()) << rest.status();
      EXPECT_EQ(*rest, Records(all->begin() + static_cast<ptrdiff_t>(i), all->end()));
      EXPECT_EQ(*file->Next(&key, &value), i < all->size());
    }
  }

  std::string folder_, path_;
};

TEST_F(FileRecordsTest, TensorFlowRecords) {
  for (const auto compression :
       {FileCompression::kNone, FileCompression::kZlib, FileCompression::kGzip}) {
    const FileRecordsOptions options = {.compression = compression};
    WriteRecords({"one", "", "three"}, compression);
    EXPECT_EQ(*Read(options), (Records{{":0", "one"}, {":19", ""}, {":35", "three"}}));
    ExpectResumable(options);
    WriteRecords({}, compression);
    EXPECT_EQ(*Read(options), Records());
    Write("");
    EXPECT_EQ(*Read(options), Records());
  }
  const auto past = Read({.compression = FileCompression::kZlib}, {.records = 1, .offset = 10});
  EXPECT_EQ(past.status().code(), absl::StatusCode::kDataLoss);
  // A plain file that was longer.
  WriteRecords({"one"}, FileCompression::kNone);
  const auto shorter = Read({}, {.records = 2, .offset = 35});
  EXPECT_EQ(shorter.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(shorter.status().message(),
              AllOf(HasSubstr("which has 19 bytes"), HasSubstr(path_), HasSubstr("byte 35")));
  Write("a\nb\n");
  EXPECT_EQ(Read({.kind = Kind::kLines}, {.records = 3, .offset = 6}).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(FileRecordsTest, DamagedRecordsGiveAnErrorOrTheSame) {
  for (const auto compression :
       {FileCompression::kNone, FileCompression::kZlib, FileCompression::kGzip}) {
    const FileRecordsOptions options = {.compression = compression};
    const std::vector<std::string> records = {"the first", "", "the last"};
    WriteRecords(records, compression);
    const std::string whole = Bytes();
    const Records right = *Read(options);
    const auto check = [&](const std::string& bytes, bool cut) {
      Write(bytes);
      const auto got = Read(options);
      if (got.ok()) {
        // A plain file that is cut off between records is a shorter one.
        EXPECT_TRUE(*got == right ||
                    (cut && *got == Records(right.begin(),
                                            right.begin() + static_cast<ptrdiff_t>(got->size()))));
        return;
      }
      EXPECT_TRUE(got.status().code() == absl::StatusCode::kDataLoss) << got.status();
      EXPECT_THAT(got.status().message(), AllOf(HasSubstr(path_), HasSubstr("byte")));
    };
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const int flip : {0x01, 0x80}) {
        std::string altered = whole;
        altered[i] = static_cast<char>(altered[i] ^ flip);
        check(altered, false);
      }
      check(whole.substr(0, i), true);
    }
  }
}

TEST_F(FileRecordsTest, Lines) {
  const FileRecordsOptions options = {.kind = Kind::kLines};
  Write("a\nb\r\n\nlast");
  EXPECT_EQ(*Read(options), (Records{{":1", "a"}, {":2", "b"}, {":3", ""}, {":4", "last"}}));
  ExpectResumable(options);
  const FileRecordsOptions header = {.kind = Kind::kLines, .skip_header_lines = 2};
  EXPECT_EQ(*Read(header), (Records{{":3", ""}, {":4", "last"}}));
  ExpectResumable(header);
  EXPECT_EQ(*Read({.kind = Kind::kLines, .skip_header_lines = 9}), Records());
  Write("");
  EXPECT_EQ(*Read(options), Records());
  Write("\n");
  EXPECT_EQ(*Read(options), (Records{{":1", ""}}));
  // Longer than what is read at a time.
  const std::string line(300'000, 'x');
  Write(line + "\n" + line + "y\nz");
  EXPECT_EQ(*Read(options), (Records{{":1", line}, {":2", line + "y"}, {":3", "z"}}));
}

TEST_F(FileRecordsTest, RecordsOfFixedLength) {
  Write("HHabcdefghFF");
  const auto fixed = [](int64_t header, int64_t record, int64_t footer, int64_t hop) {
    return FileRecordsOptions{.kind = Kind::kFixedLength,
                              .header_bytes = header,
                              .record_bytes = record,
                              .footer_bytes = footer,
                              .hop_bytes = hop};
  };
  EXPECT_EQ(*Read(fixed(2, 4, 2, 0)), (Records{{":0", "abcd"}, {":1", "efgh"}}));
  ExpectResumable(fixed(2, 4, 2, 0));
  // Overlapping, apart, and what is too short for a record left out.
  EXPECT_EQ(*Read(fixed(2, 4, 2, 2)), (Records{{":0", "abcd"}, {":1", "cdef"}, {":2", "efgh"}}));
  ExpectResumable(fixed(2, 4, 2, 2));
  EXPECT_EQ(*Read(fixed(2, 2, 2, 3)), (Records{{":0", "ab"}, {":1", "de"}, {":2", "gh"}}));
  EXPECT_EQ(*Read(fixed(2, 3, 2, 0)), (Records{{":0", "abc"}, {":1", "def"}}));
  EXPECT_EQ(*Read(fixed(2, 4, 2, 100)), (Records{{":0", "abcd"}}));
  EXPECT_EQ(*Read(fixed(20, 4, 2, 0)), Records());
  // A length that no file has takes no memory.
  EXPECT_EQ(*Read(fixed(0, int64_t{1} << 62, int64_t{1} << 62, 0)), Records());

  for (const auto compression : {FileCompression::kZlib, FileCompression::kGzip}) {
    Compress("HHabcdefghFF",
             compression == FileCompression::kZlib ? ZlibFormat::kZlib : ZlibFormat::kGzip);
    FileRecordsOptions options = fixed(2, 4, 2, 0);
    options.compression = compression;
    EXPECT_EQ(*Read(options), (Records{{":0", "abcd"}, {":1", "efgh"}}));
    ExpectResumable(options);
  }
}

TEST_F(FileRecordsTest, WholeFilesAndNames) {
  Write(std::string("with\0zero", 9));
  EXPECT_EQ(*Read({.kind = Kind::kWholeFile}), (Records{{"", std::string("with\0zero", 9)}}));
  ExpectResumable({.kind = Kind::kWholeFile});
  Write("");
  EXPECT_EQ(*Read({.kind = Kind::kWholeFile}), (Records{{"", ""}}));
  std::filesystem::remove(path_);
  EXPECT_EQ(*Read({.kind = Kind::kIdentity}), (Records{{"", path_}}));
  for (const Kind kind : {Kind::kRecords, Kind::kLines, Kind::kFixedLength, Kind::kWholeFile}) {
    const auto gone = Read({.kind = kind, .record_bytes = 1});
    EXPECT_EQ(gone.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(gone.status().message(), HasSubstr(path_));
  }
}

TEST_F(FileRecordsTest, AFileThatGrowsIsReadOn) {
  WriteRecords({"one", "two"}, FileCompression::kNone);
  const std::string whole = Bytes();
  Write(whole.substr(0, whole.size() - 1));
  const auto file = *FileRecords::Open({}, path_);
  std::string key, value;
  ASSERT_TRUE(*file->Next(&key, &value));
  EXPECT_EQ(file->Next(&key, &value).status().code(), absl::StatusCode::kDataLoss);
  Write(whole);
  ASSERT_TRUE(*file->Next(&key, &value));
  EXPECT_EQ(value, "two");
}

}  // namespace
}  // namespace troupe
