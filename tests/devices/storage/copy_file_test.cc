#include "devices/storage/copy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::string Contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class CopyFileTest : public testing::Test {
 protected:
  CopyFileTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CopyFileTest() override { fs::remove_all(folder_); }
  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  const std::string folder_ = testing::TempDir() + "troupe_copy_file";
};

TEST_F(CopyFileTest, AnySize) {
  for (const size_t size : {0U, 1U, (1U << 20) - 1, 1U << 20, (1U << 20) + 1, 5U << 20}) {
    std::string bytes(size, 'x');
    for (size_t i = 0; i < size; i += 4093) bytes[i] = static_cast<char>(i / 4093);
    std::ofstream(In("from"), std::ios::binary) << bytes;
    ASSERT_TRUE(CopyFile(In("from"), In("to")).ok()) << size;
    EXPECT_TRUE(Contents(In("to")) == bytes) << size;
  }
  // Nothing else is left.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
}

TEST_F(CopyFileTest, ErrorsLeaveWhatWasThere) {
  std::ofstream(In("to")) << "old";
  absl::Status status = CopyFile(In("nobody"), In("to"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("nobody"));
  EXPECT_EQ(Contents(In("to")), "old");
  std::ofstream(In("from")) << "new";
  EXPECT_EQ(CopyFile(In("from"), In("no/folder/to")).code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(CopyFile(folder_, In("to")).ok());
  EXPECT_EQ(Contents(In("to")), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
}

}  // namespace
}  // namespace troupe
