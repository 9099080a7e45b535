#include "devices/storage/bundle_files.h"

#include <algorithm>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "devices/status_macros.h"
#include "devices/storage/path.h"
#include "devices/storage/table_writer.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

/// The number of shards that a data file's name tells; 0 if this is no data file of the bundle.
int TotalInName(std::string_view name, std::string_view base) {
  const std::string start = StrCat(base, ".data-");
  if (!name.starts_with(start)) return 0;
  name.remove_prefix(start.size());
  const size_t of = name.find("-of-");
  int shard = 0, total = 0;
  if (of == std::string_view::npos ||
      !absl::SimpleAtoi(absl::string_view(name.data(), of), &shard) ||
      !absl::SimpleAtoi(absl::string_view(name.data() + of + 4, name.size() - of - 4), &total) ||
      shard < 0 || total <= shard) {
    return 0;
  }
  return total;
}

/// Data files of the bundle that are there, by their totals.
absl::StatusOr<std::multimap<int, std::string>> DataFiles(FileSystem* file_system,
                                                          const std::string& prefix) {
  const std::string directory = PathDirectory(prefix);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  std::multimap<int, std::string> files;
  for (const std::string& name : names) {
    const int total = TotalInName(name, PathBase(prefix));
    if (total > 0) files.emplace(total, JoinPath(directory, name));
  }
  return files;
}

absl::Status WriteIndex(FileSystem* file_system, const std::string& path,
                        const PendingBundle& bundle, int num_shards, bool sync) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, file_system->Create(path));
  TableWriter table(file.get());
  BundleHeaderProto header;
  header.set_num_shards(num_shards);
  header.mutable_version()->set_producer(kBundleVersion);
  TROUPE_RETURN_IF_ERROR(table.Add("", header.SerializeAsString()));
  for (const auto& [name, entry] : bundle.entries) {
    TROUPE_RETURN_IF_ERROR(table.Add(name, entry.SerializeAsString()));
  }
  TROUPE_RETURN_IF_ERROR(table.Finish());
  if (sync) TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

std::string BundleIndexFile(std::string_view prefix) { return StrCat(prefix, ".index"); }

std::string BundleDataFile(std::string_view prefix, int shard, int num_shards) {
  return StrCat(prefix, absl::StrFormat(".data-%05d-of-%05d", shard, num_shards));
}

absl::Status CommitBundle(FileSystem* file_system, const std::string& prefix,
                          const PendingBundle& bundle, bool sync,
                          std::string_view temporary_suffix) {
  const std::string directory = PathDirectory(prefix);
  TROUPE_ASSIGN_OR_RETURN(const auto old_files, DataFiles(file_system, prefix));
  int num_shards = std::max(1, static_cast<int>(bundle.data_files.size()));
  while (old_files.count(num_shards) > 0) ++num_shards;

  const std::string index = TemporaryName(BundleIndexFile(prefix), temporary_suffix);
  absl::Status status = WriteIndex(file_system, index, bundle, num_shards, sync);
  for (size_t i = 0; status.ok() && i < bundle.data_files.size(); ++i) {
    status = file_system->Rename(bundle.data_files[i],
                                 BundleDataFile(prefix, static_cast<int>(i), num_shards));
  }
  // The index must not survive a power cut without the data.
  if (status.ok() && sync) status = file_system->SyncDirectory(directory);
  if (status.ok()) status = file_system->Rename(index, BundleIndexFile(prefix));
  if (!status.ok()) {
    file_system->Remove(index).IgnoreError();
    return status;
  }
  if (sync) TROUPE_RETURN_IF_ERROR(file_system->SyncDirectory(directory));
  for (const auto& [total, file] : old_files) file_system->Remove(file).IgnoreError();
  return absl::OkStatus();
}

}  // namespace troupe
