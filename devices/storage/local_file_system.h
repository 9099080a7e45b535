/// The machine's own files.
#ifndef TROUPE_DEVICES_STORAGE_LOCAL_FILE_SYSTEM_H_
#define TROUPE_DEVICES_STORAGE_LOCAL_FILE_SYSTEM_H_

#include <memory>

#include "devices/storage/file_system.h"

namespace troupe {

/// POSIX files. Takes paths without a scheme, and `file://`. Appends of less than 64 KiB are
/// gathered in memory; longer ones go to the system as they are.
std::unique_ptr<FileSystem> NewLocalFileSystem();

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_LOCAL_FILE_SYSTEM_H_
