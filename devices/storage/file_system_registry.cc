#include "devices/storage/file_system_registry.h"

#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/local_file_system.h"
#include "devices/storage/path.h"

namespace troupe {

FileSystemRegistry::FileSystemRegistry() {
  file_systems_.emplace("", NewLocalFileSystem());
  file_systems_.emplace("file", NewLocalFileSystem());
}

absl::Status FileSystemRegistry::Register(std::string_view scheme,
                                          std::unique_ptr<FileSystem> file_system) {
  const std::string path = StrCat(scheme, "://");
  if (scheme.empty() || PathScheme(path) != scheme) {
    return InvalidArgument("'", scheme,
                           "' is no scheme of paths; expected a letter, then letters,"
                           " digits, '+', '-' and '.'");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!file_systems_.emplace(std::string(scheme), std::move(file_system)).second) {
    return absl::AlreadyExistsError(StrCat("The scheme '", scheme, "' has a file system already"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FileSystem*> FileSystemRegistry::Find(std::string_view path) const {
  const std::string_view scheme = PathScheme(path);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = file_systems_.find(scheme);
  if (found != file_systems_.end()) return found->second.get();
  std::string known;
  for (const auto& [name, file_system] : file_systems_) {
    if (!name.empty()) absl::StrAppend(&known, known.empty() ? "" : ", ", name);
  }
  return absl::UnimplementedError(
      StrCat("File system scheme '", scheme, "' not implemented (file: '", path,
             "'); there are: ", known, ". Load the library that registers it"));
}

FileSystemRegistry& FileSystems() {
  static FileSystemRegistry* const registry = new FileSystemRegistry;  // outlives all users
  return *registry;
}

}  // namespace troupe
