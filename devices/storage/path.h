/// Paths, with and without a scheme: "/a/b", "a/b", "s3://bucket/a/b". Thread-safe.
#ifndef TROUPE_DEVICES_STORAGE_PATH_H_
#define TROUPE_DEVICES_STORAGE_PATH_H_

#include <string>
#include <string_view>

#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// "s3" of "s3://bucket/a"; empty without a scheme.
std::string_view PathScheme(std::string_view path);
/// "/a" of "file:///a"; "bucket/a" of "s3://bucket/a".
std::string_view PathWithoutScheme(std::string_view path);

/// What is before the last slash, scheme included; "." if there is none, "/" of "/a", "s3://" of
/// "s3://bucket".
std::string PathDirectory(std::string_view path);
/// What is after the last slash.
std::string_view PathBase(std::string_view path);

/// It begins with a slash or a scheme.
bool IsAbsolutePath(std::string_view path);
/// `path` in the folder `directory`; `path` as it is if it is absolute or the folder is empty.
std::string JoinPath(std::string_view directory, std::string_view path);
/// `path` as it is seen from the folder `directory`: "../b/c" for "x/b/c" and "x/a". The file
/// system is not looked at. `path` as it is where that cannot be told: one of the two is absolute,
/// or they have different schemes, or `directory` leads up further than is known.
std::string RelativePath(std::string_view path, std::string_view directory);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_PATH_H_
