/// A connection: two open streams to one task. Includes Asio.
#ifndef TROUPE_NET_CONNECTION_H_
#define TROUPE_NET_CONNECTION_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "net/handshake.h"
#include "net/io_loop.h"
#include "net/opening.h"
#include "net/transport.h"

namespace troupe {

/// Sending is thread-safe; receiving, closing and failing belong to the I/O thread.
class Connection final : public Peer,
                         public CreditLease::Account,
                         public std::enable_shared_from_this<Connection> {
 public:
  using Openings = std::shared_ptr<Opening>[kLanes];

  /// `over` is called after the sink has been told.
  Connection(std::shared_ptr<IoLoop> loop, TensorSink* sink, PeerInfo info,
             const TransportOptions& options, const Openings& lanes,
             std::function<void(const std::shared_ptr<Connection>&)> over);
  ~Connection() override;

  // On the I/O thread.
  /// Takes the sockets over.
  void Attach(const Openings& lanes);
  void Start();
  void StartClose(const std::string& reason, std::chrono::milliseconds drain);
  /// Ends at once and tells the sink, unless that has been done.
  void Fail(const absl::Status& why);
  /// Called regularly, `kTicks` times in the stall timeout.
  void Tick();
  static constexpr int kTicks = 4;
  /// What the peer is granted on a lane.
  static uint64_t Window(const TransportOptions& options, int lane) {
    return lane == kBulkLane ? options.window_bytes : options.small_window_bytes;
  }

  /// Nothing is sent or received any more. Thread-safe, for when the I/O thread cannot do it.
  void ShutDown();

  // Peer.
  using Peer::Send;
  const PeerInfo& info() const override { return info_; }
  absl::Status Send(absl::Span<SendItem> items) override;
  absl::Status SendMessage(uint64_t type, uint64_t id, std::string body) override;
  void Close(const std::string& reason, std::chrono::milliseconds drain) override;
  bool connected() const override { return life_ != Life::kOver; }
  PeerStats stats() const override;

  // Account.
  void Release(int lane, uint64_t charge) override;

 private:
  class Stream;
  /// Goes on in this order only, on the I/O thread; `StartClose` and `Fail` are the steps.
  enum class Life {
    kOpen,
    kClosing,  ///< Closed here: what is queued, and then a goodbye, is sent; the peer closes.
    kOver,     ///< The sink has been, or is being, told.
  };

  /// Why nothing is sent any more.
  absl::Status EndStatus() const;
  /// Queues a frame that needs no credits on the small lane; false if nothing more is sent.
  bool QueueUrgent(const FrameHeader& header, std::string body);
  void Read(Stream* stream) noexcept;
  void ReadAll(Stream* stream);
  void OnWriteFailed(const absl::Status& why);
  void OnGoodbye(const absl::Status& why);
  /// `Fail`, because of the peer or the network; if it was closed here, that is the reason.
  void Lose(const absl::Status& why);

  const std::shared_ptr<IoLoop> loop_;
  TensorSink* const sink_;
  const PeerInfo info_;
  const uint64_t peer_max_tensor_bytes_;
  std::function<void(const std::shared_ptr<Connection>&)> over_;
  std::unique_ptr<Stream> streams_[kLanes];

  mutable std::mutex mutex_;
  /// Written on the I/O thread, with the lock.
  std::atomic<Life> life_{Life::kOpen};
  absl::Status end_;  ///< Why it is not open any more, guarded by `mutex_`.

  // I/O thread.
  absl::Status goodbye_;  ///< What the peer has said at its end.
  boost::asio::steady_timer close_timer_;
};

}  // namespace troupe

#endif  // TROUPE_NET_CONNECTION_H_
