/// How CAF's nodes are joined: connections that are made within a deadline and ended without one,
/// and TLS.
#ifndef TROUPE_NET_MIDDLEMAN_H_
#define TROUPE_NET_MIDDLEMAN_H_

#include <caf/actor_system.hpp>
#include <caf/io/middleman_actor.hpp>
#include <chrono>
#include <memory>

#include "net/control_sockets.h"
#include "net/tls.h"

namespace troupe {

/// A middleman in place of CAF's own two (0.17), which wait as long as the kernel does for a host
/// that does not answer (two minutes; others wait behind it), and under TLS close connections that
/// nothing is wrong with when another one has ended, and keep a core busy as long as a handshake is
/// not answered. The system must have loaded the module `caf::io::middleman`.
///
/// `tls` may be null: plain TCP. Before the system ends, the middleman is to be sent
/// `exit_reason::kill` (it ignores all others, and does not end by itself as long as it is waiting
/// for a peer), and `sockets` to stop connecting. The system's end waits for what is still to be
/// written, until `sockets` is severed. Only shells include CAF, and this header.
caf::io::middleman_actor SpawnMiddleman(caf::actor_system& system,
                                        std::shared_ptr<ControlSockets> sockets,
                                        std::shared_ptr<const TlsContext> tls,
                                        std::chrono::milliseconds connect_timeout);

}  // namespace troupe

#endif  // TROUPE_NET_MIDDLEMAN_H_
