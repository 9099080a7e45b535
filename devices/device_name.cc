#include "devices/device_name.h"

#include <cstdint>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

bool ConsumePrefix(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

/// A letter or an underscore, then letters, digits, underscores and, in job names, hyphens; or "*".
bool ConsumeWord(std::string_view* text, bool hyphens, std::optional<std::string>* word) {
  if (ConsumePrefix(text, "*")) {
    word->reset();
    return true;
  }
  if (text->empty() || !(absl::ascii_isalpha(text->front()) || text->front() == '_')) return false;
  size_t n = 1;
  while (n < text->size() &&
         (absl::ascii_isalnum((*text)[n]) || (*text)[n] == '_' || (hyphens && (*text)[n] == '-'))) {
    ++n;
  }
  *word = std::string(text->substr(0, n));
  text->remove_prefix(n);
  return true;
}

bool ConsumeNumber(std::string_view* text, std::optional<int>* number) {
  if (ConsumePrefix(text, "*")) {
    number->reset();
    return true;
  }
  size_t n = 0;
  int64_t value = 0;
  while (n < text->size() && absl::ascii_isdigit((*text)[n])) {
    value = value * 10 + ((*text)[n] - '0');
    if (value > std::numeric_limits<int>::max()) return false;
    ++n;
  }
  if (n == 0) return false;
  text->remove_prefix(n);
  *number = static_cast<int>(value);
  return true;
}

/// `TYPE`, `TYPE:INDEX`, `*`, `*:INDEX`.
bool ConsumeTypeAndIndex(std::string_view* text, DeviceName* name) {
  std::optional<std::string> type;
  if (!ConsumeWord(text, /*hyphens=*/false, &type)) return false;
  if (type) absl::AsciiStrToUpper(&*type);
  name->type = type;
  name->index.reset();
  return !ConsumePrefix(text, ":") || ConsumeNumber(text, &name->index);
}

/// One part without its slash. Later parts of a name win over earlier ones of the same kind.
bool ConsumePart(std::string_view* text, DeviceName* name) {
  if (ConsumePrefix(text, "job:")) return ConsumeWord(text, /*hyphens=*/true, &name->job);
  if (ConsumePrefix(text, "replica:")) return ConsumeNumber(text, &name->replica);
  if (ConsumePrefix(text, "task:")) return ConsumeNumber(text, &name->task);
  if (ConsumePrefix(text, "device:")) return ConsumeTypeAndIndex(text, name);
  for (const char* prefix : {"cpu:", "CPU:", "gpu:", "GPU:"}) {
    if (!ConsumePrefix(text, prefix)) continue;
    name->type = absl::AsciiStrToUpper(absl::string_view(prefix, 3));
    return ConsumeNumber(text, &name->index);
  }
  return false;
}

template <typename T>
std::string Quote(const std::optional<T>& part) {
  return absl::StrCat("'", *part, "'");
}

/// Fails if both give the part and differ.
template <typename T>
absl::Status CheckEqual(const char* what, const std::optional<T>& a, const std::optional<T>& b,
                        const DeviceName& left, const DeviceName& right) {
  if (!a || !b || *a == *b) return absl::OkStatus();
  return InvalidArgument("Cannot merge devices with incompatible ", what, ": ", Quote(a), " and ",
                         Quote(b), " ('", left.ToString(), "' and '", right.ToString(), "')");
}

template <typename T>
void Fill(std::optional<T>* part, const std::optional<T>& other) {
  if (!*part) *part = other;
}

template <typename T>
bool PartMatches(const std::optional<T>& part, const std::optional<T>& pattern) {
  return !pattern || part == pattern;
}

}  // namespace

absl::StatusOr<DeviceName> DeviceName::Parse(std::string_view text) {
  DeviceName name;
  if (text.empty() || text == "/") return name;
  std::string_view rest = text;
  if (rest.front() != '/') {
    // "CPU:0", as short for "/device:CPU:0".
    std::string_view local = rest;
    DeviceName short_name;
    if (ConsumeTypeAndIndex(&local, &short_name) && local.empty() && short_name.type &&
        short_name.index) {
      return short_name;
    }
  }
  bool first = true;
  while (!rest.empty()) {
    const std::string_view part = rest;
    if ((!ConsumePrefix(&rest, "/") && !first) || !ConsumePart(&rest, &name)) {
      return InvalidArgument(
          "Malformed device name '", text.substr(0, 200), "' at '", part.substr(0, 60),
          "'; expected /job:NAME, /replica:N, /task:N, /device:TYPE:N, /cpu:N or /gpu:N, each at "
          "will, '*' for unspecified");
    }
    first = false;
  }
  return name;
}

std::string DeviceName::ToString() const {
  std::string text;
  if (job) absl::StrAppend(&text, "/job:", *job);
  if (replica) absl::StrAppend(&text, "/replica:", *replica);
  if (task) absl::StrAppend(&text, "/task:", *task);
  if (type || index) {
    absl::StrAppend(&text, "/device:", type ? *type : "*");
    absl::StrAppend(&text, ":", index ? absl::StrCat(*index) : "*");
  }
  return text;
}

bool DeviceName::Matches(const DeviceName& pattern) const {
  return PartMatches(job, pattern.job) && PartMatches(replica, pattern.replica) &&
         PartMatches(task, pattern.task) && PartMatches(type, pattern.type) &&
         PartMatches(index, pattern.index);
}

absl::Status DeviceName::MergeFrom(const DeviceName& other, bool soft) {
  TROUPE_RETURN_IF_ERROR(CheckEqual("jobs", job, other.job, *this, other));
  TROUPE_RETURN_IF_ERROR(CheckEqual("replicas", replica, other.replica, *this, other));
  TROUPE_RETURN_IF_ERROR(CheckEqual("tasks", task, other.task, *this, other));
  const absl::Status types = CheckEqual("types", type, other.type, *this, other);
  const absl::Status indices = CheckEqual("ids", index, other.index, *this, other);
  if (!soft) {
    TROUPE_RETURN_IF_ERROR(types);
    TROUPE_RETURN_IF_ERROR(indices);
  }
  Fill(&job, other.job);
  Fill(&replica, other.replica);
  Fill(&task, other.task);
  if (!types.ok()) {
    // An index means nothing without its type.
    type.reset();
    index.reset();
  } else if (!indices.ok()) {
    Fill(&type, other.type);
    index.reset();
  } else {
    Fill(&type, other.type);
    Fill(&index, other.index);
  }
  return absl::OkStatus();
}

DeviceName DeviceName::Override(const DeviceName& outer, const DeviceName& inner) {
  DeviceName name = inner;
  Fill(&name.job, outer.job);
  Fill(&name.replica, outer.replica);
  Fill(&name.task, outer.task);
  Fill(&name.type, outer.type);
  Fill(&name.index, outer.index);
  return name;
}

}  // namespace troupe
