#include "api/termination_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "absl/time/clock.h"

namespace troupe {

namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT};

/// What the handler touches, for the life of the process.
struct State {
  std::mutex mutex;
  int users = 0;
  struct sigaction before[2];
  std::atomic<int> received{0};
  /// Written by the handler and never read: it stays readable until the last user has gone.
  int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};
State& Shared() {
  static auto* state = new State;
  return *state;
}

void Handle(int number) {
  const int error = errno;
  State& state = Shared();
  const bool repeated = state.received.exchange(number) == number;
  if (repeated && number == SIGINT) {
    signal(number, SIG_DFL);
    raise(number);
  }
  eventfd_write(state.event, 1);
  errno = error;
}

}  // namespace

TerminationSignals::TerminationSignals() {
  State& state = Shared();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.users++ > 0) return;
  struct sigaction action {};
  action.sa_handler = Handle;
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &state.before[i]);
}

TerminationSignals::~TerminationSignals() {
  State& state = Shared();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (--state.users > 0) return;
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &state.before[i], nullptr);
  state.received = 0;
  eventfd_t ignored;
  eventfd_read(state.event, &ignored);
}

int TerminationSignals::received() const { return Shared().received; }

int TerminationSignals::Wait(int other, absl::Duration patience) const {
  pollfd events[2] = {{Shared().event, POLLIN, 0}, {other, POLLIN, 0}};
  const absl::Time end = absl::Now() + patience;
  while (received() == 0) {
    const absl::Duration left = std::clamp(end - absl::Now(), absl::ZeroDuration(), absl::Hours(1));
    const int number = poll(events, 2,
                            static_cast<int>(absl::ToInt64Milliseconds(
                                left + absl::Milliseconds(1) - absl::Nanoseconds(1))));
    if (number > 0 || (number < 0 && errno != EINTR) || absl::Now() >= end) break;
  }
  return received();
}

}  // namespace troupe
