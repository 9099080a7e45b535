#include "kernels/array/data_format.h"

#include <algorithm>
#include <string_view>

#include "devices/status_macros.h"

namespace troupe {
namespace {

absl::Status CheckFormats(const std::string& source, const std::string& target) {
  for (const std::string& format : {source, target}) {
    if (format.size() != 4 && format.size() != 5) {
      return InvalidArgument("a data format has 4 or 5 letters, got '", format, "'");
    }
  }
  std::string letters = source;
  std::sort(letters.begin(), letters.end());
  if (std::adjacent_find(letters.begin(), letters.end()) != letters.end() ||
      !std::is_permutation(source.begin(), source.end(), target.begin(), target.end())) {
    return InvalidArgument("'", source, "' and '", target,
                           "' must have the same letters, each of them once");
  }
  return absl::OkStatus();
}

/// Where the letters of `of` are in `in`.
FormatDims PlacesOf(const std::string& of, const std::string& in) {
  FormatDims places;
  for (const char letter : of) places.push_back(static_cast<int64_t>(in.find(letter)));
  return places;
}

/// The letters of a format that are dimensions of space.
std::string Space(const std::string& format) {
  std::string space;
  for (const char letter : format) {
    if (std::string_view("DHW").find(letter) != std::string_view::npos) space += letter;
  }
  return space;
}

}  // namespace

absl::StatusOr<FormatDims> MapFormatDims(const std::string& source, const std::string& target) {
  TROUPE_RETURN_IF_ERROR(CheckFormats(source, target));
  return PlacesOf(source, target);
}

absl::StatusOr<FormatDims> PermuteFormatRows(const Shape& shape, const std::string& source,
                                             const std::string& target) {
  TROUPE_RETURN_IF_ERROR(CheckFormats(source, target));
  if (shape.rank() < 1 || shape.rank() > 2 || (shape.rank() == 2 && shape.dim(1) != 2)) {
    return InvalidArgument("x must be a vector or a matrix of 2 columns, got shape ",
                           shape.ToString());
  }
  if (shape.dim(0) == static_cast<int64_t>(source.size())) return PlacesOf(target, source);
  const std::string space = Space(source);
  if (shape.dim(0) + 2 != static_cast<int64_t>(source.size()) ||
      shape.dim(0) != static_cast<int64_t>(space.size())) {
    return InvalidArgument(
        "x must have a row for each dimension of the data format, or for each "
        "one of space, got shape ",
        shape.ToString());
  }
  return PlacesOf(Space(target), space);
}

}  // namespace troupe
