#include "kernels/random/random_stream_kernel.h"

#include "devices/status_macros.h"

namespace troupe {

absl::Status RandomStreamKernel::RestoreState(std::string_view state) {
  if (stream_.Restore(state)) return absl::OkStatus();
  return InvalidArgument("what was saved is of other seeds, or no position of a random generator");
}

}  // namespace troupe
