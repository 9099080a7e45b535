#include "devices/storage/copy_file.h"

#include <memory>

#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

absl::Status CopyAside(const RandomAccessFile& from, FileSystem* files, const std::string& aside) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files->Create(aside));
  std::string block(kBlockBytes, '\0');
  for (uint64_t offset = 0;;) {
    TROUPE_ASSIGN_OR_RETURN(const size_t read, from.Read(offset, absl::MakeSpan(block)));
    TROUPE_RETURN_IF_ERROR(file->Append(std::string_view(block).substr(0, read)));
    if (read < kBlockBytes) break;
    offset += read;
  }
  TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

absl::Status CopyFile(const std::string& from, const std::string& to) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const source, FileSystems().Find(from));
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                          source->OpenForReading(from));
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(to));
  const std::string aside = TemporaryName(to, "");
  absl::Status status = CopyAside(*file, files, aside);
  if (status.ok()) status = files->Rename(aside, to);
  if (!status.ok()) {
    files->Remove(aside).IgnoreError();
    return status;
  }
  return files->SyncDirectory(PathDirectory(to));
}

}  // namespace troupe
