/// Running cases in child processes, so that none can take the program down.
#ifndef TROUPE_TESTS_GOLDEN_ISOLATE_H_
#define TROUPE_TESTS_GOLDEN_ISOLATE_H_

#include <functional>
#include <vector>

#include "tests/golden/run_case.h"

namespace troupe::golden {

/// Called with each case of the list in turn, on the calling thread.
using Report = std::function<void(const Case& test, const Outcome& outcome)>;

/// Runs one case: `RunCase`, or in tests something that misbehaves.
using Runner = Outcome (*)(const Case& test);

/// Runs the cases one after the other in this process.
void RunHere(const std::vector<const Case*>& cases, const Report& report);

/// Runs the cases in a child process, which is replaced when it dies or is silent for `seconds`
/// over one case: that case has failed. This process must have no other threads.
void RunIsolated(const std::vector<const Case*>& cases, int seconds, const Report& report,
                 Runner runner = RunCase);

}  // namespace troupe::golden

#endif  // TROUPE_TESTS_GOLDEN_ISOLATE_H_
