/// SIGTERM and SIGINT as events.
#ifndef TROUPE_API_TERMINATION_SIGNALS_H_
#define TROUPE_API_TERMINATION_SIGNALS_H_

#include "absl/time/time.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// While there is one, SIGTERM and SIGINT do not end this process but are kept, for all of them; a
/// second SIGINT in a row does: somebody at a terminal has no patience. (A terminal sends SIGINT to
/// children too, whose parent sends SIGTERM besides.) Those handlers that were there before come
/// back with the last one's end. A program makes one before it says that it is ready. Thread-safe.
class TerminationSignals {
 public:
  TerminationSignals();
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  /// The signal that has come, or 0.
  int received() const;
  /// Waits for a signal, until the file descriptor `other` can be read, or until the time is over;
  /// what `received` gives.
  int Wait(int other = -1, absl::Duration patience = absl::InfiniteDuration()) const;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TERMINATION_SIGNALS_H_
