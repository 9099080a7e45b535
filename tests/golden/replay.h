/// Replays the selected cases of a file and prints what became of them.
#ifndef TROUPE_TESTS_GOLDEN_REPLAY_H_
#define TROUPE_TESTS_GOLDEN_REPLAY_H_

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tests/golden/golden.pb.h"
#include "tests/golden/run_case.h"
#include "tests/golden/workers.h"

namespace troupe::golden {

struct Selection {
  std::vector<std::string> ops;     ///< Only cases about one of these, if there are any.
  std::string name;                 ///< Only the case of this name, if it is not empty.
  std::vector<std::string> except;  ///< Cases that are left out.
  /// Only cases whose ops are of this stage or before. They must all be there: a case that would be
  /// skipped has failed.
  std::optional<int> stage;
  /// A case that takes more seconds of processor time has failed.
  std::optional<double> at_most;
  bool list_skipped = false;
  bool in_process = false;
};

struct Counts {
  int64_t passed = 0, failed = 0, skipped = 0;
  PlacedOps ops;
  void Add(const Counts& other);
  std::string ToString() const;  ///< "1 passed, 2 failed, 3 skipped"
  /// The percentage of the nodes that ran on devices of the spread's type; 0 if none ran at all.
  double PercentThere() const;
  /// "3 of 4 nodes (75.0 %); never there, as there is no kernel: Assign AssignAdd; nor these, whose
  /// kernels are for other element types, or which must be with such an op: Identity"
  std::string PlacedToString() const;
};

/// Prints to `out`. If the user has named the file itself, rather than its folder, a stage that
/// selects none of its cases counts as a failure: such a check could not fail. `workers` may be
/// nullptr.
Counts Replay(const std::string& file, bool named, const CaseFile& cases,
              const Selection& selection, Workers* workers, std::FILE* out);

}  // namespace troupe::golden

#endif  // TROUPE_TESTS_GOLDEN_REPLAY_H_
