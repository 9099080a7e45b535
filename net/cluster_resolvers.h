/// Clusters that other programs start: which tasks there are, and which one this process is, from
/// the environment that they give it. `ParseTfConfig` (cluster_spec.h) is one more.
#ifndef TROUPE_NET_CLUSTER_RESOLVERS_H_
#define TROUPE_NET_CLUSTER_RESOLVERS_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "devices/export.h"
#include "net/cluster_spec.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// The value of a variable; nullptr: it is not set. `std::getenv`, but for tests.
using Environment = std::function<const char*(const char* name)>;

/// Jobs with their numbers of tasks, in the order in which processes are given to them.
using JobSizes = std::vector<std::pair<std::string, int>>;

/// Reads "ps=1,worker=4". InvalidArgument.
absl::StatusOr<JobSizes> ParseJobSizes(std::string_view text);

/// A step of Slurm (`srun`), of which each process is a task: the first ones belong to the first
/// job, and so on. Reads SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE (those of the job if they
/// are not set), SLURM_PROCID and SLURM_DISTRIBUTION (block or cyclic). A process listens at its
/// node's name, at `port` and what SLURM_LOCALID counts. FailedPrecondition: this is no step;
/// InvalidArgument: a variable cannot be read, or there are more or fewer processes than tasks.
absl::StatusOr<TfConfig> ResolveSlurm(const JobSizes& jobs, int port,
                                      const Environment& environment);

/// Kubernetes: each job is a StatefulSet, whose headless Service has the same name: JOB, or a
/// prefix that all have in common and JOB. Reads HOSTNAME, the name of the pod (`training-worker-2`
/// is task 2 of job `worker`), and TROUPE_DOMAIN, which goes behind the Service's name if it is set
/// (`default.svc.cluster.local`). Pods find one another at POD.SERVICE and `port`. Errors as above.
absl::StatusOr<TfConfig> ResolveKubernetes(const JobSizes& jobs, int port,
                                           const Environment& environment);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_NET_CLUSTER_RESOLVERS_H_
