#include "devices/storage/slice_copy.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "devices/status_macros.h"

namespace troupe {
namespace {

/// The place of an element, given by its index in the whole tensor, inside a slice.
int64_t PlaceIn(const TensorSlice& slice, const std::vector<int64_t>& index) {
  int64_t place = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    const TensorSlice::Extent& extent = slice.extents()[i];
    place = place * extent.length + index[i] - extent.start;
  }
  return place;
}

}  // namespace

std::optional<TensorSlice> Intersect(const TensorSlice& a, const TensorSlice& b) {
  std::vector<TensorSlice::Extent> common;
  for (size_t i = 0; i < a.extents().size(); ++i) {
    const TensorSlice::Extent& x = a.extents()[i];
    const TensorSlice::Extent& y = b.extents()[i];
    const int64_t start = std::max(x.start, y.start);
    const int64_t end = std::min(x.start + x.length, y.start + y.length);
    if (start >= end) return std::nullopt;
    common.push_back({start, end - start});
  }
  return TensorSlice(std::move(common));
}

absl::Status ForEachRun(const TensorSlice& from, const TensorSlice& to,
                        absl::FunctionRef<absl::Status(const Run& run)> f) {
  const std::optional<TensorSlice> common = Intersect(from, to);
  if (!common) return absl::OkStatus();
  const std::vector<TensorSlice::Extent>& extents = common->extents();
  // A run goes over the dimensions from `inner` on: those after it are whole in both slices.
  size_t inner = extents.size();
  int64_t length = 1;
  while (inner > 0) {
    --inner;
    length *= extents[inner].length;
    if (extents[inner] != from.extents()[inner] || extents[inner] != to.extents()[inner]) break;
  }
  std::vector<int64_t> index;
  for (const TensorSlice::Extent& extent : extents) index.push_back(extent.start);
  while (true) {
    TROUPE_RETURN_IF_ERROR(f({PlaceIn(from, index), PlaceIn(to, index), length}));
    size_t axis = inner;
    while (axis > 0) {
      --axis;
      if (++index[axis] < extents[axis].start + extents[axis].length) break;
      index[axis] = extents[axis].start;
      if (axis == 0) return absl::OkStatus();
    }
    if (inner == 0) return absl::OkStatus();
  }
}

void CopyCommon(const Tensor& from, const TensorSlice& from_slice, const TensorSlice& to_slice,
                Tensor* to) {
  const auto copy = [&](const Run& run) {
    if (from.type() == ElementType::kString) {
      std::copy_n(from.unchecked_data<std::string>() + run.from, run.length,
                  to->mutable_data<std::string>() + run.to);
    } else {
      const size_t size = ElementSize(from.type());
      std::memcpy(static_cast<char*>(to->mutable_raw_data()) + static_cast<size_t>(run.to) * size,
                  static_cast<const char*>(from.raw_data()) + static_cast<size_t>(run.from) * size,
                  static_cast<size_t>(run.length) * size);
    }
    return absl::OkStatus();
  };
  ForEachRun(from_slice, to_slice, copy).IgnoreError();  // `copy` returns none
}

}  // namespace troupe
