/// What becomes of the rows of a segment, for the dense segment ops.
#ifndef TROUPE_KERNELS_REDUCE_SEGMENT_RULE_H_
#define TROUPE_KERNELS_REDUCE_SEGMENT_RULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "devices/tensor.h"
#include "kernels/simd/table.h"

namespace troupe {

enum class SegmentRule : uint8_t { kSum, kMean, kProd, kMin, kMax };

/// out[i] = a[i] joined with b[i], for rows of `type`. Unimplemented for types without an order.
absl::StatusOr<simd::BinaryFn> FindSegmentJoin(SegmentRule rule, ElementType type);

/// Joins each of the `rows` short rows of `length` elements from `in` on with row segment_of[r] of
/// `out`; rows of negative segments are left out.
using JoinShortRowsFn = void (*)(const void* in, const int64_t* segment_of, int64_t rows,
                                 int64_t length, void* out);
/// Joins them all with the one row at `out`.
using FoldShortRowsFn = void (*)(const void* in, int64_t rows, int64_t length, void* out);
struct ShortRowFns {
  JoinShortRowsFn join = nullptr;
  FoldShortRowsFn fold = nullptr;
};
/// Rows of at most so many elements are worth code of their own.
inline constexpr int64_t kShortRow = 8;
/// Of types that `FindSegmentJoin` has.
ShortRowFns FindShortRows(SegmentRule rule, ElementType type);

/// The number that changes nothing when it is joined, a scalar: of extremes the finite number at
/// the other end.
absl::StatusOr<Tensor> SegmentIdentity(SegmentRule rule, ElementType type);

}  // namespace troupe

#endif  // TROUPE_KERNELS_REDUCE_SEGMENT_RULE_H_
