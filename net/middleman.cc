#include "net/middleman.h"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/openssl/session.hpp>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

namespace troupe {

namespace {

namespace network = caf::io::network;
using caf::openssl::session_ptr;
using network::native_socket;

/// Reads and writes of a TLS session. OpenSSL keeps errors per thread, and takes one that another
/// connection has left behind for this one's: the slate is to be clean before each call.
class TlsPolicy {
 public:
  explicit TlsPolicy(session_ptr session) : session_(std::move(session)) {}

  network::rw_state read_some(size_t& result, native_socket fd, void* bytes, size_t size) {
    ERR_clear_error();
    return session_->read_some(result, fd, bytes, size);
  }
  network::rw_state write_some(size_t& result, native_socket fd, const void* bytes, size_t size) {
    ERR_clear_error();
    return session_->write_some(result, fd, bytes, size);
  }
  bool must_read_more(native_socket fd, size_t threshold) {
    return session_->must_read_more(fd, threshold);
  }

 private:
  session_ptr session_;
};

/// A connection under TLS.
class TlsScribe final : public caf::io::scribe {
 public:
  TlsScribe(network::default_multiplexer& backend, native_socket fd, session_ptr session)
      : scribe(network::conn_hdl_from_socket(fd)), stream_(backend, fd, std::move(session)) {}

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (launched_) return;
    launched_ = true;
    stream_.start(this);
    // The handshake may have something to write before there is anything to read.
    stream_.force_empty_write(this);
  }
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  void flush() override { stream_.flush(this); }
  std::string addr() const override {
    auto address = network::remote_addr_of_fd(stream_.fd());
    return address ? *address : std::string();
  }
  uint16_t port() const override {
    auto port = network::remote_port_of_fd(stream_.fd());
    return port ? *port : 0;
  }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

 private:
  network::stream_impl<TlsPolicy> stream_;
  bool launched_ = false;
};

/// A port where connections under TLS are accepted.
class TlsDoorman final : public network::doorman_impl {
 public:
  TlsDoorman(network::default_multiplexer& backend, native_socket fd) : doorman_impl(backend, fd) {}

  bool new_connection() override {
    if (detached()) return false;
    network::default_multiplexer& backend = acceptor_.backend();
    const native_socket fd = acceptor_.accepted_socket();
    ERR_clear_error();
    session_ptr session = caf::openssl::make_session(parent()->system(), fd, true);
    if (session == nullptr) {
      network::close_socket(fd);
      return true;  // The door stays open for others.
    }
    auto scribe = caf::make_counted<TlsScribe>(backend, fd, std::move(session));
    const caf::io::connection_handle handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&backend, handle);
  }
};

/// A connected socket, or -1: nobody answered in time.
native_socket ConnectWithin(const std::string& host, uint16_t port,
                            std::chrono::milliseconds patience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return -1;
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd =
        socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) continue;
    bool connected = connect(fd, at->ai_addr, at->ai_addrlen) == 0;
    if (!connected && errno == EINPROGRESS) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      pollfd ready{fd, POLLOUT, 0};
      int error = 0;
      socklen_t size = sizeof(error);
      connected = left.count() > 0 && poll(&ready, 1, static_cast<int>(left.count())) == 1 &&
                  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    }
    if (connected) return fd;
    close(fd);
  }
  return -1;
}

class Middleman final : public caf::io::middleman_actor_impl {
 public:
  Middleman(caf::actor_config& config, caf::actor broker, bool tls,
            std::chrono::milliseconds connect_timeout)
      : middleman_actor_impl(config, std::move(broker)),
        tls_(tls),
        connect_timeout_(connect_timeout) {}

 protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& host, uint16_t port) override {
    const native_socket fd = ConnectWithin(host, port, connect_timeout_);
    if (fd < 0) return caf::sec::cannot_connect_to_node;
    network::default_multiplexer& backend = Backend();
    if (!tls_) return backend.new_scribe(fd);
    ERR_clear_error();
    session_ptr session = caf::openssl::make_session(system(), fd, false);
    if (session == nullptr) {
      close(fd);
      return caf::sec::cannot_connect_to_node;
    }
    return caf::make_counted<TlsScribe>(backend, fd, std::move(session));
  }

  caf::expected<caf::io::doorman_ptr> open(uint16_t port, const char* address,
                                           bool reuse) override {
    if (!tls_) return middleman_actor_impl::open(port, address, reuse);
    auto fd = network::new_tcp_acceptor_impl(port, address, reuse);
    if (!fd) return fd.error();
    return caf::make_counted<TlsDoorman>(Backend(), *fd);
  }

 private:
  network::default_multiplexer& Backend() {
    return static_cast<network::default_multiplexer&>(system().middleman().backend());
  }

  const bool tls_;
  const std::chrono::milliseconds connect_timeout_;
};

}  // namespace

caf::io::middleman_actor SpawnMiddleman(caf::actor_system& system, bool tls,
                                        std::chrono::milliseconds connect_timeout) {
  caf::actor broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  // On a thread of its own: it waits for hosts to answer.
  return system.spawn<Middleman, caf::detached + caf::hidden>(std::move(broker), tls,
                                                              connect_timeout);
}

}  // namespace troupe
