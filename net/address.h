/// Addresses of tasks: `host:port`.
#ifndef TROUPE_NET_ADDRESS_H_
#define TROUPE_NET_ADDRESS_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace troupe {

/// A host (a name, an IPv4 address, or an IPv6 address without its brackets) and a TCP port. A
/// value; thread-compatible.
struct HostPort {
  std::string host;
  int port = 0;

  /// "127.0.0.1:7000", "[::1]:7000".
  std::string ToString() const;
  bool operator==(const HostPort&) const = default;
};

/// Reads `host:port` or `[ipv6]:port`. InvalidArgument quotes the text and says what is wrong.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

/// A number of digits alone, at most `limit` and with no more digits than that has.
std::optional<int> ParseDigits(std::string_view text, int limit);

/// True for "localhost" and the loopback addresses of both families: what is bound there cannot be
/// reached from another machine.
bool IsLoopback(const std::string& host);

/// True for an address of either family, false for a name.
bool IsNumericHost(const std::string& host);

}  // namespace troupe

#endif  // TROUPE_NET_ADDRESS_H_
