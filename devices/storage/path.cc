#include "devices/storage/path.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

constexpr std::string_view kSeparator = "://";

/// Bytes of "scheme://"; 0 without one. A scheme is a letter, then letters, digits, '+', '-', '.'
/// (RFC 3986, section 3.1).
size_t SchemePrefix(std::string_view path) {
  const size_t end = path.find(kSeparator);
  if (end == std::string_view::npos || end == 0 || !absl::ascii_isalpha(path[0])) return 0;
  for (const char c : path.substr(0, end)) {
    if (!absl::ascii_isalnum(c) && c != '+' && c != '-' && c != '.') return 0;
  }
  return end + kSeparator.size();
}

/// The names in a path; "." is left out, ".." takes one back where there is one.
std::vector<absl::string_view> NamesIn(std::string_view path) {
  std::vector<absl::string_view> names;
  for (const absl::string_view name :
       absl::StrSplit(absl::string_view(path.data(), path.size()), '/', absl::SkipEmpty())) {
    if (name == ".") continue;
    if (name == ".." && !names.empty() && names.back() != "..") {
      names.pop_back();
    } else {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace

std::string_view PathScheme(std::string_view path) {
  const size_t prefix = SchemePrefix(path);
  return prefix == 0 ? std::string_view() : path.substr(0, prefix - kSeparator.size());
}

std::string_view PathWithoutScheme(std::string_view path) {
  return path.substr(SchemePrefix(path));
}

std::string PathDirectory(std::string_view path) {
  const size_t prefix = SchemePrefix(path);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  if (slash < prefix) return std::string(path.substr(0, prefix));
  // The root keeps its slash.
  return std::string(path.substr(0, slash == prefix ? slash + 1 : slash));
}

std::string_view PathBase(std::string_view path) {
  const std::string_view rest = PathWithoutScheme(path);
  const size_t slash = rest.rfind('/');
  return slash == std::string_view::npos ? rest : rest.substr(slash + 1);
}

bool IsAbsolutePath(std::string_view path) {
  return path.starts_with('/') || SchemePrefix(path) > 0;
}

std::string JoinPath(std::string_view directory, std::string_view path) {
  if (directory.empty() || IsAbsolutePath(path)) return std::string(path);
  return StrCat(directory, directory.ends_with('/') ? "" : "/", path);
}

std::string RelativePath(std::string_view path, std::string_view directory) {
  if (IsAbsolutePath(path) != IsAbsolutePath(directory) ||
      PathScheme(path) != PathScheme(directory)) {
    return std::string(path);
  }
  const auto to = NamesIn(PathWithoutScheme(path)), from = NamesIn(PathWithoutScheme(directory));
  const auto [to_rest, from_rest] = std::mismatch(to.begin(), to.end(), from.begin(), from.end());
  if (std::find(from_rest, from.end(), "..") != from.end()) return std::string(path);
  std::vector<absl::string_view> names(static_cast<size_t>(from.end() - from_rest), "..");
  names.insert(names.end(), to_rest, to.end());
  return names.empty() ? "." : absl::StrJoin(names, "/");
}

}  // namespace troupe
