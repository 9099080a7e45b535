#include "devices/storage/bundle_files.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "devices/status_macros.h"
#include "devices/storage/path.h"
#include "devices/storage/table_reader.h"
#include "devices/storage/table_writer.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

constexpr int kMostShards = 99'999;  // Their names have five digits.

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

/// The total in the names of the data files that the index describes; 0 without one that can be
/// read.
int DescribedTotal(FileSystem* file_system, const std::string& prefix) {
  const auto table = TableReader::Open(file_system, BundleIndexFile(prefix));
  if (!table.ok()) return 0;
  const absl::StatusOr<std::optional<std::string>> bytes = (*table)->Get("");
  BundleHeaderProto header;
  if (!bytes.ok() || !bytes->has_value() || !header.ParseFromString(**bytes)) return 0;
  return header.num_shards();
}

/// Renames the first `n` of a bundle's data files to what they were.
void RenameBack(FileSystem* file_system, const std::string& prefix,
                const std::vector<std::string>& data_files, size_t n, int num_shards) {
  while (n-- > 0) {
    file_system->Rename(BundleDataFile(prefix, static_cast<int>(n), num_shards), data_files[n])
        .IgnoreError();
  }
}

/// Renames data files to those of a bundle. AlreadyExists if there is one; then, as after any
/// error, none is renamed.
absl::Status RenameData(FileSystem* file_system, const std::string& prefix,
                        const std::vector<std::string>& data_files, int num_shards) {
  for (size_t i = 0; i < data_files.size(); ++i) {
    absl::Status status = file_system->RenameNew(
        data_files[i], BundleDataFile(prefix, static_cast<int>(i), num_shards));
    if (status.ok()) continue;
    RenameBack(file_system, prefix, data_files, i, num_shards);
    return status;
  }
  return absl::OkStatus();
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
  // Before the files are listed: only what this index describes is removed in the end. Others may
  // be those of another process, which has not renamed its index yet.
  const int described = DescribedTotal(file_system, prefix);
  TROUPE_ASSIGN_OR_RETURN(const auto old_files, DataFiles(file_system, prefix));

  const std::string index = TemporaryName(BundleIndexFile(prefix), temporary_suffix);
  absl::Status status;
  // A number that is free may be one that another process is about to remove: it may have read the
  // index and listed the files long ago. Nobody is about to remove one above all that are there.
  int num_shards = old_files.empty() ? 0 : old_files.rbegin()->first;
  if (num_shards >= kMostShards) num_shards = 0;
  num_shards = std::max({num_shards, static_cast<int>(bundle.data_files.size()) - 1, 0});
  do {
    ++num_shards;
    while (old_files.count(num_shards) > 0) ++num_shards;
    status = WriteIndex(file_system, index, bundle, num_shards, sync);
    if (status.ok()) status = RenameData(file_system, prefix, bundle.data_files, num_shards);
    // Another process was faster.
  } while (absl::IsAlreadyExists(status) && num_shards < kMostShards);
  if (status.ok()) {
    // The index must not survive a power cut without the data.
    if (sync) status = file_system->SyncDirectory(directory);
    if (status.ok()) status = file_system->Rename(index, BundleIndexFile(prefix));
    // Unless it has been renamed all the same.
    if (!status.ok() && file_system->Exists(index).ok()) {
      RenameBack(file_system, prefix, bundle.data_files, bundle.data_files.size(), num_shards);
    }
  }
  if (!status.ok()) {
    file_system->Remove(index).IgnoreError();
    return status;
  }
  if (sync) TROUPE_RETURN_IF_ERROR(file_system->SyncDirectory(directory));
  for (const auto& [total, file] : old_files) {
    if (total == described) file_system->Remove(file).IgnoreError();
  }
  return absl::OkStatus();
}

}  // namespace troupe
