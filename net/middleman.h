/// How CAF's nodes are joined: connections that are made within a deadline, and TLS.
#ifndef TROUPE_NET_MIDDLEMAN_H_
#define TROUPE_NET_MIDDLEMAN_H_

#include <caf/actor_system.hpp>
#include <caf/io/middleman_actor.hpp>
#include <chrono>

namespace troupe {

/// A middleman in place of CAF's own two (0.17), which wait as long as the kernel does for a host
/// that does not answer (two minutes; others wait behind it), and under TLS close connections that
/// nothing is wrong with when another one has ended. The system must have loaded the modules
/// `caf::io::middleman` and, for TLS, `caf::openssl::manager`. To be sent an exit before the system
/// ends. Only shells include CAF, and this header.
caf::io::middleman_actor SpawnMiddleman(caf::actor_system& system, bool tls,
                                        std::chrono::milliseconds connect_timeout);

}  // namespace troupe

#endif  // TROUPE_NET_MIDDLEMAN_H_
