/// What a kernel must know again after a restart of the program.
#ifndef TROUPE_KERNELS_KERNEL_STATE_H_
#define TROUPE_KERNELS_KERNEL_STATE_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace troupe {

/// By the node's name. Of nodes in a function's body, the function is before it: "@FUNCTION\nNODE".
using KernelStates = std::map<std::string, std::string>;

/// A kernel of a stateful op whose state is its own, such as the position of a random generator.
class ResumableKernel {
 public:
  virtual ~ResumableKernel() = default;
  /// A few bytes; may be called while the kernel runs.
  virtual std::string SaveState() const = 0;
  /// Called while it does not run. InvalidArgument: it is the state of another kernel.
  virtual absl::Status RestoreState(std::string_view state) = 0;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_KERNEL_STATE_H_
