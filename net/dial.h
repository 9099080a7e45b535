/// Connecting: all streams of a connection to one address, before one deadline. Includes Asio.
#ifndef TROUPE_NET_DIAL_H_
#define TROUPE_NET_DIAL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/address.h"
#include "net/handshake.h"
#include "net/io_loop.h"
#include "net/opening.h"
#include "net/resolver.h"
#include "net/transport.h"

namespace troupe {

/// An attempt to connect. Lives on the I/O thread.
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  struct Streams {
    const TlsContext* tls = nullptr;
    bool share = false;            ///< As of `Opening`.
    std::vector<Handshake> roles;  ///< One for each stream.
  };

  Dial(std::shared_ptr<IoLoop> loop, HostPort address, const ConnectOptions& options,
       Streams streams);

  /// `done` is called once: OK when all streams are open, else why not, with task and address.
  void Start(std::function<void(const absl::Status&)> done);
  void Cancel(const absl::Status& why) { Finish(why); }
  const std::vector<std::shared_ptr<Opening>>& openings() const { return openings_; }

 private:
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

  void ConnectAll(const Hosts& hosts);
  void Open(size_t index, boost::asio::ip::tcp::socket socket);
  void Finish(const absl::Status& status);

  const std::shared_ptr<IoLoop> loop_;
  const HostPort address_;
  const ConnectOptions options_;
  Streams streams_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<std::shared_ptr<boost::asio::ip::tcp::socket>> sockets_;
  std::vector<std::shared_ptr<Opening>> openings_;
  size_t open_ = 0;
  std::function<void(const absl::Status&)> done_;
};

}  // namespace troupe

#endif  // TROUPE_NET_DIAL_H_
