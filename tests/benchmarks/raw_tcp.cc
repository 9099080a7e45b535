// A raw TCP stream between two processes on loopback, for scripts/bench-peers: blocks of BYTES, one
// behind the other without an answer, from one buffer into another that are used again and again.
//
//   raw_tcp BYTES
//
// Each line of the standard input, "seconds S", is answered by one line of JSON. Only the mean
// time of a block tells anything: the kernel takes what fits into its buffers at once.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/program/child_process.h"
#include "tests/benchmarks/cluster_player.h"

namespace {

using cluster_player::Fail;

bool ReadAll(int fd, char* to, size_t size) {
  while (size > 0) {
    const ssize_t n = recv(fd, to, size, 0);
    if (n <= 0) return false;
    to += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int fd, const char* from, size_t size) {
  while (size > 0) {
    const ssize_t n = send(fd, from, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    from += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

class Stream : public cluster_player::Player {
 public:
  explicit Stream(size_t size) : buffer_(size, 'x') {}

  void Serve() override {}
  void Open() override {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      Fail("raw_tcp: cannot listen");
    }
    auto answerer = troupe::ChildProcess::Fork(
        [&] {
          const int fd = accept(listener, nullptr, nullptr);
          while (ReadAll(fd, buffer_.data(), buffer_.size())) {
          }
          return 0;
        },
        {});
    if (!answerer.ok()) Fail("raw_tcp: " + answerer.status().ToString());
    answerer_.emplace(*std::move(answerer));
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), length) != 0) {
      Fail("raw_tcp: cannot connect");
    }
    close(listener);
  }
  void Step() override {
    if (!WriteAll(fd_, buffer_.data(), buffer_.size())) Fail("raw_tcp: the stream broke");
  }
  void ChiefStep() override {}
  void SmallCall() override {}
  void Stop() override {
    close(fd_);
    answerer_->Wait();
  }

 private:
  std::vector<char> buffer_;
  std::optional<troupe::ChildProcess> answerer_;
  int fd_ = -1;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) Fail("usage: raw_tcp BYTES");
  Stream stream(std::stoul(argv[1]));
  cluster_player::Play(&stream, {});
}
