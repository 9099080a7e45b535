/// A plain socket that says to a task whatever a test wants.
#ifndef TROUPE_TESTS_NET_RAW_SOCKET_H_
#define TROUPE_TESTS_NET_RAW_SOCKET_H_

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "net/handshake.h"

namespace troupe {

class RawSocket {
 public:
  explicit RawSocket(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    const timeval timeout = {10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  ~RawSocket() { Close(); }
  bool connected() const { return connected_; }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  /// What comes, up to `size` bytes or the end.
  std::string Read(size_t size) {
    std::string bytes(size, '\0');
    size_t have = 0;
    while (have < size) {
      const ssize_t n = ::recv(fd_, bytes.data() + have, size - have, 0);
      if (n <= 0) break;
      have += static_cast<size_t>(n);
    }
    bytes.resize(have);
    return bytes;
  }
  /// Plays one side of a handshake until it is over.
  bool Play(Handshake* role) {
    while (true) {
      if (!Write(role->TakeOutput())) return false;
      if (role->open()) return true;
      if (!role->status().ok()) return false;
      const std::string bytes = Read(role->wanted());
      if (bytes.empty()) return false;
      role->Consume(bytes);
    }
  }

 private:
  int fd_;
  bool connected_ = false;
};

/// The two streams of a connection, over which a test says whatever it wants.
struct RawPeer {
  RawPeer(int port, const Identity& self) : lanes{RawSocket(port), RawSocket(port)} {
    const auto play = [&](int lane) {
      Handshake role =
          Handshake::Connecting(self, {self.incarnation, lane, 32 << 20, 1 << 30}, "", 0);
      return lanes[lane].Play(&role);
    };
    bool other = false;
    std::thread thread([&] { other = play(1); });  // Both are welcomed at once.
    connected = play(0);
    thread.join();
    connected = connected && other;
  }
  RawSocket lanes[2];
  bool connected = false;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_NET_RAW_SOCKET_H_
