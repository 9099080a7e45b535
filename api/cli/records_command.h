// The command `troupe records`: what is in record files.

#ifndef TROUPE_API_CLI_RECORDS_COMMAND_H_
#define TROUPE_API_CLI_RECORDS_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::cli {

struct RecordsOptions {
  /// Paths, or patterns of paths.
  std::vector<std::string> files;
  bool count = false;
  bool verify = false;
  int64_t head = 0;         ///< So many records of each file are printed.
  bool examples = false;    ///< Their features, where they are Examples.
  std::string compression;  ///< Empty: told by the content.
  std::string log_level;    ///< Empty: the default.
};

/// Counts, verifies and prints records. The exit status. DataLoss names the file and the offset, in
/// bytes of the file without compression.
absl::StatusOr<int> RecordsCommand(const RecordsOptions& options);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_RECORDS_COMMAND_H_
