#include "devices/storage/file_system.h"

#include "devices/status_macros.h"
#include "devices/storage/path.h"

namespace troupe {

bool FileSystem::IsSameFile(const std::string& a, const std::string& b) {
  return RelativePath(a, b) == ".";
}

absl::Status FileSystem::RenameNew(const std::string& from, const std::string& to) {
  const absl::Status exists = Exists(to);
  if (exists.ok()) {
    return absl::AlreadyExistsError(StrCat("Cannot rename ", from, " to ", to, ": it is there"));
  }
  return absl::IsNotFound(exists) ? Rename(from, to) : exists;
}

absl::Status ReadExactly(const RandomAccessFile& file, const std::string& path, uint64_t offset,
                         absl::Span<char> to) {
  TROUPE_ASSIGN_OR_RETURN(const size_t read, file.Read(offset, to));
  if (read == to.size()) return absl::OkStatus();
  return absl::DataLossError(StrCat(path, " ends at byte ", offset + read, "; expected ", to.size(),
                                    " bytes from byte ", offset, " on: the file is truncated"));
}

}  // namespace troupe
