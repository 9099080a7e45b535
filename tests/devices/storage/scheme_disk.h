/// A simulated disk behind a scheme, so that whatever finds its files by name is tested on it.
#ifndef TROUPE_TESTS_DEVICES_STORAGE_SCHEME_DISK_H_
#define TROUPE_TESTS_DEVICES_STORAGE_SCHEME_DISK_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "tests/devices/storage/simulated_disk.h"

namespace troupe {

/// Paths are complete, "SCHEME://a/b".
class SchemeDisk : public SimulatedDisk {
 public:
  /// Registers one; it lives as long as the process.
  static SchemeDisk* Register(const std::string& scheme);

  /// Whoever creates a data file of a checkpoint waits until it is let go.
  void Hold() { SetHeld(true); }
  void LetGo() { SetHeld(false); }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;

 private:
  void SetHeld(bool held);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_DEVICES_STORAGE_SCHEME_DISK_H_
