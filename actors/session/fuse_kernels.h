/// Element-wise kernels that are computed together.
#ifndef TROUPE_ACTORS_SESSION_FUSE_KERNELS_H_
#define TROUPE_ACTORS_SESSION_FUSE_KERNELS_H_

#include "actors/executor/plan.h"

namespace troupe {

/// Has one kernel compute what several fusible ones (`FusibleKernel`) that take each other's values
/// would: those in between do not go through memory, and there are fewer launches. What others take
/// of them remains an output. Nodes are fused only if they run in the same iterations of the same
/// loop, under the same conditions, and after the same receives and asynchronous kernels, so that a
/// fused node waits for nothing that may wait for one of its nodes. A producer stands before its
/// consumers but for the back edges of loops, here and afterwards.
void FuseKernels(PlanSpec* spec);

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_FUSE_KERNELS_H_
