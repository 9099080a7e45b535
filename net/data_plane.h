/// The connections of a process: to the tasks whose tensors come and go, and between clients and
/// their masters. What is small and urgent of the control plane goes over them as well.
#ifndef TROUPE_NET_DATA_PLANE_H_
#define TROUPE_NET_DATA_PLANE_H_

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/cluster/calls.h"
#include "net/transport.h"

namespace troupe {

/// Keeps a connection to every task that is up, and those that clients make. Thread-safe.
class DataPlane final : public TensorSink {
 public:
  struct Events {
    /// Which peer that is; none: a stranger, who is refused.
    std::function<std::optional<PeerId>(const PeerInfo& info)> number;
    /// A tensor has come from a task; on the I/O thread. Nobody else may send some.
    std::function<void(ReceivedTensor)> tensor;
    /// A message of the control plane, and what was sent with it; on the I/O thread.
    std::function<void(PeerId from, std::string body, std::vector<Tensor> parts)> message;
    /// A step's value did not arrive.
    std::function<void(uint64_t step, const absl::Status&)> rejected;
    /// The connection to a life of a peer broke.
    std::function<void(PeerId peer, uint64_t incarnation)> lost;
  };

  static absl::StatusOr<std::unique_ptr<DataPlane>> Create(const TransportOptions& options,
                                                           Events events);
  ~DataPlane() override;

  absl::StatusOr<int> Listen(const std::string& host, int port);
  /// Connects to a life of peer `id`, unless there is a connection. `task` empty: whatever its name
  /// is.
  void Dial(PeerId id, const std::string& task, uint64_t incarnation, const std::string& address);
  /// A peer has been heard in this life: what is sent from now on must not go to an earlier one,
  /// whose connection may look as if it were whole.
  void Heard(PeerId id, uint64_t incarnation);
  /// The peer is lost: so is the connection to it, which would be slow to notice that it is back.
  void Drop(PeerId id);
  /// NotFound while there is no connection; else what `Peer::Send` says.
  absl::Status Send(PeerId to, SendItem item);
  /// True while there is a connection to that life of the peer.
  bool Reaches(PeerId to, uint64_t incarnation);
  /// A message of at most `Transport::kMaxMessageBytes`, and with it strings that are not copied,
  /// which arrive as tensors of bytes. False, and nothing is taken, if that cannot be sent.
  /// Messages may overtake those with strings, unless they are to stay `behind`.
  bool SendMessage(PeerId to, uint64_t incarnation, std::string body,
                   std::vector<std::string>* parts, bool behind = false);
  /// So many strings can go with a message, and so many bytes of them wait for the others.
  static constexpr size_t kMaxParts = 4096;
  static constexpr uint64_t kMaxPartBytes = uint64_t{2} << 30;
  void Stop(std::chrono::milliseconds drain);

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

 private:
  explicit DataPlane(Events events) : events_(std::move(events)) {}
  /// A message that has not come completely.
  struct Parcel {
    bool has_body = false;
    std::string body;
    size_t missing = 0;  ///< Parts; modulo 2^64 while the body has not come.
    std::vector<Tensor> parts;
    uint64_t bytes = 0;
    bool refused = false;  ///< A part of it was not taken, so none of it is.
  };

  std::shared_ptr<Peer> Find(PeerId id);
  void Charge(Parcel* parcel, uint64_t bytes);
  void Refuse(Parcel* parcel);
  void Complete(const Peer* peer, uint64_t number);
  /// The newest message of `peer` whose strings are on their way; 0: there is none.
  uint64_t NewestIncomplete(const Peer* peer) const;
  bool AnyIncompleteUpTo(const Peer* peer, uint64_t number) const;

  const Events events_;
  std::unique_ptr<Transport> transport_;
  std::mutex mutex_;
  std::map<PeerId, std::shared_ptr<Peer>> peers_;
  std::unordered_map<const Peer*, PeerId> ids_;    ///< I/O thread.
  std::set<std::pair<PeerId, uint64_t>> dialing_;  ///< Lives that are being connected to.
  bool stopped_ = false;
  std::atomic<uint64_t> next_parcel_{1};
  // I/O thread.
  std::map<std::pair<const Peer*, uint64_t>, Parcel> parcels_;
  /// Messages that stay behind others, and the newest of those.
  std::map<const Peer*, std::deque<std::pair<uint64_t, std::string>>> behind_;
  uint64_t parcel_bytes_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_NET_DATA_PLANE_H_
