/// The nodes of a saver: those that TensorFlow's has, under its names.
#ifndef TROUPE_API_INTERNAL_SAVER_BUILDER_H_
#define TROUPE_API_INTERNAL_SAVER_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "api/scope.h"
#include "api/training/saveable.h"

namespace troupe {

struct SaverGraphOptions {
  bool reshape = false;
  bool sharded = false;
  bool restore_sequentially = false;
  bool v1 = false;
  /// Adds what `SaverGraph::held` needs.
  bool asynchronous = false;
  std::string filename;
};

struct SaverGraph {
  Output filename;  ///< Fed with the prefix.
  Output save;      ///< Fetched to save: the prefix of what has been saved.
  Node* restore = nullptr;
  /// Fetched before `save` in a partial run: the step holds all that it will save. Not valid unless
  /// asked for.
  Output held;
};

/// The name of `SaverGraph::held`, in the saver's scope.
inline constexpr char kHeldName[] = "held";

/// A restore reads about as many bytes at a time before it sets variables: a checkpoint of any size
/// takes no more memory beside the variables than this or the largest of them, and one of many
/// small tensors is still opened only once.
inline constexpr int64_t kRestoreBytes = int64_t{64} << 20;

/// Adds the nodes through `scope`, whose prefix is the saver's own. Errors go to the scope.
SaverGraph BuildSaver(const Scope& scope, const std::vector<Saveable>& saveables,
                      const SaverGraphOptions& options);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_SAVER_BUILDER_H_
