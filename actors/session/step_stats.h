/// Traces of a step in TensorFlow's form.
#ifndef TROUPE_ACTORS_SESSION_STEP_STATS_H_
#define TROUPE_ACTORS_SESSION_STEP_STATS_H_

#include <vector>

#include "actors/executor/executor_role.h"

namespace troupe {

class RunMetadata;

/// Adds the nodes' times to `metadata`'s step stats, as the device's. Starts are times of day. What
/// the device's stream took for what the host enqueued is under the device's name and
/// "/stream:all". Traced kernels add devices of their own, those in bodies of functions as well.
void AddStepStats(const Plan& plan, const std::vector<NodeTrace>& trace, RunMetadata* metadata);

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_STEP_STATS_H_
