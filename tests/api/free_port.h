/// A port for tests.
#ifndef TROUPE_TESTS_API_FREE_PORT_H_
#define TROUPE_TESTS_API_FREE_PORT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

namespace troupe {

/// A port of the loopback address that nobody uses at the moment; another one each time. Not
/// thread-safe.
inline int FreePort() {
  static std::set<int> given;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const int port = ntohs(address.sin_port);
  const bool is_new = given.insert(port).second;
  const int other = is_new ? port : FreePort();  // While this one is in use.
  close(fd);
  return other;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_API_FREE_PORT_H_
