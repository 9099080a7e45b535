#include "devices/storage/event_file.h"

#include <climits>
#include <utility>

#include "absl/strings/str_format.h"
#include "devices/status_macros.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"
#include "graph/protos/summary.pb.h"

namespace troupe {
namespace {

/// What TensorBoard looks for in the first event.
constexpr char kFileVersion[] = "brain.Event:2";

}  // namespace

std::string EventFileName(absl::Time time, std::string_view host) {
  return StrCat(absl::StrFormat("events.out.tfevents.%010d.", absl::ToUnixSeconds(time)), host);
}

absl::StatusOr<std::unique_ptr<EventFileWriter>> EventFileWriter::Create(
    FileSystem* file_system, const std::string& directory, absl::Time now, std::string_view host,
    std::string_view suffix) {
  TROUPE_RETURN_IF_ERROR(CreateDirectoriesSynced(file_system, directory, /*sync=*/true));
  std::string path = JoinPath(directory, EventFileName(now, host)) + std::string(suffix);
  TROUPE_ASSIGN_OR_RETURN(auto records, RecordWriter::Create(file_system, path));
  std::unique_ptr<EventFileWriter> writer(new EventFileWriter(std::move(path), std::move(records)));
  Event version;
  version.set_wall_time(static_cast<double>(absl::ToUnixMicros(now)) / 1e6);
  version.set_file_version(kFileVersion);
  TROUPE_RETURN_IF_ERROR(writer->Write(version));
  TROUPE_RETURN_IF_ERROR(writer->Flush());
  return writer;
}

absl::Status EventFileWriter::Write(const Event& event) {
  std::string bytes;
  if (event.ByteSizeLong() > INT_MAX || !event.SerializeToString(&bytes)) {
    return InvalidArgument("An event of ", event.ByteSizeLong(), " bytes cannot be written to ",
                           path_, "; at most ", INT_MAX, " are possible");
  }
  return records_->Write(bytes);
}

absl::StatusOr<std::unique_ptr<EventFileReader>> EventFileReader::Open(FileSystem* file_system,
                                                                       const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(auto records, RecordReader::Open(file_system, path));
  return std::unique_ptr<EventFileReader>(new EventFileReader(path, std::move(records)));
}

absl::StatusOr<bool> EventFileReader::Next(Event* event) {
  const uint64_t offset = records_->offset();
  TROUPE_ASSIGN_OR_RETURN(const bool found, records_->Next(&record_));
  if (!found) return false;
  if (record_.size() <= INT_MAX && event->ParseFromString(record_)) return true;
  return absl::DataLossError(StrCat(path_, ", record at byte ", offset, ": it is no event"));
}

}  // namespace troupe
