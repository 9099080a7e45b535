/// What writers, mergers and readers of bundles share: names of files, and how a bundle appears
/// under its name (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_BUNDLE_FILES_H_
#define TROUPE_DEVICES_STORAGE_BUNDLE_FILES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "devices/storage/file_system.h"
#include "graph/protos/checkpoint.pb.h"

namespace troupe {

/// The version that is written, and the newest one that is read.
inline constexpr int kBundleVersion = 1;

/// PREFIX.index
std::string BundleIndexFile(std::string_view prefix);
/// PREFIX.data-00000-of-00001
std::string BundleDataFile(std::string_view prefix, int shard, int num_shards);

/// A bundle that has been written under temporary names.
struct PendingBundle {
  std::map<std::string, BundleEntryProto> entries;
  /// By shard; synced if the bundle shall be.
  std::vector<std::string> data_files;
};

/// Writes the index, and renames everything to what `prefix` wants: first the data, then the index.
/// Until the index is renamed, the bundle that was there under the same prefix stays whole: its
/// data files have other names, because the total that is part of them is another one. Afterwards
/// the data files of the index that was replaced are removed. Several processes may do so at once:
/// each index describes its own data. With `sync`, a power cut leaves the old bundle or the new
/// one, and after this call the new one. After an error the data have their temporary names again,
/// if they can still be renamed.
absl::Status CommitBundle(FileSystem* file_system, const std::string& prefix,
                          const PendingBundle& bundle, bool sync,
                          std::string_view temporary_suffix);

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_BUNDLE_FILES_H_
