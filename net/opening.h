/// A stream from the moment its socket is connected until the handshake is over. Includes Asio.
#ifndef TROUPE_NET_OPENING_H_
#define TROUPE_NET_OPENING_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "net/byte_stream.h"
#include "net/handshake.h"
#include "net/io_loop.h"
#include "net/shared_stream.h"
#include "net/tls.h"

namespace troupe {

/// The shell of a `Handshake`: TLS first, if it is wanted, then the role's bytes, all before a
/// deadline. Lives on the I/O thread.
class Opening : public std::enable_shared_from_this<Opening> {
 public:
  enum class Event {
    kVerified,  ///< The answering side knows who connects: `Welcome` or `Refuse`.
    kOpen,      ///< Done: `socket` and `stream` may be taken.
    kFailed,    ///< `failure` says why. For a moment the peer has time to read it.
    kClosed,    ///< After `kFailed`: last.
  };
  using Report = std::function<void(const std::shared_ptr<Opening>&, Event)>;

  /// `share`: large tensors go through shared memory if the peer is on this machine, of the same
  /// user, agrees, and there is no TLS.
  Opening(IoLoop* loop, boost::asio::ip::tcp::socket socket, const TlsContext* tls, bool share,
          Handshake role);

  /// Reports what happens, from within the loop.
  void Start(std::chrono::steady_clock::time_point deadline, Report report);
  void Welcome();
  void Refuse(const absl::Status& why);
  /// Gives up; nothing more is reported.
  void Abandon();
  /// The same; the peer is told why, if that can be done at once.
  void Abandon(const absl::Status& why);

  const Handshake& role() const { return role_; }
  const std::string& address() const { return address_; }
  const absl::Status& failure() const { return failure_; }

  boost::asio::ip::tcp::socket socket;
  std::unique_ptr<ByteStream> stream;
  uint64_t number = 0;  ///< For whoever has many.

 private:
  void Step();
  /// False if it can go on; else it waits or has failed.
  bool Stuck(const IoResult& result);
  void Fail(const absl::Status& why);
  void Linger();
  /// Of the stream of large tensors: has the role agree on shared memory.
  void OfferMemory();
  /// The end of lingering.
  void Close();

  IoLoop* loop_;
  Handshake role_;
  std::string address_;
  boost::asio::steady_timer timer_;
  Report report_;
  std::string output_;
  std::unique_ptr<SharedMemory> memory_;  ///< That is offered or taken.
  absl::Status failure_;
  bool secured_ = false;
  bool told_verified_ = false;
  bool lingering_ = false;
};

/// "127.0.0.1:7000" of a socket's other end.
std::string RemoteAddress(const boost::asio::ip::tcp::socket& socket);

}  // namespace troupe

#endif  // TROUPE_NET_OPENING_H_
