// A cluster for demonstrations: starts a process per task on this machine, and starts those again
// that are killed.

#ifndef TROUPE_EXAMPLES_SHARED_LOCAL_CLUSTER_H_
#define TROUPE_EXAMPLES_SHARED_LOCAL_CLUSTER_H_

#include <cstddef>
#include <string>
#include <vector>

namespace local_cluster {

/// Ports of the loopback address that nobody uses at the moment.
std::vector<int> FreePorts(size_t count);

struct Job {
  std::string name;
  int tasks = 0;
};

/// Runs this program once for each task of `jobs`, each with `arguments`, `--cluster FILE --job J
/// --task N`, and, in its first life, `first_life` if it is task `dying` of the job "worker".
/// Starts processes that were killed again. Returns the exit status of the whole when all tasks of
/// the job "worker" have ended, or one has failed.
int Run(const std::vector<Job>& jobs, const std::vector<std::string>& arguments, int dying = -1,
        const std::vector<std::string>& first_life = {});

}  // namespace local_cluster

#endif  // TROUPE_EXAMPLES_SHARED_LOCAL_CLUSTER_H_
