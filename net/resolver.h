/// Looking up the addresses of hosts.
#ifndef TROUPE_NET_RESOLVER_H_
#define TROUPE_NET_RESOLVER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe {

/// Numeric addresses; Unavailable.
using Hosts = absl::StatusOr<std::vector<std::string>>;

/// Calls `done` once: at once for what needs no name service, else on a thread of the resolver. The
/// name service cannot be interrupted and nobody waits for it at an end: the process has a few
/// threads that ask it, which live as long as the process. Thread-safe.
void Resolve(const std::string& host, std::function<void(const Hosts& hosts)> done);

/// Waits for the name service.
Hosts ResolveNow(const std::string& host);

}  // namespace troupe

#endif  // TROUPE_NET_RESOLVER_H_
