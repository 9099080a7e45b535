/// Event files: what TensorBoard shows. They are files of records, each a message `Event`
/// (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_EVENT_FILE_H_
#define TROUPE_DEVICES_STORAGE_EVENT_FILE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "devices/storage/file_system.h"
#include "devices/storage/record_reader.h"
#include "devices/storage/record_writer.h"

namespace troupe {

class Event;

/// events.out.tfevents.SECONDS.HOST, the seconds with ten digits at least, so that names sort by
/// time.
std::string EventFileName(absl::Time time, std::string_view host);

/// One event file. Thread-compatible.
class EventFileWriter {
 public:
  /// Makes `directory` and, in it, the file `EventFileName(now, host)` + `suffix`, whose first
  /// event says that it is one. Two writers of one folder need different hosts, times or suffixes.
  static absl::StatusOr<std::unique_ptr<EventFileWriter>> Create(FileSystem* file_system,
                                                                 const std::string& directory,
                                                                 absl::Time now,
                                                                 std::string_view host,
                                                                 std::string_view suffix = "");

  /// InvalidArgument for an event of 2 GiB or more. `wall_time` is the caller's.
  absl::Status Write(const Event& event);
  absl::Status Flush() { return records_->Flush(); }
  absl::Status Sync() { return records_->Sync(); }
  absl::Status Close() { return records_->Close(); }

  const std::string& path() const { return path_; }

 private:
  EventFileWriter(std::string path, std::unique_ptr<RecordWriter> records)
      : path_(std::move(path)), records_(std::move(records)) {}

  const std::string path_;
  const std::unique_ptr<RecordWriter> records_;
};

/// One event file, also of TensorFlow's. Thread-compatible.
class EventFileReader {
 public:
  static absl::StatusOr<std::unique_ptr<EventFileReader>> Open(FileSystem* file_system,
                                                               const std::string& path);

  /// The next event; false at the end of the file. As `RecordReader::Next`, a call after the end or
  /// after a torn record looks again. DataLoss also for a record that is no event, which is passed
  /// over.
  absl::StatusOr<bool> Next(Event* event);

 private:
  EventFileReader(std::string path, std::unique_ptr<RecordReader> records)
      : path_(std::move(path)), records_(std::move(records)) {}

  const std::string path_;
  const std::unique_ptr<RecordReader> records_;
  std::string record_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_EVENT_FILE_H_
