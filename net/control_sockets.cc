#include "net/control_sockets.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <condition_variable>
#include <optional>

#include "net/resolver.h"

namespace troupe {

/// Where answers of the resolver come in. It may outlive the sockets.
struct ControlSockets::Names {
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
};

ControlSockets::ControlSockets()
    : names_(std::make_shared<Names>()), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ControlSockets::~ControlSockets() {
  if (stop_ >= 0) close(stop_);
}

std::vector<std::string> ControlSockets::LookUp(const std::string& host,
                                                Clock::time_point deadline) {
  const auto answer = std::make_shared<std::optional<Hosts>>();
  Resolve(host, [names = names_, answer](const Hosts& hosts) {
    std::lock_guard<std::mutex> lock(names->mutex);
    *answer = hosts;
    names->changed.notify_all();
  });
  std::unique_lock<std::mutex> lock(names_->mutex);
  names_->changed.wait_until(lock, deadline,
                             [&] { return names_->stopped || answer->has_value(); });
  if (names_->stopped || !answer->has_value()) return {};
  return (*answer)->value_or(std::vector<std::string>());
}

int ControlSockets::Connect(const std::string& host, uint16_t port,
                            std::chrono::milliseconds patience) {
  using boost::asio::ip::tcp;
  const auto deadline = Clock::now() + patience;
  for (const std::string& number : LookUp(host, deadline)) {
    boost::system::error_code wrong;
    const tcp::endpoint address(boost::asio::ip::make_address(number, wrong), port);
    if (wrong) continue;
    const int fd =
        socket(address.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    if (connect(fd, address.data(), static_cast<socklen_t>(address.size())) == 0) return fd;
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
