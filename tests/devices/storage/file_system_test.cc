// The local file system, the one that tests use in its place, and what is built on either.

#include "devices/storage/file_system.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/local_file_system.h"
#include "devices/storage/whole_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

// Each test on the machine's files and on the simulated disk: they agree.
class FileSystemTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam();
    if (kind == "simulated") {
      files_ = std::make_unique<SimulatedDisk>();
      folder_ = "/folder";
    } else {
      files_ = NewLocalFileSystem();
      folder_ = StrCat(kind == "scheme" ? "file://" : "", testing::TempDir(),
                       "troupe_file_system_test_", kind);
    }
    Clear();
    ASSERT_TRUE(files_->CreateDirectories(folder_).ok());
  }
  void TearDown() override { Clear(); }
  void Clear() {
    std::filesystem::remove_all(testing::TempDir() + "troupe_file_system_test_" + GetParam());
  }

  std::string In(const std::string& name) { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& contents) {
    auto file = files_->Create(In(name));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(contents).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }

  std::unique_ptr<FileSystem> files_;
  std::string folder_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, FileSystemTest, testing::Values("local", "scheme", "simulated"),
                         [](const auto& kind) { return kind.param; });

TEST_P(FileSystemTest, WritesAndReads) {
  auto file = files_->Create(In("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::string want;
  for (const size_t size : {1, 1000, 70000, 5, 65536, 0, 65535, 200000}) {
    const std::string bytes(size, static_cast<char>('a' + want.size() % 26));
    ASSERT_TRUE((*file)->Append(bytes).ok());
    want += bytes;
  }
  ASSERT_TRUE((*file)->Flush().ok());
  EXPECT_EQ(*ReadWholeFile(files_.get(), In("a")), want);
  ASSERT_TRUE((*file)->Append("end").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Close().ok());
  want += "end";
  EXPECT_EQ(*ReadWholeFile(files_.get(), In("a")), want);

  const auto reader = files_->OpenForReading(In("a"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(*(*reader)->Size(), want.size());
  std::string part(10, '\0');
  EXPECT_EQ(*(*reader)->Read(want.size() - 3, absl::MakeSpan(part)), 3u);
  EXPECT_EQ(part.substr(0, 3), "end");
  EXPECT_EQ(*(*reader)->Read(want.size() + 5, absl::MakeSpan(part)), 0u);
  const absl::Status status = ReadExactly(**reader, In("a"), want.size() - 3, absl::MakeSpan(part));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(In("a")));
  EXPECT_EQ(ReadWholeFile(files_.get(), In("a"), 100).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_P(FileSystemTest, ListsRenamesAndRemoves) {
  Write("b", "old");
  Write("a", "new");
  ASSERT_TRUE(files_->CreateDirectories(In("sub/deep")).ok());
  ASSERT_TRUE(files_->CreateDirectories(In("sub/deep")).ok());
  EXPECT_THAT(*files_->List(folder_), ElementsAre("a", "b", "sub"));
  EXPECT_EQ(files_->Stat(In("a"))->size, 3u);
  EXPECT_FALSE(files_->Stat(In("a"))->is_directory);
  EXPECT_GT(files_->Stat(In("a"))->modified_ns, 0);
  EXPECT_TRUE(files_->Stat(In("sub"))->is_directory);
  EXPECT_TRUE(files_->Rename(In("a"), In("b")).ok());
  EXPECT_TRUE(files_->SyncDirectory(folder_).ok());
  EXPECT_EQ(*ReadWholeFile(files_.get(), In("b")), "new");
  EXPECT_TRUE(absl::IsNotFound(files_->Exists(In("a"))));
  EXPECT_FALSE(files_->RemoveDirectory(In("sub")).ok()) << "it is not empty";
  EXPECT_TRUE(files_->RemoveDirectory(In("sub/deep")).ok());
  EXPECT_TRUE(files_->RemoveDirectory(In("sub")).ok());
  EXPECT_TRUE(files_->Remove(In("b")).ok());
  EXPECT_THAT(*files_->List(folder_), ElementsAre());
}

TEST_P(FileSystemTest, KnowsAFileUnderTwoSpellings) {
  ASSERT_TRUE(files_->CreateDirectories(In("sub")).ok());
  for (const char* same : {"sub/a", "sub//a", "./sub/a", "sub/./a"}) {
    EXPECT_TRUE(files_->IsSameFile(In("sub/a"), In(same))) << same;
  }
  for (const char* other : {"sub/b", "a", "sub/a/b"}) {
    EXPECT_FALSE(files_->IsSameFile(In("sub/a"), In(other))) << other;
  }
  EXPECT_FALSE(files_->IsSameFile(In("sub/a"), "other:/" + In("sub/a")));
}

TEST_P(FileSystemTest, RenamesToANewNameOnly) {
  Write("a", "first");
  Write("b", "second");
  EXPECT_TRUE(absl::IsAlreadyExists(files_->RenameNew(In("a"), In("b"))));
  EXPECT_EQ(*ReadWholeFile(files_.get(), In("a")), "first");
  EXPECT_EQ(*ReadWholeFile(files_.get(), In("b")), "second");
  EXPECT_TRUE(files_->RenameNew(In("a"), In("c")).ok());
  EXPECT_THAT(*files_->List(folder_), ElementsAre("b", "c"));
  EXPECT_EQ(*ReadWholeFile(files_.get(), In("c")), "first");
  EXPECT_TRUE(absl::IsNotFound(files_->RenameNew(In("a"), In("d"))));
  // What a file system does that knows nothing better.
  EXPECT_TRUE(absl::IsAlreadyExists(files_->FileSystem::RenameNew(In("b"), In("c"))));
  EXPECT_TRUE(files_->FileSystem::RenameNew(In("b"), In("d")).ok());
  EXPECT_THAT(*files_->List(folder_), ElementsAre("c", "d"));
}

TEST_P(FileSystemTest, NamesWhatIsMissing) {
  const std::string missing = In("missing/file");
  for (const absl::Status& status :
       {files_->OpenForReading(missing).status(), files_->Create(missing).status(),
        files_->Stat(missing).status(), files_->List(missing).status(), files_->Remove(missing),
        files_->Rename(missing, In("a")), files_->RemoveDirectory(missing)}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("missing/file"));
  }
  Write("a", "");
  EXPECT_FALSE(files_->CreateDirectories(In("a")).ok()) << "a file";
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->OpenForReading(folder_).status()));
}

TEST_P(FileSystemTest, MatchesPatterns) {
  ASSERT_TRUE(files_->CreateDirectories(In("x1")).ok());
  ASSERT_TRUE(files_->CreateDirectories(In("x2")).ok());
  for (const char* name : {"x1/m-1", "x1/m-2", "x2/m-1", "x2/other", "m[1]"}) Write(name, "");
  const auto match = [&](const std::string& pattern) {
    std::vector<std::string> names;
    const std::vector<std::string> paths = *MatchFiles(files_.get(), In(pattern));
    for (const std::string& path : paths) {
      names.push_back(path.substr(folder_.size() + 1));
    }
    return names;
  };
  EXPECT_THAT(match("x?/m-*"), ElementsAre("x1/m-1", "x1/m-2", "x2/m-1"));
  EXPECT_THAT(match("*/m-1"), ElementsAre("x1/m-1", "x2/m-1"));
  EXPECT_THAT(match("x1/m-[23]"), ElementsAre("x1/m-2"));
  EXPECT_THAT(match("m*"), ElementsAre("m[1]")) << "a star is no slash";
  EXPECT_THAT(match("m\\[1]"), ElementsAre("m[1]"));
  EXPECT_THAT(match("x1/m-1"), ElementsAre("x1/m-1"));
  EXPECT_THAT(match("x1/none"), ElementsAre());
  EXPECT_THAT(match("none/*"), ElementsAre());
}

TEST_P(FileSystemTest, ReplacesFiles) {
  ASSERT_TRUE(ReplaceFile(files_.get(), In("a"), "one").ok());
  ASSERT_TRUE(ReplaceFile(files_.get(), In("a"), "two", {false, "suffix"}).ok());
  EXPECT_EQ(*ReadWholeFile(files_.get(), In("a")), "two");
  EXPECT_THAT(*files_->List(folder_), ElementsAre("a")) << "nothing else is left";
  EXPECT_TRUE(absl::IsNotFound(ReplaceFile(files_.get(), In("none/a"), "x")));
  ASSERT_TRUE(files_->CreateDirectories(In("d/e")).ok());
  EXPECT_FALSE(ReplaceFile(files_.get(), In("d"), "x").ok()) << "a folder";
  EXPECT_THAT(*files_->List(folder_), ElementsAre("a", "d"));
  // Whoever has the same process number and has made as many names still has other bits.
  const std::string one = TemporaryName("a", ""), other = TemporaryName("a", "");
  EXPECT_THAT(one, MatchesRegex("a[.]tempstate[0-9]+_[0-9]+_[0-9]+"));
  EXPECT_NE(one.substr(one.rfind('_')), other.substr(other.rfind('_')));
}

TEST_P(FileSystemTest, MakesFoldersThatLast) {
  ASSERT_TRUE(CreateDirectoriesSynced(files_.get(), In("p/q/r"), true).ok());
  ASSERT_TRUE(CreateDirectoriesSynced(files_.get(), In("p/q/r"), true).ok());
  EXPECT_TRUE(files_->Stat(In("p/q/r"))->is_directory);
  if (auto* disk = dynamic_cast<SimulatedDisk*>(files_.get())) {
    ASSERT_TRUE(disk->SyncDirectory("/").ok());
    for (uint64_t seed = 0; seed < 20; ++seed) {
      disk->Restart(seed);
      EXPECT_TRUE(disk->Exists(In("p/q/r")).ok()) << seed;
    }
  }
}

TEST(ReplaceFile, LeavesTheOldFileOrTheNewOneWhenThePowerIsCut) {
  using Fault = SimulatedDisk::Fault;
  int old_ones = 0, new_ones = 0;
  for (const Fault fault : {Fault::kPowerBefore, Fault::kPowerMiddle, Fault::kPowerAfter,
                            Fault::kDiskFull, Fault::kReadOnly}) {
    for (int64_t at = 0;; ++at) {
      SimulatedDisk disk;
      disk.Put("/d/a", "old");
      disk.SetFault(fault, at);
      const absl::Status status = ReplaceFile(&disk, "/d/a", std::string(2000, 'n'));
      const bool failed = disk.failed();
      EXPECT_EQ(status.ok(), !failed) << at;
      disk.Restart(static_cast<uint64_t>(at));
      const std::string contents = disk.Contents("/d/a");
      if (contents == "old") {
        ++old_ones;
        EXPECT_FALSE(status.ok());
      } else {
        EXPECT_EQ(contents, std::string(2000, 'n')) << at;
        ++new_ones;
      }
      if (!failed) break;
    }
  }
  EXPECT_GT(old_ones, 10);
  EXPECT_GT(new_ones, 5);
}

TEST(FileSystemRegistry, FindsByScheme) {
  FileSystemRegistry registry;
  EXPECT_TRUE(registry.Find("/a").ok());
  EXPECT_TRUE(registry.Find("a").ok());
  EXPECT_TRUE(registry.Find("file:///a").ok());
  const absl::Status unknown = registry.Find("s3://bucket/a").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("File system scheme 's3' not implemented (file: 's3://bucket/a')"));
  auto disk = std::make_unique<SimulatedDisk>();
  FileSystem* const given = disk.get();
  ASSERT_TRUE(registry.Register("s3", std::move(disk)).ok());
  EXPECT_EQ(*registry.Find("s3://bucket/a"), given);
  EXPECT_TRUE(absl::IsAlreadyExists(registry.Register("s3", std::make_unique<SimulatedDisk>())));
  EXPECT_TRUE(absl::IsAlreadyExists(registry.Register("file", std::make_unique<SimulatedDisk>())));
  for (const char* scheme : {"", "1a", "a b", "a/b", "a://b"}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(registry.Register(scheme, std::make_unique<SimulatedDisk>())))
        << scheme;
  }
  EXPECT_TRUE(FileSystems().Find("/a").ok());
}

}  // namespace
}  // namespace troupe
