/// Running random cases.
#ifndef TROUPE_TESTS_RANDOM_OPS_RUN_DRAWN_CASE_H_
#define TROUPE_TESTS_RANDOM_OPS_RUN_DRAWN_CASE_H_

#include <cstdint>
#include <string>

#include "tests/golden/golden.pb.h"

namespace troupe::random_ops {

/// What tensors may take in all, so that ops with large outputs cost no time.
inline constexpr int64_t kMemoryLimit = 64 << 20;

struct DrawnOutcome {
  std::string code;   ///< Of the last step that ran: "OK", "INVALID_ARGUMENT".
  std::string wrong;  ///< Empty if all is well.
};

/// Imports the graph, runs its steps and gradients in a session of its own, and reads what they
/// give. Wrong is: a session that does not compute any more afterwards; an op that neither waits
/// nor loops and has no end after 20 seconds; a graph that an import which failed has changed. A
/// crash ends the process.
DrawnOutcome RunDrawnCase(const golden::Case& drawn);

}  // namespace troupe::random_ops

#endif  // TROUPE_TESTS_RANDOM_OPS_RUN_DRAWN_CASE_H_
