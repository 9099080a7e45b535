// Connecting and waiting for it.
#ifndef TROUPE_TESTS_NET_CONNECT_NOW_H_
#define TROUPE_TESTS_NET_CONNECT_NOW_H_

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "net/transport.h"

namespace troupe {

/// Not from the sink's functions. The attempt has a deadline.
inline absl::StatusOr<std::shared_ptr<Peer>> ConnectNow(Transport& transport,
                                                        const std::string& address,
                                                        const ConnectOptions& options = {}) {
  using Result = absl::StatusOr<std::shared_ptr<Peer>>;
  auto promise = std::make_shared<std::promise<Result>>();
  transport.Connect(address, options,
                    [promise](Result result) { promise->set_value(std::move(result)); });
  return promise->get_future().get();
}

}  // namespace troupe

#endif  // TROUPE_TESTS_NET_CONNECT_NOW_H_
