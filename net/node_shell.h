/// The shell of a node: one lock plays its role, the two planes carry its messages.
#ifndef TROUPE_NET_NODE_SHELL_H_
#define TROUPE_NET_NODE_SHELL_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/cluster/engine_host.h"
#include "actors/cluster/node_role.h"
#include "net/control_plane.h"
#include "net/data_plane.h"

namespace troupe {

/// Thread-safe. What a role sends while it handles an event is sent when the event is over, without
/// the lock; what it sends to its own task is handled at once. A message to a known life of a peer
/// goes over the data plane's connection to that life, written by this very thread, and over the
/// control plane while there is none, or if it is large.
class NodeShell final : public ControlHandler, public EngineHost, public Outbox {
 public:
  /// `control` outlives the shell's last call.
  explicit NodeShell(ControlPlane* control) : control_(control) {}
  /// Before anything else. Engines may be nullptr.
  void Init(NodeRole::Options options, WorkerEngine* worker, MasterEngine* master);
  /// Before anything is sent; it outlives the shell's last call.
  void set_data_plane(DataPlane* data) { data_ = data; }

  NodeRole* role() { return role_.get(); }  ///< Within `Enter` only.
  static ClusterTime Now();

  void OnMessage(PeerId from, cluster::Message message) override {
    OnMessage(from, std::move(message), Player::kQuick);
  }
  void OnMessage(PeerId from, cluster::Message message, Player player);
  void OnLinkDown(PeerId peer) override;
  void OnTick() override;
  /// A message that came over the data plane, and the contents of tensors that came with it.
  void OnWire(PeerId from, const std::string& bytes, std::vector<Tensor> parts);
  /// The connection to a life of a peer broke. Half a link is none: what is under way with the peer
  /// fails, and it is taken back at its next word.
  void OnConnectionLost(PeerId peer, uint64_t incarnation);

  void Post(std::function<void()> job) override { control_->Post(std::move(job)); }
  void Defer(std::function<void()> job) override { deferred_.push_back(std::move(job)); }
  void Enter(std::function<void()> event) override { Enter(std::move(event), Player::kQuick); }
  void Enter(std::function<void()> event, Player player);
  Player event_player() const override { return event_player_; }
  void Together(absl::FunctionRef<void()> job) override {
    SendTogether together;
    job();
  }
  void SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag, bool dead,
                  Tensor value) override;

  /// Where messages for a client in this process go.
  using LocalClient = std::function<void(cluster::Message)>;
  void AddLocalClient(PeerId client, LocalClient deliver);
  /// Its sessions are closed.
  void RemoveLocalClient(PeerId client);

 private:
  struct Outgoing {
    PeerId to;
    cluster::Message message;
    std::shared_ptr<LocalClient> client;  ///< In this process.
  };

  absl::Status SendOverControlPlane(PeerId to, const std::string& task, uint64_t step, uint64_t key,
                                    uint64_t tag, bool dead, const Tensor& value);
  void Send(PeerId to, cluster::Message message) override;  ///< From the role, within an event.
  void Carry(Outgoing outgoing);
  /// False: it is to go over the control plane, and is as it was.
  bool CarryOverDataPlane(PeerId to, cluster::Message* message);
  /// True: it will be handled behind what is being put together.
  bool StaysBehind(PeerId from, cluster::Message* message);
  void PutTogether(PeerId from, uint64_t number);

  ControlPlane* const control_;
  DataPlane* data_ = nullptr;
  std::mutex mutex_;
  std::unique_ptr<NodeRole> role_;
  std::map<PeerId, std::shared_ptr<LocalClient>> local_clients_;
  std::vector<Outgoing> outgoing_;
  std::vector<std::function<void()>> deferred_;
  Player event_player_ = Player::kQuick;
  std::deque<cluster::Message> to_self_;

  /// Large messages of a peer that are being put together, and what is to stay behind them: each
  /// with the number of the next one then.
  struct Assembly {
    std::set<uint64_t> under_way;
    std::deque<std::pair<uint64_t, cluster::Message>> behind;
  };
  std::mutex assembly_mutex_;
  std::map<PeerId, Assembly> assemblies_;
  uint64_t next_assembly_ = 1;
};

}  // namespace troupe

#endif  // TROUPE_NET_NODE_SHELL_H_
