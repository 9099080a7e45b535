#ifndef TROUPE_DEVICES_CPU_BLOCK_SIGNALS_H_
#define TROUPE_DEVICES_CPU_BLOCK_SIGNALS_H_

#include <pthread.h>
#include <signal.h>

namespace troupe {

/// Threads that are made while it lives, by this thread, are sent no signals of the process: these
/// go to threads of the host program, as without us. A thread still takes what its own faults send
/// it, and a profiler's clock.
class ScopedBlockSignals {
 public:
  ScopedBlockSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, number);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~ScopedBlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  ScopedBlockSignals(const ScopedBlockSignals&) = delete;
  ScopedBlockSignals& operator=(const ScopedBlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_CPU_BLOCK_SIGNALS_H_
