/// Connections between tasks, for tensors and messages.
///
/// A task has one `Transport`. It listens, connects to other tasks, and tells its `TensorSink` what
/// comes. Between two tasks there are two TCP streams: one for small tensors and messages, one for
/// large tensors, so that the small never wait for the large. A tensor's bytes are written from its
/// memory and read into the memory of the tensor that is delivered. Credits bound what is under
/// way. docs/transport.md describes the format and the rules.
#ifndef TROUPE_NET_TRANSPORT_H_
#define TROUPE_NET_TRANSPORT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/allocator.h"
#include "devices/tensor.h"
#include "net/frame_reader.h"
#include "net/tls.h"

namespace troupe {

/// Whom a connection leads to.
struct PeerInfo {
  std::string task;  ///< "/job:worker/replica:0/task:0".
  uint64_t incarnation = 0;
  std::string address;    ///< Of the other end of the connection.
  std::string serves_at;  ///< Where the peer says that it serves; empty: it does not.
  bool answered = false;  ///< The peer connected to us.
  bool shared = false;    ///< Large tensors go through memory that both processes map.

  /// "task /job:... at 127.0.0.1:7001", for messages.
  std::string ToString() const;
};

/// A tensor to push.
struct SendItem {
  uint64_t step = 0;
  uint64_t key = 0;  ///< The edge.
  uint64_t tag = 0;  ///< The iteration of which loops.
  bool dead = false;
  Tensor tensor;  ///< Ignored if dead.
};

/// What of a connection is under way and has been done.
struct PeerStats {
  uint64_t bytes_sent = 0, bytes_received = 0;
  uint64_t tensor_bytes_received = 0;
  uint64_t queued_bytes = 0;      ///< Of tensors that have not been handed to the kernel.
  uint64_t unreturned_bytes = 0;  ///< Credits of the peer that tensors received here hold.
  bool short_of_credits = false;  ///< Tensors may wait at the peer until some are let go of here.
};

/// A connection to a task. All functions are thread-safe and none waits; they may be called from
/// within the sink's.
class Peer {
 public:
  virtual ~Peer() = default;

  virtual const PeerInfo& info() const = 0;
  /// Pushes tensors, in as few writes as possible, on the calling thread if nothing else is being
  /// written. Their memory is kept until it has been written and must not change. The items are
  /// moved from. Unavailable if the connection is lost; InvalidArgument or Unimplemented if one of
  /// them cannot be sent, and then none is.
  virtual absl::Status Send(absl::Span<SendItem> items) = 0;
  absl::Status Send(SendItem item) { return Send(absl::MakeSpan(&item, 1)); }
  /// A message of at most 1 MiB that means something to the two users only. Messages come in the
  /// order in which they were sent. Unavailable, InvalidArgument.
  virtual absl::Status SendMessage(uint64_t type, uint64_t id, std::string body) = 0;
  /// Sends what is queued, for as long as `drain` allows, then closes. `OnPeerLost` follows.
  virtual void Close(const std::string& reason,
                     std::chrono::milliseconds drain = std::chrono::seconds(1)) = 0;
  virtual bool connected() const = 0;
  virtual PeerStats stats() const = 0;
};

/// While one of them lives, what this thread sends to any peer is queued; the last one to end has
/// it written, in as few writes as possible. Not for longer than a receiver may wait.
class SendTogether {
 public:
  SendTogether();
  ~SendTogether();
  SendTogether(const SendTogether&) = delete;
  SendTogether& operator=(const SendTogether&) = delete;
};

/// Holds the credit for a tensor that came. Letting go of it allows the peer to send more; until
/// then the tensor counts as under way. Keep it for as long as the tensor waits for its consumer. A
/// move-only value; any thread may destroy it.
class CreditLease {
 public:
  /// Who gets the credit back.
  class Account {
   public:
    virtual ~Account() = default;
    virtual void Release(int lane, uint64_t charge) = 0;
  };

  CreditLease() = default;
  CreditLease(std::shared_ptr<Account> account, int lane, uint64_t charge)
      : account_(std::move(account)), charge_(charge), lane_(lane) {}
  CreditLease(CreditLease&&) = default;
  CreditLease& operator=(CreditLease&& other) noexcept {
    Release();
    account_ = std::move(other.account_);
    charge_ = other.charge_;
    lane_ = other.lane_;
    return *this;
  }
  ~CreditLease() { Release(); }
  void Release() {
    if (auto account = std::move(account_)) account->Release(lane_, charge_);
  }

 private:
  std::shared_ptr<Account> account_;
  uint64_t charge_ = 0;
  int lane_ = 0;
};

/// A tensor that came.
struct ReceivedTensor {
  uint64_t step = 0;
  uint64_t key = 0;
  uint64_t tag = 0;
  bool dead = false;
  Tensor tensor;  ///< Invalid if dead.
  CreditLease credit;
};

/// Is told what happens on the connections of a transport: on its I/O thread, one call at a time,
/// so each must be short. For one connection `OnPeerConnected` comes first and `OnPeerLost`,
/// exactly once, last.
class TensorSink {
 public:
  virtual ~TensorSink() = default;

  /// A task wants to connect and has proven who it is. Not OK: it is refused, and told why.
  virtual absl::Status OnHello(const PeerInfo&) { return absl::OkStatus(); }
  virtual void OnPeerConnected(const std::shared_ptr<Peer>&) {}
  /// A tensor is about to come. Not OK: no memory is taken for it, and the sender is told.
  virtual absl::Status Admit(const std::shared_ptr<Peer>&, const IncomingTensor&) {
    return absl::OkStatus();
  }
  virtual void OnTensor(const std::shared_ptr<Peer>& peer, ReceivedTensor received) = 0;
  /// A tensor that came was not taken: it was not admitted, or memory did not suffice.
  virtual void OnDropped(const std::shared_ptr<Peer>&, const IncomingTensor&) {}
  /// The peer did not take a tensor that was sent: it was not admitted, or memory did not suffice.
  virtual void OnRejected(const std::shared_ptr<Peer>&, uint64_t /*step*/, uint64_t /*key*/,
                          uint64_t /*tag*/, const absl::Status&) {}
  virtual void OnMessage(const std::shared_ptr<Peer>&, uint64_t /*type*/, uint64_t /*id*/,
                         std::string) {}
  /// The connection is over. Cancelled if it was closed here, else Unavailable (or what the peer
  /// did wrong), naming the peer.
  virtual void OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status& why) = 0;
  /// Somebody tried to connect and was refused.
  virtual void OnStranger(const std::string& /*address*/, const absl::Status&) {}
  /// Called all the time, `TransportOptions::tick` apart.
  virtual void OnTick() {}
};

/// A number for a life of a process that no other one has.
uint64_t NewIncarnation();

struct TransportOptions {
  std::string task;                       ///< Who we are: "/job:worker/replica:0/task:0".
  uint64_t incarnation = 0;               ///< Of this start of the task; 0: drawn.
  std::string secret;                     ///< Both sides of a connection must know the same.
  std::string address;                    ///< Where the task serves, as peers are told.
  std::shared_ptr<const TlsContext> tls;  ///< All connections are under TLS if set.
  bool insecure = false;                  ///< Listen on more than loopback without TLS.
  bool share_memory = true;               ///< With peers on this machine that also would.

  uint64_t window_bytes = uint64_t{256} << 20;       ///< Credits for a peer's large tensors.
  uint64_t small_window_bytes = uint64_t{32} << 20;  ///< For small ones (64 KiB at most).
  uint64_t max_tensor_bytes = uint64_t{1} << 34;     ///< Larger ones are refused.
  Allocator* allocator = HostAllocator();            ///< For what comes; of the host's memory.

  std::chrono::milliseconds handshake_timeout{5000};
  /// Streams whose handshake is under way; if there are more, the oldest give way: a handshake
  /// takes milliseconds, so that those are of strangers who say nothing.
  size_t max_handshakes = 1024;
  /// A peer that in the middle of a tensor moves no byte for so long is lost.
  std::chrono::milliseconds stall_timeout{5000};
  std::chrono::milliseconds tick{20};
};

struct ConnectOptions {
  std::string expected_task;          ///< Refuse any other; empty: any.
  uint64_t expected_incarnation = 0;  ///< 0: any.
  std::chrono::milliseconds timeout{5000};
};

/// One I/O thread and the connections of a task. Thread-safe, except that `Stop` and the destructor
/// must not be called from the sink's functions.
class Transport {
 public:
  using Connected = std::function<void(absl::StatusOr<std::shared_ptr<Peer>>)>;

  /// Below this a tensor goes with the messages, above it with the bulk.
  static constexpr uint64_t kSmallBytes = 64 << 10;
  static constexpr uint64_t kMaxMessageBytes = kMaxFrameBody;

  /// `sink` must live until `Stop` has returned. InvalidArgument.
  static absl::StatusOr<std::unique_ptr<Transport>> Create(const TransportOptions& options,
                                                           TensorSink* sink);
  /// Stops without draining.
  ~Transport();

  /// Accepts connections at `host` (a name or an address); port 0 is any free one. The result is
  /// the port. FailedPrecondition for an address that is not loopback, without TLS and `insecure`;
  /// Unavailable if the port is in use; InvalidArgument.
  absl::StatusOr<int> Listen(const std::string& host, int port);

  /// Connects to `address` (`host:port`); `done` is called once, on the I/O thread or, if nothing
  /// could be tried, on this one. Errors name the task and the address: Unavailable (nobody is
  /// there), DeadlineExceeded, or why the peer refuses.
  void Connect(const std::string& address, const ConnectOptions& options, Connected done);

  const TransportOptions& options() const;
  uint64_t incarnation() const { return options().incarnation; }

  /// Accepts and connects no more, gives every connection up to `drain` to send what is queued,
  /// closes them (`OnPeerLost`: Cancelled), and ends the thread. Afterwards the sink is not called
  /// any more. DeadlineExceeded if one of the sink's functions goes on for more than five seconds
  /// besides: port and connections are shut down, but the sink may still be in use.
  /// FailedPrecondition on the I/O thread.
  absl::Status Stop(std::chrono::milliseconds drain = std::chrono::milliseconds(0));

 private:
  class Impl;
  explicit Transport(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace troupe

#endif  // TROUPE_NET_TRANSPORT_H_
