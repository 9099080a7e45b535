#include "devices/log.h"

// Headers only, in this file only: neither library is needed at run time.
#define SPDLOG_HEADER_ONLY
#define SPDLOG_FMT_EXTERNAL
#define FMT_HEADER_ONLY
#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "devices/log_limiter.h"

namespace troupe {

namespace {

constexpr std::string_view kNames[] = {"trace", "debug", "info", "warning", "error", "off"};
// A pipe takes as much at once, or nothing.
constexpr size_t kMostLineBytes = 4096;
constexpr size_t kLinesKept = 1000;
// For a reader of standard error to make room.
constexpr int kPatienceMs = 10;

/// The text on one line, and not too long a one.
std::string Escape(std::string_view text) {
  std::string line;
  for (size_t i = 0; i < text.size() && line.size() < kMostLineBytes - 256; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // Terminals obey the control characters from U+0080 to U+009F, too.
    const bool begins_c1 = c == 0xc2 && i + 1 < text.size() && (text[i + 1] & 0xe0) == 0x80;
    if (c == '\n') {
      line += "\\n";
    } else if (c < 0x20 || c == 0x7f || begins_c1) {
      absl::StrAppendFormat(&line, "\\x%02x", c);
    } else {
      line += text[i];
    }
  }
  return line;
}

/// "/job:ps/task:0": tasks have one replica.
std::string ShortName(std::string_view task) {
  if (task.empty()) return "-";
  return absl::StrReplaceAll({task.data(), task.size()}, {{"/replica:0", ""}});
}

/// Where lines go.
class Output final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  Output() {
    set_formatter_(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%d %H:%M:%S.%e %L %n %v"));
  }

  void SetSink(std::shared_ptr<const LogSink> sink) {
    std::lock_guard<std::mutex> lock(mutex_);
    sink_ = std::move(sink);
  }
  std::shared_ptr<const LogSink> sink() {
    std::lock_guard<std::mutex> lock(mutex_);
    return sink_;
  }
  std::vector<std::string> Recent(std::string_view task, LogLevel least, size_t most) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> lines;
    for (auto kept = kept_.rbegin(); kept != kept_.rend() && lines.size() < most; ++kept) {
      if (kept->level < least || (!task.empty() && kept->task != task)) continue;
      lines.push_back(kept->line);
    }
    std::reverse(lines.begin(), lines.end());
    return lines;
  }

 private:
  struct Kept {
    LogLevel level;
    std::string task, line;
  };

  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    const std::string_view line(buffer.data(), buffer.size());
    kept_.push_back({static_cast<LogLevel>(message.level),
                     std::string(message.logger_name.data(), message.logger_name.size()),
                     std::string(line.substr(0, line.size() - 1))});
    if (kept_.size() > kLinesKept) kept_.pop_front();
    if (sink_ != nullptr) return;
    if (lost_ > 0 && Write(StrCat("... ", lost_, " lines of the log could not be written\n"))) {
      lost_ = 0;
    }
    if (lost_ > 0 || !Write(line)) ++lost_;
  }
  void flush_() override {}

  /// False if there is no room for it.
  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      if (poll(&room, 1, lost_ > 0 ? 0 : kPatienceMs) != 1 || (room.revents & POLLERR) != 0) {
        return false;
      }
      const ssize_t written = write(STDERR_FILENO, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) return false;
      bytes.remove_prefix(std::max<ssize_t>(0, written));
    }
    return true;
  }

  std::shared_ptr<const LogSink> sink_;
  std::deque<Kept> kept_;
  size_t lost_ = 0;  ///< Lines that could not be written since the last one that could.
};

/// The process's log.
class Log {
 public:
  /// Never destroyed: threads may end after `main`.
  static Log& Get() {
    static Log& log = *new Log;
    return log;
  }

  std::atomic<LogLevel> least{LogLevel::kWarning};
  bool level_from_environment = false;
  Output output;

  void Write(LogLevel level, std::string_view task, LogTopic topic, std::string_view text);
  /// Says what was held back in windows that are over.
  void WriteHeldBack();

 private:
  Log();
  void Emit(LogLevel level, std::string_view task, std::string_view text);
  void Emit(const std::vector<LogLimiter::HeldBack>& held_back);

  std::mutex mutex_;
  LogLimiter limiter_;  ///< Guarded by the mutex.
  /// When something that was held back is to be told.
  std::atomic<LogLimiter::Time> due_{LogLimiter::Time::max()};
};

/// This thread is in a sink of the application's.
thread_local bool in_sink = false;

Log::Log() {
  const char* name = std::getenv("TROUPE_LOG_LEVEL");
  if (name == nullptr) return;
  const absl::StatusOr<LogLevel> level = ParseLogLevel(name);
  level_from_environment = level.ok();
  if (level.ok()) {
    least = *level;
  } else {
    Emit(LogLevel::kWarning, "-", StrCat("TROUPE_LOG_LEVEL: ", level.status().message()));
  }
}

void Log::Write(LogLevel level, std::string_view task, LogTopic topic, std::string_view text) {
  const std::string name = ShortName(task);
  const LogLimiter::Time now = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  const std::vector<LogLimiter::HeldBack> held_back = limiter_.TakeHeldBack(now);
  const bool admitted = limiter_.Admit(level, name, topic, text, now);
  due_ = limiter_.due();
  lock.unlock();
  Emit(held_back);
  if (admitted) Emit(level, name, text);
}

void Log::WriteHeldBack() {
  const LogLimiter::Time now = std::chrono::steady_clock::now();
  if (now < due_.load(std::memory_order_relaxed)) return;
  std::unique_lock<std::mutex> lock(mutex_);
  const std::vector<LogLimiter::HeldBack> held_back = limiter_.TakeHeldBack(now);
  due_ = limiter_.due();
  lock.unlock();
  Emit(held_back);
}

void Log::Emit(const std::vector<LogLimiter::HeldBack>& held_back) {
  for (const LogLimiter::HeldBack& one : held_back) {
    if (!Logs(one.level)) continue;
    Emit(one.level, one.task, StrCat(one.count, " more were held back, the last: ", one.last));
  }
}

void Log::Emit(LogLevel level, std::string_view task, std::string_view text) {
  const std::string line = Escape(text);
  const auto now = std::chrono::system_clock::now();
  output.log(spdlog::details::log_msg(now, {}, {task.data(), task.size()},
                                      static_cast<spdlog::level::level_enum>(level), line));
  const std::shared_ptr<const LogSink> sink = output.sink();
  if (sink == nullptr || in_sink) return;
  in_sink = true;
  try {
    (*sink)({absl::FromChrono(now), level, std::string(task), line});
  } catch (...) {  // There is nobody to tell.
  }
  in_sink = false;
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view name) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found != std::end(kNames)) return static_cast<LogLevel>(found - std::begin(kNames));
  return InvalidArgument("\"", name,
                         "\" is no level of a log; expected trace, debug, info, warning, error or "
                         "off");
}

void SetLogLevel(LogLevel least) { Log::Get().least.store(least, std::memory_order_relaxed); }

void SetDefaultLogLevel(LogLevel least) {
  if (!Log::Get().level_from_environment) SetLogLevel(least);
}

namespace {
// Made while there is memory: who logs may have none.
[[maybe_unused]] const Log& log = Log::Get();
}  // namespace

bool Logs(LogLevel level) {
  return level >= Log::Get().least.load(std::memory_order_relaxed) && level != LogLevel::kOff;
}

void SetLogSink(LogSink sink) {
  Log::Get().output.SetSink(sink == nullptr ? nullptr
                                            : std::make_shared<const LogSink>(std::move(sink)));
}

LogLevel LevelOfRefusal(const absl::Status& why) {
  if (absl::IsAborted(why)) return LogLevel::kDebug;
  return absl::IsUnavailable(why) ? LogLevel::kInfo : LogLevel::kWarning;
}

std::vector<std::string> RecentLog(std::string_view task, LogLevel least, size_t most) {
  return Log::Get().output.Recent(task.empty() ? "" : ShortName(task), least, most);
}

void LogHeldBack() noexcept {
  try {
    Log::Get().WriteHeldBack();
  } catch (...) {  // Later.
  }
}

void internal::WriteLogText(LogLevel level, std::string_view task, LogTopic topic,
                            std::string_view text) noexcept {
  if (!Logs(level)) return;
  try {
    Log::Get().Write(level, task, topic, text);
  } catch (...) {  // What needs no memory.
    const auto say = [](std::string_view piece) {
      (void)!write(STDERR_FILENO, piece.data(), std::min<size_t>(piece.size(), 1024));
    };
    say("troupe: ");
    say(text);
    say("\n");
  }
}

}  // namespace troupe
