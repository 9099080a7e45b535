/// Shapes of tensors: fully known (`Shape`) and partly known (`PartialShape`).
///
/// Values; copying a shape of rank up to 4 allocates nothing. Thread-compatible.
#ifndef TROUPE_DEVICES_SHAPE_H_
#define TROUPE_DEVICES_SHAPE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class TensorShapeProto;

/// The sizes of a tensor's dimensions, all known and none negative; their product fits 63 bits.
class Shape {
 public:
  static constexpr int kMaxRank = 254;

  /// The shape of a scalar.
  Shape() = default;
  /// For sizes that are known to be right (the runtime's own). From outside use `Create`.
  Shape(std::initializer_list<int64_t> dims)
      : Shape(absl::MakeConstSpan(dims.begin(), dims.size())) {}
  explicit Shape(absl::Span<const int64_t> dims);
  Shape(const Shape& other) { CopyFrom(other); }
  Shape(Shape&& other) noexcept { MoveFrom(other); }
  Shape& operator=(const Shape& other) {
    // A shape that lets go of its sizes first would be left with neither if there is no memory.
    if (this != &other) *this = Shape(other);
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    if (this != &other) {
      Free();
      MoveFrom(other);
    }
    return *this;
  }
  ~Shape() { Free(); }

  /// Checks rank, signs and overflow. InvalidArgument says which dimension is wrong.
  static absl::StatusOr<Shape> Create(absl::Span<const int64_t> dims);
  static absl::StatusOr<Shape> FromProto(const TensorShapeProto& proto);
  void ToProto(TensorShapeProto* proto) const;

  int rank() const { return rank_; }
  int64_t dim(int i) const { return data()[i]; }
  absl::Span<const int64_t> dims() const { return {data(), rank_}; }
  int64_t num_elements() const { return num_elements_; }

  /// Changes one size; the product must not overflow (an invariant of the caller).
  void set_dim(int i, int64_t size);
  /// Appends a dimension.
  void AddDim(int64_t size);
  /// Inserts a dimension before dimension `at`.
  void InsertDim(int at, int64_t size);
  void RemoveDim(int at);

  bool operator==(const Shape& other) const {
    return rank_ == other.rank_ && num_elements_ == other.num_elements_ &&
           std::equal(data(), data() + rank_, other.data());
  }

  /// "[2,3]"; "[]" for a scalar.
  std::string ToString() const;

 private:
  static constexpr uint8_t kInline = 4;
  const int64_t* data() const { return rank_ <= kInline ? inline_ : heap_; }
  int64_t* data() { return rank_ <= kInline ? inline_ : heap_; }
  void Free() {
    if (rank_ > kInline) delete[] heap_;
  }
  void CopyFrom(const Shape& other) {
    rank_ = other.rank_;
    num_elements_ = other.num_elements_;
    if (rank_ <= kInline) {
      std::memcpy(inline_, other.inline_, sizeof(inline_));
    } else {
      heap_ = new int64_t[rank_];
      std::memcpy(heap_, other.heap_, rank_ * sizeof(int64_t));
    }
  }
  void MoveFrom(Shape& other) {
    rank_ = other.rank_;
    num_elements_ = other.num_elements_;
    std::memcpy(inline_, other.inline_, sizeof(inline_));
    other.rank_ = 0;
    other.num_elements_ = 1;
  }

  int64_t num_elements_ = 1;
  union {
    int64_t inline_[kInline] = {};
    int64_t* heap_;
  };
  uint8_t rank_ = 0;
};

/// A shape of which the rank, or some sizes, may be unknown (-1).
class PartialShape {
 public:
  static constexpr int64_t kUnknown = -1;

  /// Nothing known, not even the rank.
  PartialShape() = default;
  PartialShape(std::initializer_list<int64_t> dims) : known_rank_(true), dims_(dims) {}
  explicit PartialShape(absl::Span<const int64_t> dims)
      : known_rank_(true), dims_(dims.begin(), dims.end()) {}
  PartialShape(const Shape& shape) : PartialShape(shape.dims()) {}  // NOLINT: a Shape is one

  static absl::StatusOr<PartialShape> Create(absl::Span<const int64_t> dims);
  static absl::StatusOr<PartialShape> FromProto(const TensorShapeProto& proto);
  void ToProto(TensorShapeProto* proto) const;

  bool unknown_rank() const { return !known_rank_; }
  /// -1 if unknown.
  int rank() const { return known_rank_ ? static_cast<int>(dims_.size()) : -1; }
  /// -1 if unknown. The rank must be known.
  int64_t dim(int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  bool fully_known() const;
  /// InvalidArgument unless fully known.
  absl::StatusOr<Shape> ToShape() const;

  /// True if some full shape fits both.
  bool IsCompatibleWith(const PartialShape& other) const;
  bool IsCompatibleWith(const Shape& other) const;
  /// What is known by either; InvalidArgument with both shapes if they contradict each other.
  absl::StatusOr<PartialShape> MergeWith(const PartialShape& other) const;
  PartialShape Concatenate(const PartialShape& other) const;

  bool operator==(const PartialShape& other) const = default;

  /// "<unknown>", "[?,3]".
  std::string ToString() const;

 private:
  bool known_rank_ = false;
  std::vector<int64_t> dims_;
};

/// a * b, or -1 if the product is negative or overflows 63 bits (a, b >= 0).
int64_t MultiplyWithoutOverflow(int64_t a, int64_t b);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_SHAPE_H_
