/// An event file that is written by a thread of its own.
#ifndef TROUPE_DEVICES_STORAGE_BACKGROUND_EVENT_LOG_H_
#define TROUPE_DEVICES_STORAGE_BACKGROUND_EVENT_LOG_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace troupe {

class Event;

struct BackgroundEventLogOptions {
  /// Events that may wait for the thread.
  int64_t max_queue = 10;
  /// What has been written for so long is flushed, whether or not more comes.
  absl::Duration flush_interval = absl::Minutes(2);
  /// How long a call waits for a slow disk before it fails with DeadlineExceeded.
  absl::Duration patience = absl::Minutes(1);
  /// Of the file's name.
  std::string suffix;
};

/// An actor: events are messages to it, and it alone touches the file. Thread-safe.
class BackgroundEventLog {
 public:
  /// Makes the folder and the file, on the calling thread, so that its errors are told at once.
  static absl::StatusOr<std::unique_ptr<BackgroundEventLog>> Create(
      const std::string& directory, const BackgroundEventLogOptions& options = {});
  /// Closes it, and logs an error that nobody has been told.
  ~BackgroundEventLog();

  /// Hands an event over; waits for room. The first error of the file is that of this call and of
  /// all later ones: a full disk is noticed one event late, not never. FailedPrecondition: closed.
  absl::Status Add(Event event);
  /// Readers see what was added before.
  absl::Status Flush();
  /// Completes the file. Further calls give the same.
  absl::Status Close();

  /// The file's first error.
  absl::Status status() const;
  const std::string& path() const;

 private:
  struct State;
  explicit BackgroundEventLog(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const std::shared_ptr<State> state_;  ///< The thread's as well.
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_BACKGROUND_EVENT_LOG_H_
