/// Putting the elements that were taken from a queue together to batches.
#ifndef TROUPE_KERNELS_QUEUES_STACK_TUPLES_H_
#define TROUPE_KERNELS_QUEUES_STACK_TUPLES_H_

#include <vector>

#include "kernels/queues/queue.h"

namespace troupe {

/// Output `i` of the kernel becomes component `i` of all tuples, stacked along a new dimension 0.
/// Components of different sizes are padded, with zeros or empty strings, to the largest of the
/// batch; the shapes given say how many dimensions there are, and the sizes if there are no tuples.
absl::Status StackTuples(KernelContext& ctx, const QueueOptions& options,
                         const std::vector<Tuple>& tuples);

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUEUES_STACK_TUPLES_H_
