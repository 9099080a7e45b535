/// Which elements two slices of one tensor have in common, and where they lie in each.
#ifndef TROUPE_DEVICES_STORAGE_SLICE_COPY_H_
#define TROUPE_DEVICES_STORAGE_SLICE_COPY_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/storage/tensor_slice.h"
#include "devices/tensor.h"

namespace troupe {

/// What is in both; nullopt if nothing is. Both have the same rank, and lengths written out
/// (`TensorSlice::In`).
std::optional<TensorSlice> Intersect(const TensorSlice& a, const TensorSlice& b);

/// Two of the slices that have elements in common: their places in the list, the smaller one first;
/// nullopt if there are none. All have elements, and lengths written out. ResourceExhausted: too
/// many would have to be compared, as many thousands of slices that are side by side in each
/// dimension. No program saves such slices.
absl::StatusOr<std::optional<std::pair<size_t, size_t>>> FindOverlap(
    const std::vector<TensorSlice>& slices);

/// Elements that are neighbors in both slices, by their places in row-major order.
struct Run {
  int64_t from = 0;
  int64_t to = 0;
  int64_t length = 0;
};

/// Calls `f` for the elements that `from` and `to` have in common, in the order of `from`, until it
/// returns an error, which is passed on.
absl::Status ForEachRun(const TensorSlice& from, const TensorSlice& to,
                        absl::FunctionRef<absl::Status(const Run& run)> f);

/// Copies what the slices have in common. Both tensors are of one type, plain or strings, and have
/// as many elements as their slices.
void CopyCommon(const Tensor& from, const TensorSlice& from_slice, const TensorSlice& to_slice,
                Tensor* to);

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_SLICE_COPY_H_
