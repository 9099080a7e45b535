// The command `troupe checkpoint`: what is in a checkpoint.

#ifndef TROUPE_API_CLI_CHECKPOINT_COMMAND_H_
#define TROUPE_API_CLI_CHECKPOINT_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::cli {

struct CheckpointOptions {
  /// A prefix, or a folder: its latest checkpoint.
  std::string checkpoint;
  /// Tensors that are printed, "NAME", or saved, "NAME=FILE.npy".
  std::vector<std::string> tensors;
  /// Lists what variables are called in the program as well.
  bool full_names = false;
  bool verify = false;
  /// Another checkpoint, with which it is compared.
  std::string other;
  std::string log_level;  ///< Empty: the default.
};

/// Prints tensors or a list of them; with `other` what differs. The exit status: 1 if anything
/// does.
absl::StatusOr<int> CheckpointCommand(const CheckpointOptions& options);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_CHECKPOINT_COMMAND_H_
