/// A process's own event file: named so that nobody else writes it, flushed now and then.
#ifndef TROUPE_DEVICES_STORAGE_EVENT_LOG_H_
#define TROUPE_DEVICES_STORAGE_EVENT_LOG_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "devices/storage/event_file.h"

namespace troupe {

struct EventLogOptions {
  /// Flushed when more events than that wait, ...
  int64_t max_pending = 10;
  /// ... or when the oldest has waited for so long, which is looked at with the next event.
  absl::Duration flush_interval = absl::Minutes(2);
  /// Of the file's name.
  std::string suffix;
};

/// Thread-compatible.
class EventLog {
 public:
  /// Makes `directory` and a file in it. Its name ends with this process's number, one that counts
  /// its logs, and the suffix. InvalidArgument for a scheme that nobody knows.
  static absl::StatusOr<std::unique_ptr<EventLog>> Create(const std::string& directory,
                                                          const EventLogOptions& options = {});

  absl::Status Write(const Event& event);
  /// Events that readers may not see yet.
  int64_t pending() const { return pending_; }
  absl::Status Flush();
  absl::Status Close() { return file_->Close(); }
  const std::string& path() const { return file_->path(); }

 private:
  EventLog(std::unique_ptr<EventFileWriter> file, const EventLogOptions& options)
      : file_(std::move(file)), options_(options) {}

  const std::unique_ptr<EventFileWriter> file_;
  const EventLogOptions options_;
  int64_t pending_ = 0;
  absl::Time oldest_;  ///< Of what is pending.
};

/// Seconds since 1970, as events have them.
double WallTime(absl::Time time);

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_EVENT_LOG_H_
