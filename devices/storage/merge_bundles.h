/// Makes one checkpoint of several, as the op MergeV2Checkpoints does for the shards that tasks
/// wrote.
#ifndef TROUPE_DEVICES_STORAGE_MERGE_BUNDLES_H_
#define TROUPE_DEVICES_STORAGE_MERGE_BUNDLES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "devices/storage/file_system.h"

namespace troupe {

struct MergeOptions {
  bool sync = true;  ///< as `BundleWriterOptions::sync`; the parts were synced by their writers
  std::string temporary_suffix;  ///< as `BundleWriterOptions::temporary_suffix`
  /// Parts that are not there are left out, unless none is.
  bool allow_missing = false;
  /// Folders of the parts are removed if they are empty afterwards.
  bool remove_directories = false;
};

/// The tensors of all `prefixes` under `merged`. Data files are renamed, not copied, so all are in
/// one file system. Slices of one tensor may come from several parts. The parts are gone
/// afterwards; until `merged` is complete, a checkpoint that was there under its name stays whole.
/// InvalidArgument if two parts have a tensor of the same name, or slices of different type or
/// shape; NotFound for a missing part.
absl::Status MergeBundles(FileSystem* file_system, const std::vector<std::string>& prefixes,
                          const std::string& merged, const MergeOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_MERGE_BUNDLES_H_
