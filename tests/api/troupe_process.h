/// The program `troupe`, for tests.
#ifndef TROUPE_TESTS_API_TROUPE_PROCESS_H_
#define TROUPE_TESTS_API_TROUPE_PROCESS_H_

#include <string>
#include <utility>
#include <vector>

#include "api/program/child_process.h"

namespace troupe {

/// The program beside this one, running; both its outputs are read, and nothing is logged unless
/// the arguments ask for it. Killed at the end.
class TroupeProcess : public ChildProcess {
 public:
  explicit TroupeProcess(std::vector<std::string> arguments)
      : ChildProcess(Begin(std::move(arguments))) {}
  /// The next line of what it prints; waits for it.
  std::string Line() { return ChildProcess::Line().value_or(""); }

 private:
  static ChildProcess Begin(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, {"--log-level", "off"});  // The last one counts.
    arguments.insert(arguments.begin(), ProgramFolder() + "/troupe");
    return Start({.arguments = arguments, .output = true, .errors = true}).value();
  }
};

}  // namespace troupe

#endif  // TROUPE_TESTS_API_TROUPE_PROCESS_H_
