/// Kernels that make one string, or number, of each string.
#ifndef TROUPE_KERNELS_STRINGS_MAP_STRINGS_H_
#define TROUPE_KERNELS_STRINGS_MAP_STRINGS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "kernels/kernel.h"

namespace troupe {

/// Makes output 0 of input 0, strings, in pieces on several threads: `f(string, &result)` is false
/// for a string that it cannot take. The result is the place of the first such string in the
/// pieces that were done, -1 if there is none.
template <typename To, typename F>
absl::StatusOr<int64_t> MapStrings(KernelContext& ctx, double nanoseconds, F&& f) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, kElementType<To>, input.shape()));
  const std::string* in = input.unchecked_data<std::string>();
  To* out = output->mutable_data<To>();
  std::atomic<int64_t> bad{INT64_MAX};
  ctx.ParallelFor(input.num_elements(), KernelContext::GrainFor(nanoseconds),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      if (f(in[i], &out[i])) continue;
                      int64_t first = bad.load(std::memory_order_relaxed);
                      while (i < first && !bad.compare_exchange_weak(first, i)) {
                      }
                      return;
                    }
                  });
  const int64_t first = bad.load();
  return first == INT64_MAX ? -1 : first;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_STRINGS_MAP_STRINGS_H_
