#include "devices/storage/event_log.h"

#include <unistd.h>

#include <atomic>
#include <climits>
#include <utility>

#include "absl/strings/match.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"

namespace troupe {
namespace {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = "";
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

/// ".1234.0.suffix"
std::string OwnSuffix(const std::string& suffix) {
  static std::atomic<int64_t> count{0};
  const char* const dot = suffix.empty() || absl::StartsWith(suffix, ".") ? "" : ".";
  return StrCat(".", getpid(), ".", count++, dot, suffix);
}

}  // namespace

double WallTime(absl::Time time) { return static_cast<double>(absl::ToUnixMicros(time)) / 1e6; }

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Create(const std::string& directory,
                                                           const EventLogOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(directory));
  TROUPE_ASSIGN_OR_RETURN(auto file,
                          EventFileWriter::Create(files, directory, absl::Now(), HostName(),
                                                  OwnSuffix(options.suffix)));
  return std::unique_ptr<EventLog>(new EventLog(std::move(file), options));
}

absl::Status EventLog::Write(const Event& event) {
  TROUPE_RETURN_IF_ERROR(file_->Write(event));
  const absl::Time now = absl::Now();
  if (pending_++ == 0) oldest_ = now;
  if (pending_ <= options_.max_pending && now - oldest_ < options_.flush_interval) {
    return absl::OkStatus();
  }
  return Flush();
}

absl::Status EventLog::Flush() {
  TROUPE_RETURN_IF_ERROR(file_->Flush());
  pending_ = 0;
  return absl::OkStatus();
}

}  // namespace troupe
