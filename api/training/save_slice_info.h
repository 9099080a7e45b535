/// Which part of a partitioned variable a variable holds.
#ifndef TROUPE_API_TRAINING_SAVE_SLICE_INFO_H_
#define TROUPE_API_TRAINING_SAVE_SLICE_INFO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/shape.h"
#include "graph/graph.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class SaveSliceInfoDef;

/// A checkpoint holds a partitioned variable under its full name, as one tensor that was saved in
/// parts: programs with another number of parts can read it. A value.
struct SaveSliceInfo {
  std::string full_name;  ///< Of the whole: "table" for "table/part_1".
  Shape full_shape;
  /// Where the part begins and how much of the whole it is, for each dimension.
  std::vector<int64_t> offset, extent;

  bool operator==(const SaveSliceInfo&) const = default;

  /// InvalidArgument unless the part is inside the whole, and has a name.
  absl::Status Check() const;
  /// As the ops of checkpoints take it: "10 4 5,5:0,4".
  std::string ShapeAndSlice() const;
  static absl::StatusOr<SaveSliceInfo> FromProto(const SaveSliceInfoDef& def);
  void ToProto(SaveSliceInfoDef* def) const;
};

/// What is kept with a variable's node, by attributes that begin with an underscore: they go
/// wherever the graph goes, and mean nothing to programs that do not know them.
inline constexpr char kSliceOfAttr[] = "_slice_of";
inline constexpr char kShapeAndSliceAttr[] = "_shape_and_slice";
/// nullopt: the variable is a whole one.
absl::StatusOr<std::optional<SaveSliceInfo>> SaveSliceInfoOf(const Node& variable);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_SAVE_SLICE_INFO_H_
