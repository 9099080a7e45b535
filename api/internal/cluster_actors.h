/// What the parts of the API that know clusters need of each other. Not public.
#ifndef TROUPE_API_INTERNAL_CLUSTER_ACTORS_H_
#define TROUPE_API_INTERNAL_CLUSTER_ACTORS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/runtime.h"
#include "api/internal/master_link.h"
#include "net/links.h"

namespace troupe {

class ActorHost;

/// The actors of a task, which is named so, or of a node, which is told of tasks that know of other
/// members; they hear of the links' frames from now on.
std::shared_ptr<ActorHost> MakeActorHost(
    const std::string& name, uint64_t incarnation, Links* links,
    const std::shared_ptr<Runtime>& runtime, std::chrono::milliseconds heartbeat_timeout,
    const std::function<void(PeerId task)>& members_changed = nullptr);

/// Names and addresses of the members of a cluster, as the task says to which `link` leads.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ListMembers(MasterLink* link,
                                                                             ClusterTime timeout);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_CLUSTER_ACTORS_H_
