/// The links of a process: a connection to every peer with which there is something to exchange.
#ifndef TROUPE_NET_LINKS_H_
#define TROUPE_NET_LINKS_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "actors/cluster/calls.h"
#include "net/message_assembler.h"
#include "net/shared_budget.h"
#include "net/stall_watch.h"
#include "net/transport.h"

namespace troupe {

/// Who is told of frames and the connections they come over. `peer` says which connection that is:
/// what was sent over one that is closed may be lost. On the I/O thread, but `OnUnreachable`, which
/// may come within `SendFrame` on any thread.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  virtual void OnOpened(PeerId id, const std::shared_ptr<Peer>& peer) = 0;
  virtual void OnClosed(PeerId id, const std::shared_ptr<Peer>& peer) = 0;
  /// No connection could be made: the frames that waited for it are lost.
  virtual void OnUnreachable(PeerId id, const absl::Status& why) = 0;
  /// `whole` is not OK if there was no memory for the tensors.
  virtual void OnFrame(PeerId id, const std::shared_ptr<Peer>& peer, std::string body,
                       std::vector<Tensor> tensors, const absl::Status& whole) = 0;
  virtual void OnFrameTick() = 0;
  /// A task has come or gone; on the thread that says so.
  virtual void OnTasksChanged() = 0;
};

/// Whoever has something to say to a task connects to it; what is sent meanwhile waits. If two
/// tasks connect to each other at once, the connection of the one whose name comes first is kept.
/// Nothing is dropped without a word: it arrives, or `undelivered`, `unreachable` or `lost` is
/// called. Clients connect and are not connected to. Thread-safe.
class Links final : public TensorSink {
 public:
  /// All are called without a lock, on the I/O thread unless it says otherwise.
  struct Events {
    /// Which peer that is. An error: it is refused, and told why.
    std::function<absl::StatusOr<PeerId>(const PeerInfo& info)> number;
    /// There is a connection to a life of a peer.
    std::function<void(PeerId peer, uint64_t incarnation)> up;
    /// That connection is over: what was under way with that life, either way, may be lost.
    std::function<void(PeerId peer, uint64_t incarnation)> lost;
    /// No connection could be made: what was sent to the peer until now is lost, tensors of these
    /// steps included. On any thread, also within `Send`.
    std::function<void(PeerId peer, const std::vector<uint64_t>& steps, const absl::Status& why)>
        unreachable;
    /// A message, and the strings that were sent with it, as tensors of bytes. `whole` is not OK if
    /// there was no memory for those.
    std::function<void(PeerId from, std::string body, std::vector<Tensor> parts,
                       const absl::Status& whole)>
        message;
    /// A tensor has come from a task. Nobody else may send some.
    std::function<void(ReceivedTensor)> tensor;
    /// A tensor of a step was not taken. On any thread, also within `Send`.
    std::function<void(uint64_t step, const absl::Status&)> undelivered;
    std::function<void()> tick;
  };
  /// `Transport::Connect`, or what stands for it.
  using Connect = std::function<void(const std::string& address, const ConnectOptions& options,
                                     Transport::Connected done)>;

  /// With a transport of its own.
  static absl::StatusOr<std::unique_ptr<Links>> Create(const TransportOptions& options,
                                                       std::chrono::milliseconds dial_timeout,
                                                       Events events);
  /// `task`: who we are. For another transport, which this is the sink of.
  Links(std::string task, std::chrono::milliseconds dial_timeout, Events events, Connect connect)
      : task_(std::move(task)),
        dial_timeout_(dial_timeout),
        events_(std::move(events)),
        connect_(std::move(connect)) {}
  ~Links() override { Stop(std::chrono::milliseconds(0)); }

  /// As `Transport::Listen`.
  absl::StatusOr<int> Listen(const std::string& host, int port) {
    return transport_->Listen(host, port);
  }

  /// A task that can be connected to, or another address of it. `name` empty: whoever serves there.
  void SetTask(PeerId id, const std::string& name, const std::string& address);
  /// There is no such task any more. The connection to it is closed when what is queued has been
  /// sent; `lost` is not called.
  void RemoveTask(PeerId id);
  /// The number of a task of this name, if there is one, and where it serves.
  struct Task {
    PeerId id = 0;
    std::string address;
  };
  absl::StatusOr<Task> FindTask(const std::string& name);
  /// Names and numbers of all that have a name, in the order of the names.
  std::vector<std::pair<std::string, PeerId>> Tasks();

  /// A message, and with it strings that are not copied. Messages arrive in the order in which they
  /// were sent, but those with strings, and those over `Transport::kMaxMessageBytes`, may be
  /// overtaken. At most `kMaxParts` strings. Dropped if the peer is a client that is gone.
  void Send(PeerId to, std::string body, std::vector<std::string> parts = {});
  void Send(PeerId to, SendItem item);
  /// What the other side's `FrameSink` gets: frames come in the order in which they were sent over
  /// a connection, with their tensors, at most `kMaxParts` - 1 of any type. The sink is told if one
  /// cannot arrive.
  void SendFrame(PeerId to, std::string body, std::vector<Tensor> tensors);
  /// Before anything connects; nullptr: frames are dropped. The sink outlives `Stop`.
  void SetFrameSink(FrameSink* sink) { frame_sink_ = sink; }
  /// A peer of `SetTask` to which nothing is to be sent any more.
  void Forget(PeerId id);
  /// The peer is given up, and so is the connection to it; `lost` is not called.
  void Drop(PeerId id);
  /// Something that was to go to the peer, or has come from it, is lost: so is the connection, or
  /// what waits for one, so that whoever is concerned hears of it.
  void Lose(PeerId id, const absl::Status& why);
  /// Gives every connection up to `drain` to send what is queued. Afterwards nothing is sent, and
  /// no event comes. False: an event goes on, and what it uses is to be kept.
  bool Stop(std::chrono::milliseconds drain);
  bool connected(PeerId id) { return FindPeer(id, /*take=*/false) != nullptr; }

  static constexpr size_t kMaxParts = MessageFormat::kMaxParts;
  /// For messages of all peers that have come in part; one peer may hold as much as it leaves free.
  static constexpr uint64_t kMaxPartBytes = uint64_t{4} << 30;
  /// What each may hold in any case.
  static constexpr uint64_t kLeastPartBytes = uint64_t{2} << 20;

  // The transport's sink.
  absl::Status OnHello(const PeerInfo& peer) override;
  void OnPeerConnected(const std::shared_ptr<Peer>& peer) override;
  absl::Status Admit(const std::shared_ptr<Peer>& peer, const IncomingTensor& info) override;
  void OnTensor(const std::shared_ptr<Peer>& peer, ReceivedTensor received) override;
  void OnDropped(const std::shared_ptr<Peer>& peer, const IncomingTensor& info) override;
  void OnRejected(const std::shared_ptr<Peer>& peer, uint64_t step, uint64_t key, uint64_t tag,
                  const absl::Status& why) override;
  void OnMessage(const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t id,
                 std::string body) override;
  void OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status& why) override;
  void OnStranger(const std::string& address, const absl::Status& why) override;
  void OnTick() override;

 private:
  struct Outgoing {
    std::string body;
    std::vector<Tensor> parts;
    bool frame = false;
  };
  using Item = std::variant<Outgoing, SendItem>;
  struct Link {
    std::shared_ptr<Peer> peer;
    bool dialing = false;
    int refusals = 0;           ///< Because the peer is connecting to us.
    int expecting = 0;          ///< For so many ticks: the peer has said hello.
    int fresh = 0;              ///< For so many ticks: we have connected to it just now.
    std::vector<Item> waiting;  ///< For a connection; empty if there is one.
    uint64_t next_frame = 0;    ///< On this connection.
  };
  /// What comes over a connection.
  struct Incoming {
    Incoming(PeerId from, SharedBudget* budget, MessageAssembler::Done done)
        : id(from), messages(budget, std::move(done)) {}
    const PeerId id;
    MessageAssembler messages;
    /// Of the rest of messages that are incomplete.
    StallWatch watch{kLeastBytesPerTick, kStallTicks};
  };
  // At 50 ticks a second: five seconds.
  static constexpr uint64_t kLeastBytesPerTick = kLeastBytesPerSecond / 50;
  static constexpr uint64_t kStallTicks = 250;

  /// The connection to a peer, nullptr if there is none; `take`: its link has none any more.
  std::shared_ptr<Peer> FindPeer(PeerId id, bool take);
  void SendItemTo(PeerId to, Item item);
  /// `frame`: the number of the item if it is a frame.
  void Write(Peer* peer, Item item, uint64_t frame);
  static bool IsFrame(const Item& item);
  /// To that life of the peer; 0: any.
  void Dial(PeerId to, uint64_t incarnation = 0);
  void OnDialled(PeerId to, const absl::Status& status);
  void Fail(PeerId to, std::vector<Item> items, const absl::Status& why);
  /// What comes over a connection; nullptr if it is over, or never counted.
  Incoming* FindIncoming(const std::shared_ptr<Peer>& peer);
  /// Ends the connection if something is wrong with what has come over it.
  void Judge(Peer* peer, const absl::Status& status);
  /// Ends connections over which the rest of a message does not come.
  void EndStalled();
  void OnWhole(PeerId id, const std::shared_ptr<Peer>& peer, MessageAssembler::Message message);

  const std::string task_;
  const std::chrono::milliseconds dial_timeout_;
  const Events events_;
  const Connect connect_;
  std::unique_ptr<Transport> transport_;
  std::atomic<uint64_t> next_number_{1};
  std::atomic<FrameSink*> frame_sink_{nullptr};

  std::mutex mutex_;
  std::map<PeerId, std::pair<std::string, std::string>> tasks_;  ///< Names and addresses.
  std::unordered_map<std::string, PeerId> by_name_;
  std::map<PeerId, Link> links_;
  bool stopped_ = false;
  // I/O thread.
  SharedBudget budget_{kMaxPartBytes, kLeastPartBytes};
  std::map<std::shared_ptr<Peer>, Incoming> incoming_;
};

}  // namespace troupe

#endif  // TROUPE_NET_LINKS_H_
