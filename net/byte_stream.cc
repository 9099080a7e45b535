#include "net/byte_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "devices/status_macros.h"

namespace troupe {
namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}

  IoResult Handshake() override { return {}; }
  absl::Status CheckPeer(const std::string&) const override { return absl::OkStatus(); }

  IoResult Read(const iovec* buffers, int count) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(buffers);
    message.msg_iovlen = static_cast<size_t>(count);
    while (true) {
      const ssize_t n = ::recvmsg(socket_, &message, MSG_DONTWAIT);
      if (n > 0) return {IoResult::State::kDone, static_cast<size_t>(n), {}};
      if (n == 0) return {IoResult::State::kEnd, 0, {}};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoResult::State::kWantRead, 0, {}};
      return Failed();
    }
  }

  IoResult Write(const iovec* buffers, int count) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(buffers);
    message.msg_iovlen = static_cast<size_t>(count);
    while (true) {
      const ssize_t n = ::sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n >= 0) return {IoResult::State::kDone, static_cast<size_t>(n), {}};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoResult::State::kWantWrite, 0, {}};
      return Failed();
    }
  }

  bool short_read_is_last() const override { return true; }

  void CloseWrite() override { ::shutdown(socket_, SHUT_WR); }

 private:
  static IoResult Failed() {
    char text[128];
    return {IoResult::State::kFailed, 0,
            absl::UnavailableError(strerror_r(errno, text, sizeof(text)))};
  }

  int socket_;
};

}  // namespace

std::unique_ptr<ByteStream> MakePlainStream(int socket) {
  return std::make_unique<PlainStream>(socket);
}

}  // namespace troupe
