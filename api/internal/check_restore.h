/// Whether a checkpoint has what a graph would restore.
#ifndef TROUPE_API_INTERNAL_CHECK_RESTORE_H_
#define TROUPE_API_INTERNAL_CHECK_RESTORE_H_

#include <string>

#include "absl/status/status.h"
#include "devices/storage/checkpoint_reader.h"
#include "graph/graph.h"

namespace troupe {

/// Looks at all RestoreV2 nodes that `restore` waits for, and at the variables that are set to what
/// they give. The error tells of all tensors that do not fit: NotFound if one is missing, otherwise
/// InvalidArgument. Names that are not constants are not checked.
absl::Status CheckRestore(const Node* restore, const std::string& prefix,
                          const CheckpointReader& reader);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_CHECK_RESTORE_H_
