/// Times.
#ifndef TROUPE_DEVICES_TIME_SOURCE_H_
#define TROUPE_DEVICES_TIME_SOURCE_H_

#include <cstdint>

namespace troupe {

/// Where roles have times from: who makes them gives them a clock, and they know no other.
/// Thread-safe.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  /// Nanoseconds since a moment of the clock's own. Never goes back.
  virtual uint64_t NowNs() = 0;
  /// The time of day: nanoseconds since 1970.
  virtual int64_t UnixNs() = 0;

  /// The machine's.
  static TimeSource* System();
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_TIME_SOURCE_H_
