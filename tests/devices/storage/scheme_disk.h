/// A simulated disk behind a scheme, so that whatever finds its files by name is tested on it.
#ifndef TROUPE_TESTS_DEVICES_STORAGE_SCHEME_DISK_H_
#define TROUPE_TESTS_DEVICES_STORAGE_SCHEME_DISK_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "devices/storage/file_system.h"
#include "tests/devices/storage/simulated_disk.h"

namespace troupe {

/// Passes everything on to a SimulatedDisk that can be replaced. "SCHEME://a/b" is its "/a/b".
class SchemeDisk : public FileSystem {
 public:
  /// Registers one; it lives as long as the process.
  static SchemeDisk* Register(const std::string& scheme);

  /// A new, empty disk.
  void Replace() { disk_ = std::make_unique<SimulatedDisk>(); }
  SimulatedDisk& disk() { return *disk_; }

  /// Whoever creates a data file of a checkpoint waits until it is let go.
  void Hold() { SetHeld(true); }
  void LetGo() { SetHeld(false); }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForReading(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<FileStat> Stat(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  absl::Status CreateDirectories(const std::string& directory) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveDirectory(const std::string& directory) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncDirectory(const std::string& directory) override;

 private:
  void SetHeld(bool held);

  std::unique_ptr<SimulatedDisk> disk_ = std::make_unique<SimulatedDisk>();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_DEVICES_STORAGE_SCHEME_DISK_H_
