#include "tests/devices/storage/scheme_disk.h"

#include <gtest/gtest.h>

#include <utility>

#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"

namespace troupe {
namespace {

std::string Inside(const std::string& path) { return "/" + std::string(PathWithoutScheme(path)); }

}  // namespace

SchemeDisk* SchemeDisk::Register(const std::string& scheme) {
  auto disk = std::make_unique<SchemeDisk>();
  SchemeDisk* const result = disk.get();
  EXPECT_TRUE(FileSystems().Register(scheme, std::move(disk)).ok()) << scheme;
  return result;
}

void SchemeDisk::SetHeld(bool held) {
  std::lock_guard<std::mutex> lock(mutex_);
  held_ = held;
  changed_.notify_all();
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> SchemeDisk::OpenForReading(
    const std::string& path) {
  return disk_->OpenForReading(Inside(path));
}
absl::StatusOr<std::unique_ptr<WritableFile>> SchemeDisk::Create(const std::string& path) {
  if (path.find(".data") != std::string::npos) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !held_; });
  }
  return disk_->Create(Inside(path));
}
absl::StatusOr<FileStat> SchemeDisk::Stat(const std::string& path) {
  return disk_->Stat(Inside(path));
}
absl::StatusOr<std::vector<std::string>> SchemeDisk::List(const std::string& directory) {
  return disk_->List(Inside(directory));
}
absl::Status SchemeDisk::CreateDirectories(const std::string& directory) {
  return disk_->CreateDirectories(Inside(directory));
}
absl::Status SchemeDisk::Remove(const std::string& path) { return disk_->Remove(Inside(path)); }
absl::Status SchemeDisk::RemoveDirectory(const std::string& directory) {
  return disk_->RemoveDirectory(Inside(directory));
}
absl::Status SchemeDisk::Rename(const std::string& from, const std::string& to) {
  return disk_->Rename(Inside(from), Inside(to));
}
absl::Status SchemeDisk::SyncDirectory(const std::string& directory) {
  return disk_->SyncDirectory(Inside(directory));
}

}  // namespace troupe
