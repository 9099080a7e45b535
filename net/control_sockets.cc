#include "net/control_sockets.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

std::vector<Address> LookUp(const std::string& host, int flags) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  std::vector<Address> result;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return result;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    Address& address = result.emplace_back();
    std::memcpy(&address.bytes, at->ai_addr, at->ai_addrlen);
    address.size = at->ai_addrlen;
  }
  freeaddrinfo(found);
  return result;
}

void SetPort(uint16_t port, Address* address) {
  if (address->bytes.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&address->bytes)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(&address->bytes)->sin6_port = htons(port);
  }
}

}  // namespace

/// Names that are being looked up, each by a thread of its own: the resolver takes its time, and
/// cannot be interrupted.
struct ControlSockets::Names {
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
  std::map<std::string, std::optional<std::vector<Address>>> asked;

  static std::vector<Address> Find(const std::shared_ptr<Names>& names, const std::string& host,
                                   Clock::time_point deadline) {
    std::vector<Address> numbers = LookUp(host == "localhost" ? "127.0.0.1" : host, AI_NUMERICHOST);
    if (!numbers.empty()) return numbers;
    std::unique_lock<std::mutex> lock(names->mutex);
    if (names->stopped) return {};
    // One thread a name, however often it is asked for.
    if (names->asked.emplace(host, std::nullopt).second) {
      std::thread([names, host] {
        std::vector<Address> found = LookUp(host, 0);
        std::lock_guard<std::mutex> lock(names->mutex);
        names->asked[host] = std::move(found);
        names->changed.notify_all();
      }).detach();
    }
    const bool done = names->changed.wait_until(
        lock, deadline, [&] { return names->stopped || names->asked[host].has_value(); });
    if (!done || names->stopped) return {};
    std::vector<Address> found = *std::move(names->asked[host]);
    names->asked.erase(host);
    return found;
  }
};

ControlSockets::ControlSockets()
    : names_(std::make_shared<Names>()), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ControlSockets::~ControlSockets() {
  if (stop_ >= 0) close(stop_);
}

int ControlSockets::Connect(const std::string& host, uint16_t port,
                            std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (Address& address : Names::Find(names_, host, deadline)) {
    SetPort(port, &address);
    const int fd = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    if (connect(fd, reinterpret_cast<sockaddr*>(&address.bytes), address.size) == 0) return fd;
    bool connected = false, stopped = false;
    while (errno == EINPROGRESS || errno == EINTR) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd ready[2] = {{fd, POLLOUT, 0}, {stop_, POLLIN, 0}};
      const int number = poll(ready, 2, std::max(0, static_cast<int>(left.count())));
      if (number < 0) continue;  // A signal.
      int error = 0;
      socklen_t size = sizeof(error);
      stopped = ready[1].revents != 0;
      connected = !stopped && ready[0].revents != 0 &&
                  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
      break;
    }
    if (connected) return fd;
    close(fd);
    if (stopped) break;
  }
  return -1;
}

void ControlSockets::StopConnecting() {
  {
    std::lock_guard<std::mutex> lock(names_->mutex);
    names_->stopped = true;
    names_->changed.notify_all();
  }
  eventfd_write(stop_, 1);  // Never read: it stays.
}

void ControlSockets::Opened(int socket) {
  std::lock_guard<std::mutex> lock(mutex_);
  sockets_[socket] = Clock::now();
  if (severed_) shutdown(socket, SHUT_RDWR);
}

void ControlSockets::Closing(int socket) {
  std::lock_guard<std::mutex> lock(mutex_);
  sockets_.erase(socket);
}

void ControlSockets::Spoke(int socket) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (auto it = sockets_.find(socket); it != sockets_.end()) it->second = Clock::time_point::max();
}

void ControlSockets::EndSilent(std::chrono::milliseconds patience) {
  const auto limit = Clock::now() - patience;
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [socket, since] : sockets_) {
    if (since > limit) continue;
    shutdown(socket, SHUT_RDWR);
    since = Clock::time_point::max();
  }
}

void ControlSockets::Sever() {
  std::lock_guard<std::mutex> lock(mutex_);
  severed_ = true;
  for (const auto& [socket, since] : sockets_) shutdown(socket, SHUT_RDWR);
}

}  // namespace troupe
