#include "devices/storage/slice_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>
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

/// About a second's work. 10,000 slices can all be compared with each other.
constexpr size_t kMostComparisons = size_t{1} << 26;

bool Overlap(const TensorSlice& a, const TensorSlice& b) {
  for (size_t i = 0; i < a.extents().size(); ++i) {
    const TensorSlice::Extent& x = a.extents()[i];
    const TensorSlice::Extent& y = b.extents()[i];
    if (x.start >= y.start + y.length || y.start >= x.start + x.length) return false;
  }
  return true;
}

/// The dimension in which the slices begin at the most places: the fewest are side by side there.
size_t MostPartitioned(const std::vector<TensorSlice>& slices) {
  size_t dimension = 0, most = 0;
  std::vector<int64_t> starts(slices.size());
  for (size_t d = 0; d < slices[0].extents().size(); ++d) {
    std::transform(slices.begin(), slices.end(), starts.begin(),
                   [d](const TensorSlice& slice) { return slice.extents()[d].start; });
    std::sort(starts.begin(), starts.end());
    const auto different =
        static_cast<size_t>(std::unique(starts.begin(), starts.end()) - starts.begin());
    if (different <= most) continue;
    dimension = d;
    most = different;
  }
  return dimension;
}

}  // namespace

absl::StatusOr<std::optional<std::pair<size_t, size_t>>> FindOverlap(
    const std::vector<TensorSlice>& slices) {
  std::optional<std::pair<size_t, size_t>> found;
  if (slices.size() < 2) return found;
  if (slices[0].rank() == 0) {  // Each is the one element.
    found = {0, 1};
    return found;
  }
  const size_t dimension = MostPartitioned(slices);
  const auto extent = [&](size_t i) { return slices[i].extents()[dimension]; };
  std::vector<size_t> order(slices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    return std::pair(extent(i).start, i) < std::pair(extent(j).start, j);
  });
  std::vector<size_t> open;  // Those that may reach the next one.
  size_t comparisons = 0;
  for (const size_t next : order) {
    comparisons += open.size();
    if (comparisons > kMostComparisons) {
      return absl::ResourceExhaustedError(
          StrCat("its ", slices.size(), " slices are side by side in each dimension, too many to ",
                 "find out whether they overlap"));
    }
    std::erase_if(
        open, [&](size_t i) { return extent(i).start + extent(i).length <= extent(next).start; });
    for (const size_t i : open) {
      if (!Overlap(slices[i], slices[next])) continue;
      found = std::minmax(i, next);
      return found;
    }
    open.push_back(next);
  }
  return found;
}

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
