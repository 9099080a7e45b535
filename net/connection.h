/// A connection: two open streams to one task. Includes Asio.
#ifndef TROUPE_NET_CONNECTION_H_
#define TROUPE_NET_CONNECTION_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/frame_reader.h"
#include "net/io_loop.h"
#include "net/opening.h"
#include "net/send_queue.h"
#include "net/transport.h"

namespace troupe {

/// Sending: each lane has a queue and a token, as a mailbox has. Whoever queues something and finds
/// the token free writes, outside of the lock, until the queue is empty or the kernel takes no
/// more; then the I/O thread goes on. What others queue meanwhile goes with the writer's next
/// batch. Receiving, closing and failing belong to the I/O thread.
class Connection final : public Peer,
                         public CreditLease::Account,
                         public std::enable_shared_from_this<Connection> {
 public:
  static constexpr int kLanes = 2;
  static constexpr int kSmallLane = 0;
  static constexpr int kBulkLane = 1;

  struct Options {
    uint64_t max_tensor_bytes = 0;
    uint64_t peer_max_tensor_bytes = 0;
    uint64_t send_windows[kLanes] = {0, 0};     ///< What the peer grants.
    uint64_t receive_windows[kLanes] = {0, 0};  ///< What it is granted.
    Allocator* allocator = nullptr;
  };

  /// `lost` is called after the sink has been told.
  Connection(std::shared_ptr<IoLoop> loop, TensorSink* sink, PeerInfo info, const Options& options,
             std::function<void(const std::shared_ptr<Connection>&)> lost);
  ~Connection() override;

  // On the I/O thread.
  void Attach(int lane, const std::shared_ptr<Opening>& opening);
  void Start();
  void StartClose(const std::string& reason, std::chrono::milliseconds drain);
  /// Ends at once and tells the sink, unless that has been done.
  void Fail(const absl::Status& why);
  /// Called regularly, `kTicks` times in the stall timeout.
  void Tick();
  static constexpr int kTicks = 4;

  // Peer.
  using Peer::Send;
  const PeerInfo& info() const override { return info_; }
  absl::Status Send(absl::Span<SendItem> items) override;
  absl::Status SendMessage(uint64_t type, uint64_t id, std::string body) override;
  void Close(const std::string& reason, std::chrono::milliseconds drain) override;
  bool connected() const override { return !lost_.load(std::memory_order_acquire); }
  PeerStats stats() const override;

  // Account.
  void Release(int lane, uint64_t charge) override;

 private:
  friend class SendTogether;
  class Lane;

  absl::Status LossStatus() const;
  /// Takes the token and writes, if it is free; afterwards the lane's queue is somebody's concern.
  /// Within a `SendTogether`: later.
  void Kick(Lane* lane);
  void KickNow(Lane* lane);
  /// Writes; for the holder of the token.
  /// An exception out of it, or out of `Read`, is the connection's failure.
  void Write(Lane* lane) noexcept;
  void WriteAll(Lane* lane);
  void EndWriting(Lane* lane);
  /// Queues a frame that needs no credits on the small lane; false if nothing more is sent.
  bool QueueUrgent(const FrameHeader& header, std::string body);
  void Read(Lane* lane) noexcept;
  void ReadAll(Lane* lane);
  void OnGoodbye(const absl::Status& why);
  /// How the connection ends, on the I/O thread: it is lost, unless it was closed here.
  absl::Status Lost(const absl::Status& why) const;

  const std::shared_ptr<IoLoop> loop_;
  TensorSink* const sink_;
  const PeerInfo info_;
  const Options options_;
  std::function<void(const std::shared_ptr<Connection>&)> lost_callback_;
  std::unique_ptr<Lane> lanes_[kLanes];

  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  absl::Status loss_;  ///< Why sending is over, guarded by `mutex_`.

  // I/O thread.
  bool failed_ = false;
  bool closing_ = false;
  std::string close_reason_;
  boost::asio::steady_timer close_timer_;
  absl::Status goodbye_;
};

}  // namespace troupe

#endif  // TROUPE_NET_CONNECTION_H_
