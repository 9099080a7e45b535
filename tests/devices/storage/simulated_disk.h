/// A disk in memory that loses its power, fills up or becomes read-only at a chosen moment.
#ifndef TROUPE_TESTS_DEVICES_STORAGE_SIMULATED_DISK_H_
#define TROUPE_TESTS_DEVICES_STORAGE_SIMULATED_DISK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "devices/storage/file_system.h"

namespace troupe {

/// Files in memory, of which it is known what a power cut would leave. Every creation, append,
/// sync, rename, removal and sync of a folder is an event. Thread-safe.
class SimulatedDisk : public FileSystem {
 public:
  enum class Fault {
    kNone,
    kPowerBefore,  ///< the power is cut before the event,
    kPowerMiddle,  ///< while it happens,
    kPowerAfter,   ///< after it
    kDiskFull,  ///< from the event on, nothing can be created; half of what is appended is written
    kReadOnly,  ///< from the event on, nothing can be changed
  };

  SimulatedDisk();
  ~SimulatedDisk() override;

  /// `at` is counted from here, from 0 on.
  void SetFault(Fault fault, int64_t at);
  /// Since the last `SetFault`.
  int64_t events() const;
  /// Something was refused, or the power was cut, since the last `SetFault`.
  bool failed() const;
  /// What is left after a power cut, chosen by the seed: of names that were not synced, any of
  /// them; of bytes that were not synced, a part, with holes. Files that are open are lost to their
  /// holders.
  void Restart(uint64_t seed);

  /// Removes everything, and the fault.
  void Clear();

  /// For tests that alter files: written and synced, without an event.
  void Put(const std::string& path, std::string contents);
  std::string Contents(const std::string& path) const;
  /// All files, sorted.
  std::vector<std::string> Files() const;

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForReading(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<FileStat> Stat(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  absl::Status CreateDirectories(const std::string& directory) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveDirectory(const std::string& directory) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status RenameNew(const std::string& from, const std::string& to) override;
  absl::Status SyncDirectory(const std::string& directory) override;

 private:
  class Reader;
  class Writer;
  struct File;
  struct Names;
  struct Change;
  enum class Turn { kDo, kDoHalf, kRefuse };

  /// Counts an event. What is to be done about it, and what the caller is told.
  Turn Begin(bool needs_space, absl::Status* status);
  absl::Status RenameLocked(const std::string& from, const std::string& to);
  absl::Status CheckPower() const;
  absl::Status CheckDirectory(const std::string& path) const;
  void Apply(const Change& change, Names* names) const;
  void Record(Change change);

  mutable std::mutex mutex_;
  std::unique_ptr<Names> now_;
  std::unique_ptr<Names> durable_;
  std::vector<Change> unsynced_;
  Fault fault_ = Fault::kNone;
  int64_t fault_at_ = 0;
  int64_t events_ = 0;
  bool off_ = false;
  bool failed_ = false;
  int64_t clock_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_DEVICES_STORAGE_SIMULATED_DISK_H_
