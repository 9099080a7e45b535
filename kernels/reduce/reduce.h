/// Reducing dimensions of a tensor.
#ifndef TROUPE_KERNELS_REDUCE_REDUCE_H_
#define TROUPE_KERNELS_REDUCE_REDUCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "kernels/reduce/reduce_dims.h"
#include "kernels/reduce/reduce_loops.h"

namespace troupe {

/// Reduces the elements at `in`, of `type` and dimensions `dims`, into the dims.num_kept() elements
/// at `out`, of the same type. The order of additions depends on `dims` only. ResourceExhausted
/// without memory for partial results.
absl::Status Reduce(KernelContext& ctx, const ReduceLoops& loops, ElementType type, const void* in,
                    const ReduceDims& dims, void* out);

/// The same up to the accumulators: dims.num_kept() (at least one) of loops.acc_type, not finished.
absl::Status ReduceAccumulators(KernelContext& ctx, const ReduceLoops& loops, ElementType type,
                                const void* in, const ReduceDims& dims, void* acc);

}  // namespace troupe

#endif  // TROUPE_KERNELS_REDUCE_REDUCE_H_
