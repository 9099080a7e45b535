#include "tests/devices/storage/scheme_disk.h"

#include <gtest/gtest.h>

#include <utility>

#include "devices/storage/file_system_registry.h"

namespace troupe {

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

absl::StatusOr<std::unique_ptr<WritableFile>> SchemeDisk::Create(const std::string& path) {
  if (path.find(".data") != std::string::npos) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !held_; });
  }
  return SimulatedDisk::Create(path);
}

}  // namespace troupe
