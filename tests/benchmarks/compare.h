/// Two implementations of one piece of work, measured in turn.
#ifndef TROUPE_TESTS_BENCHMARKS_COMPARE_H_
#define TROUPE_TESTS_BENCHMARKS_COMPARE_H_

#include <algorithm>
#include <chrono>

#include "benchmark/benchmark.h"

namespace troupe::testing {

/// Seconds that one call takes, of `repeats` calls.
template <typename F>
double SecondsPerCall(F& f, int repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats;
}

/// Runs both in turn and reports the minima: `ours_us`, `theirs_us`, `speed` = theirs / ours, and
/// our GFLOP/s. To be registered with Iterations(1).
template <typename Ours, typename Theirs>
void Compare(benchmark::State& state, double operations, Ours ours, Theirs theirs) {
  ours();
  theirs();
  const double once = SecondsPerCall(theirs, 1);
  const int repeats = std::clamp(static_cast<int>(5e-4 / std::max(once, 1e-8)), 1, 10000);
  const int rounds = std::clamp(static_cast<int>(0.3 / (once * repeats)), 5, 100);
  double best_ours = 1e9, best_theirs = 1e9;
  for (auto _ : state) {
    for (int i = 0; i < rounds; ++i) {
      best_ours = std::min(best_ours, SecondsPerCall(ours, repeats));
      best_theirs = std::min(best_theirs, SecondsPerCall(theirs, repeats));
    }
  }
  state.counters["ours_us"] = best_ours * 1e6;
  state.counters["theirs_us"] = best_theirs * 1e6;
  state.counters["speed"] = best_theirs / best_ours;
  state.counters["GFLOPs"] = operations / best_ours / 1e9;
}

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_BENCHMARKS_COMPARE_H_
