/// Devices that can be asked whether work has finished.
#ifndef TROUPE_DEVICES_POLLABLE_H_
#define TROUPE_DEVICES_POLLABLE_H_

#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A device derives from it, as well, if its streams' `WhenDone` costs the wake-up of a thread:
/// who waits for a step polls for a while instead, and is told sooner. Thread-safe.
class Pollable {
 public:
  /// Calls what `WhenDone` has been given and is due; false if nothing was.
  virtual bool Poll() = 0;

 protected:
  virtual ~Pollable() = default;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_POLLABLE_H_
