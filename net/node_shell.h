/// The shell of a node: one lock plays its role, the control plane carries its messages.
#ifndef TROUPE_NET_NODE_SHELL_H_
#define TROUPE_NET_NODE_SHELL_H_

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/cluster/engine_host.h"
#include "actors/cluster/node_role.h"
#include "net/control_plane.h"

namespace troupe {

/// Thread-safe. What a role sends while it handles an event is sent when the event is over, without
/// the lock; what it sends to its own task is handled at once.
class NodeShell final : public ControlHandler, public EngineHost, public Outbox {
 public:
  /// `control` outlives the shell's last call.
  explicit NodeShell(ControlPlane* control) : control_(control) {}
  /// Before anything else. Engines may be nullptr.
  void Init(NodeRole::Options options, WorkerEngine* worker, MasterEngine* master);

  NodeRole* role() { return role_.get(); }  ///< Within `Enter` only.
  static ClusterTime Now();

  void OnMessage(PeerId from, cluster::Message message) override;
  void OnLinkDown(PeerId peer) override;
  void OnTick() override;

  void Post(std::function<void()> job) override { control_->Post(std::move(job)); }
  void Enter(std::function<void()> event) override;
  void SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag, bool dead,
                  Tensor value) override;

  /// Tensors go here instead of over the control plane, unless the answer is NotFound. Not OK: they
  /// are not on their way.
  using TensorSender = std::function<absl::Status(PeerId to, uint64_t step, uint64_t key,
                                                  uint64_t tag, bool dead, Tensor value)>;
  void set_tensor_sender(TensorSender sender) { tensor_sender_ = std::move(sender); }

 private:
  absl::Status SendOverControlPlane(PeerId to, uint64_t step, uint64_t key, uint64_t tag, bool dead,
                                    const Tensor& value);
  void Send(PeerId to, cluster::Message message) override;  ///< From the role, within an event.

  ControlPlane* const control_;
  TensorSender tensor_sender_;
  std::mutex mutex_;
  std::unique_ptr<NodeRole> role_;
  std::vector<std::pair<PeerId, cluster::Message>> outgoing_;
  std::deque<cluster::Message> to_self_;
};

}  // namespace troupe

#endif  // TROUPE_NET_NODE_SHELL_H_
