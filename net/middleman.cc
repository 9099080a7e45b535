#include "net/middleman.h"

#include <sys/uio.h>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "net/byte_stream.h"

namespace troupe {

namespace {

namespace network = caf::io::network;
using network::native_socket;
using network::rw_state;

/// How the sockets of one middleman are used.
struct Wiring {
  std::unique_ptr<ByteStream> Stream(native_socket fd, const std::string& host) const {
    return tls != nullptr ? tls->MakeStream(fd, host) : MakePlainStream(fd);
  }
  std::shared_ptr<ControlSockets> sockets;
  std::shared_ptr<const TlsContext> tls;
};

/// A connection. Until the handshake is done, what is written is held back: CAF would try again and
/// again to write it.
class Scribe final : public caf::io::scribe {
 public:
  /// `host` is empty on the side that accepts.
  Scribe(network::default_multiplexer& backend, native_socket fd, const std::string& host,
         const Wiring& wiring)
      : scribe(network::conn_hdl_from_socket(fd)),
        sockets_(wiring.sockets),
        bytes_(wiring.Stream(fd, host)),
        open_(wiring.tls == nullptr),
        stream_(backend, fd, this) {
    sockets_->Opened(fd);
  }
  ~Scribe() override { sockets_->Closing(stream_.fd()); }

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (launched_) return;
    launched_ = true;
    stream_.start(this);
    // The handshake may have something to write before there is anything to read.
    if (!open_) stream_.force_empty_write(this);
  }
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return open_ ? stream_.wr_buf() : held_; }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  void flush() override {
    if (open_) stream_.flush(this);
  }
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
  /// What CAF's stream asks for; it is the scribe that does it.
  struct Policy {
    explicit Policy(Scribe* s) : scribe(s) {}
    rw_state read_some(size_t& result, native_socket, void* bytes, size_t size) {
      return scribe->Read(&result, bytes, size);
    }
    rw_state write_some(size_t& result, native_socket, const void* bytes, size_t size) {
      return scribe->Write(&result, bytes, size);
    }
    bool must_read_more(native_socket, size_t threshold) {
      return scribe->bytes_->buffered() >= threshold;
    }
    Scribe* scribe;
  };

  /// CAF takes success with no bytes for "try again later".
  static rw_state StateOf(const IoResult& io, size_t* result) {
    switch (io.state) {
      case IoResult::State::kDone:
        *result = io.bytes;
        return rw_state::success;
      case IoResult::State::kWantRead:
      case IoResult::State::kWantWrite:
        return rw_state::success;
      case IoResult::State::kEnd:
      case IoResult::State::kFailed:
        return rw_state::failure;
    }
    return rw_state::failure;
  }

  rw_state Read(size_t* result, void* bytes, size_t size) {
    *result = 0;
    if (!open_ && !Shake()) return rw_state::failure;
    if (!open_) return rw_state::success;
    const iovec buffer = {bytes, size};
    const rw_state state = StateOf(bytes_->Read(&buffer, 1), result);
    if (*result > 0 && !spoke_) {
      spoke_ = true;
      sockets_->Spoke(stream_.fd());
    }
    return state;
  }

  rw_state Write(size_t* result, const void* bytes, size_t size) {
    *result = 0;
    if (!open_ && !Shake()) return rw_state::failure;
    // Nothing to write, or not yet: no more of these calls until there is.
    if (!open_ || size == 0) return rw_state::indeterminate;
    const iovec buffer = {const_cast<void*>(bytes), size};
    return StateOf(bytes_->Write(&buffer, 1), result);
  }

  /// Goes on with the handshake. False if that has failed.
  bool Shake() {
    switch (bytes_->Handshake().state) {
      case IoResult::State::kDone:
        open_ = true;
        stream_.wr_buf().swap(held_);
        stream_.flush(this);
        return true;
      case IoResult::State::kWantRead:
        return true;
      case IoResult::State::kWantWrite:
        // Only when the present event is over: it may end with CAF's deleting the wish.
        stream_.backend().post([self = caf::intrusive_ptr<Scribe>(this)] {
          if (!self->detached()) self->stream_.force_empty_write(self);
        });
        return true;
      case IoResult::State::kEnd:
      case IoResult::State::kFailed:
        return false;
    }
    return false;
  }

  const std::shared_ptr<ControlSockets> sockets_;
  const std::unique_ptr<ByteStream> bytes_;
  bool open_;
  bool launched_ = false, spoke_ = false;
  std::vector<char> held_;
  network::stream_impl<Policy> stream_;
};

/// A port where connections are accepted.
class Doorman final : public network::doorman_impl {
 public:
  Doorman(network::default_multiplexer& backend, native_socket fd, Wiring wiring)
      : doorman_impl(backend, fd), wiring_(std::move(wiring)) {}

  bool new_connection() override {
    if (detached()) return false;
    network::default_multiplexer& backend = acceptor_.backend();
    auto scribe =
        caf::make_counted<Scribe>(backend, acceptor_.accepted_socket(), std::string(), wiring_);
    const caf::io::connection_handle handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&backend, handle);
  }

 private:
  const Wiring wiring_;
};

class Middleman final : public caf::io::middleman_actor_impl {
 public:
  Middleman(caf::actor_config& config, caf::actor broker, Wiring wiring,
            std::chrono::milliseconds connect_timeout)
      : middleman_actor_impl(config, std::move(broker)),
        wiring_(std::move(wiring)),
        connect_timeout_(connect_timeout) {}

 protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& host, uint16_t port) override {
    const native_socket fd = wiring_.sockets->Connect(host, port, connect_timeout_);
    if (fd < 0) return caf::sec::cannot_connect_to_node;
    return caf::make_counted<Scribe>(Backend(), fd, host, wiring_);
  }

  caf::expected<caf::io::doorman_ptr> open(uint16_t port, const char* address,
                                           bool reuse) override {
    auto fd = network::new_tcp_acceptor_impl(port, address, reuse);
    if (!fd) return fd.error();
    return caf::make_counted<Doorman>(Backend(), *fd, wiring_);
  }

 private:
  network::default_multiplexer& Backend() {
    return static_cast<network::default_multiplexer&>(system().middleman().backend());
  }

  const Wiring wiring_;
  const std::chrono::milliseconds connect_timeout_;
};

}  // namespace

caf::io::middleman_actor SpawnMiddleman(caf::actor_system& system,
                                        std::shared_ptr<ControlSockets> sockets,
                                        std::shared_ptr<const TlsContext> tls,
                                        std::chrono::milliseconds connect_timeout) {
  caf::actor broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  // On a thread of its own: it waits for hosts to answer.
  return system.spawn<Middleman, caf::detached + caf::hidden>(
      std::move(broker), Wiring{std::move(sockets), std::move(tls)}, connect_timeout);
}

}  // namespace troupe
