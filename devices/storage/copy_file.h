/// Copies of files, also from one file system to another.
#ifndef TROUPE_DEVICES_STORAGE_COPY_FILE_H_
#define TROUPE_DEVICES_STORAGE_COPY_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace troupe {

/// Copies a file block by block, aside, syncs it and renames it: `to` is the whole copy, or as it
/// was. Errors are those of the file systems and name the file.
absl::Status CopyFile(const std::string& from, const std::string& to);

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_COPY_FILE_H_
