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

/// The number that changes nothing when it is joined, a scalar: of extremes the finite number at
/// the other end.
absl::StatusOr<Tensor> SegmentIdentity(SegmentRule rule, ElementType type);

}  // namespace troupe

#endif  // TROUPE_KERNELS_REDUCE_SEGMENT_RULE_H_
