/// What the library says beside its results: lines on standard error, or in an application's own
/// log. docs/logging.md lists what is logged.
#ifndef TROUPE_DEVICES_LOG_H_
#define TROUPE_DEVICES_LOG_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "devices/export.h"
#include "devices/status_macros.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kOff };

/// "trace", "debug", "info", "warning", "error" or "off"; InvalidArgument.
absl::StatusOr<LogLevel> ParseLogLevel(std::string_view name);

/// What is logged from this level on; thread-safe. Before the first call: the level that the
/// environment variable TROUPE_LOG_LEVEL names, else warnings.
void SetLogLevel(LogLevel least);
/// As `SetLogLevel`, unless TROUPE_LOG_LEVEL names a level: what a program wants if its user does
/// not say.
void SetDefaultLogLevel(LogLevel least);
bool Logs(LogLevel level);

/// A value.
struct LogRecord {
  absl::Time time;
  LogLevel level = LogLevel::kInfo;
  std::string task;  ///< "/job:ps/task:0", "client:1f2e", or "-": the process.
  std::string text;  ///< Control characters are escaped.
};
/// Is given each record, on the thread that logs, perhaps on several threads at once. It should be
/// quick. What it throws, and what it logs itself, is dropped.
using LogSink = std::function<void(const LogRecord&)>;
/// `sink` is given the records in place of standard error; nullptr: standard error again.
/// Thread-safe; calls of the former sink may still be under way.
void SetLogSink(LogSink sink);

/// Records of an event and a subject are limited together: ten in ten seconds, none of them
/// twice. A later record says how many were held back.
struct LogTopic {
  std::string_view event;
  std::string_view subject = {};
};

/// Logs the concatenated `args` for `task`; an empty one stands for the process. Costs an atomic
/// load if the level is off. Never throws, and waits for a full pipe at most 10 ms; a later line
/// says how many lines were lost.
template <typename... Args>
TROUPE_LOCAL void WriteLog(LogLevel level, std::string_view task, LogTopic topic,
                           const Args&... args) noexcept;

/// At which level a refusal is logged. Aborted: the other side is to try again, or connects itself
/// at the same time. Unavailable: it is not there.
LogLevel LevelOfRefusal(const absl::Status& why);

/// The last lines that were logged, at most `most` of the 1,000 that are kept: of `task` only
/// unless it is empty, from level `least` on.
std::vector<std::string> RecentLog(std::string_view task, LogLevel least, size_t most);

/// Says what was held back if the time for it has come. For loops that run anyway.
void LogHeldBack() noexcept;

namespace internal {
void WriteLogText(LogLevel level, std::string_view task, LogTopic topic,
                  std::string_view text) noexcept;
}  // namespace internal

template <typename... Args>
void WriteLog(LogLevel level, std::string_view task, LogTopic topic, const Args&... args) noexcept {
  if (!Logs(level)) return;
  try {
    internal::WriteLogText(level, task, topic, StrCat(args...));
  } catch (...) {
    internal::WriteLogText(level, task, topic, "(no memory for what was to be logged)");
  }
}

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_LOG_H_
