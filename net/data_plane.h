/// The connections of a process: to the tasks whose tensors come and go, and between clients and
/// their masters. What is small and urgent of the control plane goes over them as well.
#ifndef TROUPE_NET_DATA_PLANE_H_
#define TROUPE_NET_DATA_PLANE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

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
    /// A message of the control plane; on the I/O thread.
    std::function<void(PeerId from, std::string body)> message;
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
  /// NotFound while there is no connection; else what `Peer::Send` says.
  absl::Status Send(PeerId to, SendItem item);
  /// False while there is no connection to that life of the peer, or the message is too large.
  bool SendMessage(PeerId to, uint64_t incarnation, std::string body);
  void Stop(std::chrono::milliseconds drain);

  absl::Status OnHello(const PeerInfo& peer) override;
  void OnPeerConnected(const std::shared_ptr<Peer>& peer) override;
  absl::Status Admit(const std::shared_ptr<Peer>& peer, const TensorInfo& info) override;
  void OnTensor(const std::shared_ptr<Peer>& peer, ReceivedTensor received) override;
  void OnRejected(const std::shared_ptr<Peer>& peer, uint64_t step, uint64_t key, uint64_t tag,
                  const absl::Status& why) override;
  void OnMessage(const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t id,
                 std::string body) override;
  void OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status& why) override;

 private:
  explicit DataPlane(Events events) : events_(std::move(events)) {}
  std::shared_ptr<Peer> Find(PeerId id);

  const Events events_;
  std::unique_ptr<Transport> transport_;
  std::mutex mutex_;
  std::map<PeerId, std::shared_ptr<Peer>> peers_;
  std::unordered_map<const Peer*, PeerId> ids_;  ///< I/O thread.
  bool stopped_ = false;
};

}  // namespace troupe

#endif  // TROUPE_NET_DATA_PLANE_H_
