#include "devices/storage/whole_file.h"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "devices/status_macros.h"
#include "devices/storage/path.h"

namespace troupe {
namespace {

absl::Status WriteAside(FileSystem* file_system, const std::string& path, std::string_view contents,
                        bool sync) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, file_system->Create(path));
  TROUPE_RETURN_IF_ERROR(file->Append(contents));
  if (sync) TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

bool HasWildcard(std::string_view name) { return name.find_first_of("*?[\\") != name.npos; }

/// The names of `directory` that match `pattern`, as paths.
absl::Status MatchIn(FileSystem* file_system, const std::string& directory,
                     const std::string& pattern, std::vector<std::string>* matches) {
  const absl::StatusOr<std::vector<std::string>> names =
      file_system->List(directory.empty() ? "." : directory);
  // A file where a folder should be has no names either.
  if (absl::IsNotFound(names.status()) || absl::IsFailedPrecondition(names.status())) {
    return absl::OkStatus();
  }
  TROUPE_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
    matches->push_back(JoinPath(directory, name));
  }
  return absl::OkStatus();
}

}  // namespace

std::string TemporaryName(std::string_view path, std::string_view suffix) {
  static std::atomic<uint64_t> next = 0;
  if (!suffix.empty()) return StrCat(path, ".tempstate", suffix);
  // Containers and hosts that share a folder give their processes the same numbers.
  std::random_device random;
  const uint64_t bits = uint64_t{random()} << 32 | random();
  return StrCat(path, ".tempstate", ::getpid(), "_", next.fetch_add(1), "_", bits);
}

absl::StatusOr<std::string> ReadWholeFile(FileSystem* file_system, const std::string& path,
                                          size_t max_bytes) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                          file_system->OpenForReading(path));
  TROUPE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > max_bytes) {
    return absl::ResourceExhaustedError(
        StrCat(path, " has ", size, " bytes; at most ", max_bytes, " are read at once"));
  }
  std::string contents(static_cast<size_t>(size), '\0');
  TROUPE_RETURN_IF_ERROR(ReadExactly(*file, path, 0, absl::MakeSpan(contents)));
  return contents;
}

absl::Status ReplaceFile(FileSystem* file_system, const std::string& path,
                         std::string_view contents, const ReplaceOptions& options) {
  const std::string temporary = TemporaryName(path, options.temporary_suffix);
  absl::Status status = WriteAside(file_system, temporary, contents, options.sync);
  if (status.ok()) status = file_system->Rename(temporary, path);
  if (!status.ok()) {
    file_system->Remove(temporary).IgnoreError();
    return status;
  }
  return options.sync ? file_system->SyncDirectory(PathDirectory(path)) : absl::OkStatus();
}

absl::Status CreateDirectoriesSynced(FileSystem* file_system, const std::string& directory,
                                     bool sync) {
  if (file_system->Exists(directory).ok()) return absl::OkStatus();
  std::vector<std::string> parents;  // of the folders that are not there
  std::string missing = directory;
  while (true) {
    const std::string parent = PathDirectory(missing);
    if (parent == missing) break;
    parents.push_back(parent);
    if (file_system->Exists(parent).ok()) break;
    missing = parent;
  }
  TROUPE_RETURN_IF_ERROR(file_system->CreateDirectories(directory));
  if (!sync) return absl::OkStatus();
  for (const std::string& parent : parents) {
    TROUPE_RETURN_IF_ERROR(file_system->SyncDirectory(parent));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> MatchFiles(FileSystem* file_system,
                                                    const std::string& pattern) {
  const std::string_view rest = PathWithoutScheme(pattern);
  const std::string scheme = pattern.substr(0, pattern.size() - rest.size());
  // Folders, or in the end files, that match the pattern up to `at`.
  std::vector<std::string> matches = {scheme};
  size_t at = 0;
  while (at <= rest.size()) {
    size_t end = std::min(rest.find('/', at), rest.size());
    const std::string name(rest.substr(at, end - at));
    const bool last = end == rest.size();
    std::vector<std::string> longer;
    for (const std::string& directory : matches) {
      if (HasWildcard(name)) {
        TROUPE_RETURN_IF_ERROR(MatchIn(file_system, directory, name, &longer));
        continue;
      }
      // The root, which is the empty name before the first slash.
      std::string path = at == 0 ? StrCat(directory, name.empty() ? "/" : name)
                                 : (name.empty() ? directory : JoinPath(directory, name));
      if (!last || file_system->Exists(path).ok()) longer.push_back(std::move(path));
    }
    matches = std::move(longer);
    at = end + 1;
  }
  std::sort(matches.begin(), matches.end());
  return matches;
}

}  // namespace troupe
