#include "devices/time_source.h"

#include <time.h>

namespace troupe {

namespace {

uint64_t Read(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

class SystemTime final : public TimeSource {
 public:
  uint64_t NowNs() override { return Read(CLOCK_MONOTONIC); }
  int64_t UnixNs() override { return static_cast<int64_t>(Read(CLOCK_REALTIME)); }
};

}  // namespace

TimeSource* TimeSource::System() {
  static SystemTime clock;
  return &clock;
}

}  // namespace troupe
