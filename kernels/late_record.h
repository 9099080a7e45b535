/// How work on a device tells the host what it finds out. Plain types only, for all compilers.
#ifndef TROUPE_KERNELS_LATE_RECORD_H_
#define TROUPE_KERNELS_LATE_RECORD_H_

#include <cstdint>

namespace troupe {

/// The first error of the work that one executor enqueues, in host memory that the device reaches.
/// The device's thread that raises `claimed` from 0 to 1 fills in the rest and sets `complete`
/// last.
struct LateRecord {
  unsigned claimed;
  unsigned complete;
  int32_t node;
  void (*explain)();
  int64_t values[3];
};

/// What work takes along to fill in a record: copied as bytes.
struct LateCheck {
  LateRecord* record;
  void (*explain)();  ///< A function of the host, which the device only passes on.
  int32_t node;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_LATE_RECORD_H_
