#include "devices/storage/merge_bundles.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/bundle_files.h"
#include "devices/storage/bundle_reader.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

/// Adds what one part says about a tensor or a slice.
absl::Status MergeEntry(const std::string& key, BundleEntryProto entry, const std::string& prefix,
                        PendingBundle* bundle) {
  const auto [found, inserted] = bundle->entries.try_emplace(key, entry);
  if (inserted) return absl::OkStatus();
  BundleEntryProto& whole = found->second;
  if (whole.slices().empty() || entry.slices().empty()) {
    return InvalidArgument("Duplicate tensor keyed by ", absl::CHexEscape(key),
                           " encountered, when merging prefix: ", prefix);
  }
  if (whole.dtype() != entry.dtype() ||
      whole.shape().SerializeAsString() != entry.shape().SerializeAsString()) {
    return InvalidArgument("The slices of tensor '", absl::CHexEscape(key), "' in ", prefix,
                           " are of another type or shape than those in the parts before");
  }
  whole.mutable_slices()->MergeFrom(entry.slices());
  return absl::OkStatus();
}

/// Adds one part; its data files get the next numbers.
absl::Status MergePart(FileSystem* file_system, const std::string& prefix, PendingBundle* bundle) {
  TROUPE_ASSIGN_OR_RETURN(BundleIndex index, ReadBundleIndex(file_system, prefix));
  std::map<int, int> shards;  // numbers in the part, in the whole
  for (auto& [key, entry] : index.entries) {
    if (entry.slices().empty()) {  // else it holds no elements itself
      const auto next = static_cast<int>(bundle->data_files.size());
      const auto [shard, added] = shards.try_emplace(entry.shard_id(), next);
      if (added) {
        bundle->data_files.push_back(
            BundleDataFile(prefix, entry.shard_id(), index.header.num_shards()));
        TROUPE_RETURN_IF_ERROR(file_system->Exists(bundle->data_files.back()));
      }
      entry.set_shard_id(shard->second);
    }
    TROUPE_RETURN_IF_ERROR(MergeEntry(key, std::move(entry), prefix, bundle));
  }
  return absl::OkStatus();
}

/// Removes what is left of the parts. The checkpoint is complete: errors do not matter.
void RemoveParts(FileSystem* file_system, const std::vector<std::string>& prefixes,
                 const std::string& merged, const MergeOptions& options) {
  std::set<std::string> directories;
  for (const std::string& prefix : prefixes) {
    if (prefix == merged) continue;
    file_system->Remove(BundleIndexFile(prefix)).IgnoreError();
    // A part without tensors has a data file without bytes, which was not renamed.
    file_system->Remove(BundleDataFile(prefix, 0, 1)).IgnoreError();
    directories.insert(PathDirectory(prefix));
  }
  if (!options.remove_directories) return;
  directories.erase(PathDirectory(merged));
  for (const std::string& directory : directories) {
    file_system->RemoveDirectory(directory).IgnoreError();
  }
}

}  // namespace

absl::Status MergeBundles(FileSystem* file_system, const std::vector<std::string>& prefixes,
                          const std::string& merged, const MergeOptions& options) {
  return CatchExceptions([&]() -> absl::Status {
    PendingBundle bundle;
    std::vector<std::string> parts;
    absl::Status missing = InvalidArgument("No parts were given for the checkpoint ", merged);
    for (const std::string& prefix : prefixes) {
      const absl::Status exists = file_system->Exists(BundleIndexFile(prefix));
      if (!exists.ok()) {
        if (!absl::IsNotFound(exists) || !options.allow_missing) return exists;
        missing = exists;
        continue;
      }
      TROUPE_RETURN_IF_ERROR(MergePart(file_system, prefix, &bundle));
      parts.push_back(prefix);
    }
    if (parts.empty()) return missing;
    TROUPE_RETURN_IF_ERROR(
        CreateDirectoriesSynced(file_system, PathDirectory(merged), options.sync));
    TROUPE_RETURN_IF_ERROR(
        CommitBundle(file_system, merged, bundle, options.sync, options.temporary_suffix));
    RemoveParts(file_system, parts, merged, options);
    return absl::OkStatus();
  });
}

}  // namespace troupe
