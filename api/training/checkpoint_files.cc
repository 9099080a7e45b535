#include "api/training/checkpoint_files.h"

#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "devices/status_macros.h"
#include "devices/storage/bundle_files.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/object_names.h"
#include "devices/storage/path.h"

namespace troupe {
namespace {

/// The file by which a checkpoint is known: its index, or the first one of the V1 format.
absl::StatusOr<std::string> MainFile(FileSystem* files, const std::string& prefix) {
  const std::string index = BundleIndexFile(prefix);
  const absl::Status exists = files->Exists(index);
  if (exists.ok()) return index;
  if (!absl::IsNotFound(exists)) return exists;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> matches, MatchFiles(files, prefix));
  for (const std::string& match : matches) {
    TROUPE_ASSIGN_OR_RETURN(const FileStat stat, files->Stat(match));
    if (!stat.is_directory) return match;
  }
  return absl::NotFoundError(
      StrCat("there is no checkpoint ", prefix, ": neither ", index, " nor ", prefix, " is there"));
}

/// `text` as a pattern that matches nothing but it.
std::string Literally(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

absl::Status RemoveIfThere(FileSystem* files, const std::string& path) {
  const absl::Status status = files->Remove(path);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& checkpoint) {
  TROUPE_ASSIGN_OR_RETURN(const std::string prefix, FindCheckpoint(checkpoint));
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(prefix));
  return OpenCheckpoint(files, prefix);
}

}  // namespace

absl::StatusOr<CheckpointHistory> GetCheckpointState(const std::string& directory,
                                                     const std::string& latest_filename) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(directory));
  return ReadCheckpointState(files, directory, latest_filename);
}

absl::Status UpdateCheckpointState(const std::string& directory, CheckpointHistory history,
                                   const CheckpointStateOptions& options) {
  if (options.file_name.empty() || options.file_name.find('/') != std::string::npos) {
    return InvalidArgument("a state file is called '", options.file_name,
                           "': it takes a name without a path");
  }
  if (history.latest == JoinPath(directory, options.file_name)) {
    return InvalidArgument("the checkpoint ", history.latest,
                           " has the name of the state file: choose another one for either");
  }
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(directory));
  return WriteCheckpointState(files, directory, std::move(history), options);
}

absl::StatusOr<std::string> LatestCheckpoint(const std::string& directory,
                                             const std::string& latest_filename) {
  TROUPE_ASSIGN_OR_RETURN(const CheckpointHistory history,
                          GetCheckpointState(directory, latest_filename));
  TROUPE_ASSIGN_OR_RETURN(const bool exists, CheckpointExists(history.latest));
  if (exists) return history.latest;
  return absl::DataLossError(
      StrCat(JoinPath(directory, latest_filename), " names the checkpoint ", history.latest,
             ", which is not there: bring it back, or remove the file to begin anew"));
}

absl::StatusOr<bool> CheckpointExists(const std::string& prefix) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(prefix));
  const absl::Status status = MainFile(files, prefix).status();
  if (absl::IsNotFound(status)) return false;
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<absl::Time> CheckpointTime(const std::string& prefix) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(prefix));
  TROUPE_ASSIGN_OR_RETURN(const std::string file, MainFile(files, prefix));
  TROUPE_ASSIGN_OR_RETURN(const FileStat stat, files->Stat(file));
  return absl::FromUnixNanos(stat.modified_ns);
}

absl::Status RemoveCheckpoint(const std::string& prefix, std::string_view meta_graph_suffix) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(prefix));
  TROUPE_RETURN_IF_ERROR(RemoveIfThere(files, MetaGraphFile(prefix, meta_graph_suffix)));
  // The index before its data: what is left after a power cut is no checkpoint.
  TROUPE_RETURN_IF_ERROR(RemoveIfThere(files, BundleIndexFile(prefix)));
  std::vector<std::string> rest;
  for (const std::string& pattern :
       {StrCat(Literally(prefix), ".data-\?\?\?\?\?-of-\?\?\?\?\?"), prefix}) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> matches, MatchFiles(files, pattern));
    rest.insert(rest.end(), matches.begin(), matches.end());
  }
  for (const std::string& file : rest) {
    const absl::StatusOr<FileStat> stat = files->Stat(file);
    if (stat.ok() && stat->is_directory) continue;
    TROUPE_RETURN_IF_ERROR(RemoveIfThere(files, file));
  }
  return absl::OkStatus();
}

std::string MetaGraphFile(std::string_view prefix, std::string_view suffix) {
  // "-SHARD-of-COUNT" at the end is not part of it; SHARD is of digits and question marks.
  const auto digits = [&prefix](size_t end, std::string_view others) {
    while (end > 0 && (absl::ascii_isdigit(prefix[end - 1]) ||
                       others.find(prefix[end - 1]) != std::string_view::npos)) {
      --end;
    }
    return end;
  };
  constexpr std::string_view kOf = "-of-";
  const size_t count = digits(prefix.size(), "");
  if (count < prefix.size() && prefix.substr(0, count).ends_with(kOf)) {
    const size_t end = count - kOf.size(), shard = digits(end, "?");
    if (shard < end && shard > 0 && prefix[shard - 1] == '-') prefix = prefix.substr(0, shard - 1);
  }
  return StrCat(prefix, ".", suffix);
}

absl::StatusOr<std::string> FindCheckpoint(const std::string& checkpoint) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(checkpoint));
  const absl::StatusOr<FileStat> stat = files->Stat(checkpoint);
  if (stat.ok() && stat->is_directory) return LatestCheckpoint(checkpoint);
  return checkpoint;
}

absl::StatusOr<std::vector<CheckpointVariable>> ListVariables(const std::string& checkpoint) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, Open(checkpoint));
  TROUPE_ASSIGN_OR_RETURN(const ObjectNames names, ObjectNames::Of(*reader));
  std::vector<CheckpointVariable> variables;
  for (const auto& [name, tensor] : reader->tensors()) {
    variables.push_back({name, tensor.type, tensor.shape, names.FullName(name)});
  }
  return variables;
}

absl::StatusOr<Tensor> LoadVariable(const std::string& checkpoint, std::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, Open(checkpoint));
  TROUPE_ASSIGN_OR_RETURN(const ObjectNames names, ObjectNames::Of(*reader));
  TROUPE_ASSIGN_OR_RETURN(const std::string key, names.Key(*reader, name));
  return reader->Read(key);
}

}  // namespace troupe
