/// Parts of tensors, as checkpoints of partitioned variables hold them.
#ifndef TROUPE_DEVICES_STORAGE_TENSOR_SLICE_H_
#define TROUPE_DEVICES_STORAGE_TENSOR_SLICE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/shape.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class TensorSliceProto;

/// A box inside a tensor of some rank: in each dimension a start and a length, or all of it. A
/// value; thread-compatible.
class TensorSlice {
 public:
  static constexpr int64_t kAll = -1;
  struct Extent {
    int64_t start = 0;
    int64_t length = kAll;
    bool operator==(const Extent&) const = default;
  };

  /// All of a tensor of this rank.
  explicit TensorSlice(int rank = 0) : extents_(static_cast<size_t>(rank)) {}
  /// Starts and lengths must not be negative (an invariant of the caller), `kAll` excepted.
  explicit TensorSlice(std::vector<Extent> extents) : extents_(std::move(extents)) {}

  /// TensorFlow's text: "0,2:-" is rows 0 and 1 of a matrix, "" all of a scalar. InvalidArgument
  /// says what is wrong.
  static absl::StatusOr<TensorSlice> Parse(std::string_view text);
  static absl::StatusOr<TensorSlice> FromProto(const TensorSliceProto& proto);
  void ToProto(TensorSliceProto* proto) const;
  std::string ToString() const;

  int rank() const { return static_cast<int>(extents_.size()); }
  const std::vector<Extent>& extents() const { return extents_; }
  /// Every dimension is taken whole.
  bool IsAll() const;
  bool operator==(const TensorSlice&) const = default;

  /// The same box with every length written out. InvalidArgument if it has another rank than
  /// `full`, or is not inside.
  absl::StatusOr<TensorSlice> In(const Shape& full) const;
  /// Lengths as a shape. They must be written out (`In`).
  Shape shape() const;

 private:
  std::vector<Extent> extents_;
};

/// What the ops SaveV2 and RestoreV2 get for a slice of a tensor: "4 5 0,2:-", the shape of the
/// whole tensor and the slice.
struct ShapeAndSlice {
  Shape full;
  TensorSlice slice;  ///< inside `full`
};
absl::StatusOr<ShapeAndSlice> ParseShapeAndSlice(std::string_view text);

/// The key of a slice in tables. Keys of slices begin with a zero byte, so they come before the
/// names of tensors; slices of one tensor are neighbors. TensorFlow's encoding (docs/formats.md).
std::string SliceKey(std::string_view tensor, const TensorSlice& slice);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_TENSOR_SLICE_H_
