// What the examples share: options, and how they end.

#ifndef TROUPE_EXAMPLES_SHARED_OPTIONS_H_
#define TROUPE_EXAMPLES_SHARED_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/program/command_line.h"

namespace examples {

/// Prints the error and ends the program.
[[noreturn]] void Die(const absl::Status& status);

/// The value, or the end of the program.
template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) Die(value.status());
  return *std::move(value);
}
inline void OrDie(const absl::Status& status) {
  if (!status.ok()) Die(status);
}

/// Every example has these.
struct Options {
  int64_t steps;
  int64_t batch;
  int threads = 0;
  int64_t seed = 1;
};

/// An example's command line, with the options that every example has; more may be added.
class CommandLine : public troupe::CommandLine {
 public:
  CommandLine(char** argv, const std::string& description, Options* options);
  /// Ends the program after `--help`, `--version` and wrong usage.
  void ReadOrExit(int argc, char** argv);
};

}  // namespace examples

#endif  // TROUPE_EXAMPLES_SHARED_OPTIONS_H_
