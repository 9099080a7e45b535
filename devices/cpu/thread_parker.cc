#include "devices/cpu/thread_parker.h"

#include <sched.h>

#include "devices/cpu/compute_pool.h"
#include "devices/time_source.h"

namespace troupe {

bool ThreadParker::HelpOrSpin(ComputePool* pool, absl::FunctionRef<bool()> come, uint64_t spin_ns) {
  if (pool != nullptr && pool->RunOne()) return true;
  const uint64_t until = TimeSource::System()->NowNs() + spin_ns;
  do {
    for (int i = 0; i < 32; ++i) {
      if (come()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    if (pool != nullptr && pool->RunOne()) return true;
  } while (TimeSource::System()->NowNs() < until);
  return come();
}

void ThreadParker::Yield() { sched_yield(); }

}  // namespace troupe
