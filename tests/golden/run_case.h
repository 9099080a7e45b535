/// Replays one golden case.
#ifndef TROUPE_TESTS_GOLDEN_RUN_CASE_H_
#define TROUPE_TESTS_GOLDEN_RUN_CASE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/golden/golden.pb.h"

namespace troupe::golden {

enum class Verdict { kPassed, kFailed, kSkipped };

/// How many nodes of an op ran on devices of the spread's type, and on others.
struct Placed {
  int64_t there = 0, elsewhere = 0;
  /// The op has a kernel of that type, be it for other element types.
  bool has_kernel = false;
};
using PlacedOps = std::map<std::string, Placed>;

struct Outcome {
  Verdict verdict = Verdict::kPassed;
  std::vector<std::string> failures;  ///< "step 0 out:0: got ..., want ..., max error ..."
  std::string missing_op;             ///< Why it was skipped.
  PlacedOps ops;                      ///< Empty unless the spread is over another type than CPU.
  double processor_seconds = 0;       ///< Of all threads of the process while the case ran.
};

/// Imports the case's graph into a graph and a session of its own, checks inferred shapes, runs the
/// steps, adds the gradients, compares. Skips a case without `build_error` if one of its ops exists
/// in TensorFlow but is not registered here.
Outcome RunCase(const Case& test);

/// The first op of the case's graph or functions that exists in TensorFlow but is not registered
/// here; empty if there is none.
std::string MissingOp(const Case& test);

/// The highest stage (1 first light, 2 control flow and training, 3 computing, 4 input, 5
/// collectives) among the ops of the case's graph and functions and of the gradients of function
/// calls; ops that TensorFlow does not have count as 0.
int Stage(const Case& test);

}  // namespace troupe::golden

#endif  // TROUPE_TESTS_GOLDEN_RUN_CASE_H_
