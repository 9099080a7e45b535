#include "net/address.h"

#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <charconv>

#include "devices/status_macros.h"

namespace troupe {
namespace {

// The longest name that DNS knows.
constexpr size_t kMaxHost = 253;

bool IsHostName(std::string_view host) {
  if (host.empty() || host.size() > kMaxHost) return false;
  for (char c : host) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' && c != '_') {
      return false;
    }
  }
  return host.front() != '.' && host.front() != '-';
}

/// A name that consists of digits and dots is meant as an IPv4 address and must be one.
bool LooksLikeIpv4(std::string_view host) {
  return host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

std::string HostPort::ToString() const {
  if (host.find(':') != std::string::npos) return StrCat("[", host, "]:", port);
  return StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return InvalidArgument("address \"", text.substr(0, 300), "\": ", why,
                           "; expected HOST:PORT or [IPV6]:PORT");
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("the port is missing");
  HostPort result;
  std::string_view host = text.substr(0, colon);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']') return wrong("the bracket is not closed");
    result.host = std::string(host.substr(1, host.size() - 2));
    if (result.host.find(':') == std::string::npos || !IsNumericHost(result.host)) {
      return wrong("what stands in brackets is no IPv6 address");
    }
  } else {
    if (host.find(':') != std::string_view::npos) {
      return wrong("more than one colon (write IPv6 addresses in brackets)");
    }
    if (!IsHostName(host)) return wrong(host.empty() ? "the host is missing" : "bad host name");
    result.host = std::string(host);
    if (LooksLikeIpv4(host) && !IsNumericHost(result.host)) return wrong("no IPv4 address");
  }
  const std::optional<int> port = ParseDigits(text.substr(colon + 1), 65535);
  if (!port || *port == 0) return wrong("the port is no number from 1 to 65535");
  result.port = *port;
  return result;
}

std::optional<int> ParseDigits(std::string_view text, int limit) {
  const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  int number = 0;
  if (!digits || text.empty() || text.size() > std::to_string(limit).size() ||
      std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc() ||
      number > limit) {
    return std::nullopt;
  }
  return number;
}

bool IsLoopback(const std::string& host) {
  boost::system::error_code error;
  return host == "localhost" || boost::asio::ip::make_address(host, error).is_loopback();
}

bool IsNumericHost(const std::string& host) {
  boost::system::error_code error;
  boost::asio::ip::make_address(host, error);
  return !error;
}

}  // namespace troupe
