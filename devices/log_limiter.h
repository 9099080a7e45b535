/// Keeps a log readable when something happens again and again.
#ifndef TROUPE_DEVICES_LOG_LIMITER_H_
#define TROUPE_DEVICES_LOG_LIMITER_H_

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "devices/log.h"

namespace troupe {

/// Admits `kMost` records of a topic within `kWindow`, none of them twice, and counts the others.
/// Topics are bounded: those that come when there are `kMostTopics` share one. Thread-compatible,
/// no clock.
class LogLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr size_t kMost = 10;
  static constexpr size_t kMostTopics = 256;

  /// What was held back of a topic.
  struct HeldBack {
    LogLevel level = LogLevel::kInfo;
    std::string task;
    size_t count = 0;
    std::string last;  ///< Its text.
  };

  /// True if the record is to be written. After `TakeHeldBack(now)`.
  bool Admit(LogLevel level, std::string_view task, LogTopic topic, std::string_view text,
             Time now);
  /// Forgets windows that are over.
  std::vector<HeldBack> TakeHeldBack(Time now);
  /// When the first window ends in which something was held back; `Time::max()` if there is none.
  Time due() const;

 private:
  struct Window {
    Time begin;
    std::vector<std::string> texts;  ///< Those admitted.
    HeldBack held_back;
  };

  std::map<std::string, Window> windows_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_LOG_LIMITER_H_
