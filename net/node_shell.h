/// The shell of a node: one lock plays its role, the links carry its messages.
#ifndef TROUPE_NET_NODE_SHELL_H_
#define TROUPE_NET_NODE_SHELL_H_

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/cluster/engine.h"
#include "actors/cluster/node_role.h"
#include "devices/cpu/job_threads.h"
#include "net/links.h"

namespace troupe {

/// A client in the process of its master. Its functions are called by any thread, outside of locks.
class LocalClient {
 public:
  virtual ~LocalClient() = default;
  virtual void OnMessage(cluster::Message message) = 0;
  /// The master is no more; nothing comes afterwards.
  virtual void OnStopped() = 0;
};

/// Thread-safe. What a role sends while it handles an event is sent when the event is over, without
/// the lock, by the same thread; what it sends to its own task is handled at once.
class NodeShell final : public EngineHost, public Outbox {
 public:
  /// Larger messages are refused before they are sent.
  static constexpr size_t kMaxBytes = size_t{1} << 30;

  /// `threads`: that run jobs.
  explicit NodeShell(int threads) : jobs_(threads) {}
  /// The links of this node, which are not made yet. `tensor`: where values of steps go.
  absl::Status MakeLinks(const TransportOptions& options,
                         std::function<absl::StatusOr<PeerId>(const PeerInfo&)> number,
                         std::function<void(ReceivedTensor)> tensor);
  /// Engines may be nullptr. Events before that are ignored.
  void Init(NodeRole::Options options, WorkerEngine* worker, MasterEngine* master);
  /// Nothing is sent or heard any more, after up to `drain`. False if jobs, or the I/O thread, are
  /// still at work: what they use is to be kept for good.
  bool Stop(std::chrono::milliseconds drain);

  NodeRole* role() { return role_.get(); }  ///< Within `Enter` only.
  Links* links() { return links_.get(); }
  static ClusterTime Now();

  void OnMessage(PeerId from, cluster::Message message, Player player);

  void Post(std::function<void()> job) override { jobs_.Post(std::move(job)); }
  void Defer(std::function<void()> job) override { deferred_.push_back(std::move(job)); }
  void Enter(absl::FunctionRef<void()> event) override { Enter(event, Player::kQuick); }
  void Enter(absl::FunctionRef<void()> event, Player player);
  Player event_player() const override { return event_player_; }
  void Together(absl::FunctionRef<void()> job) override {
    SendTogether together;
    job();
  }
  void SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag, bool dead,
                  Tensor value) override;

  void AddLocalClient(PeerId id, std::shared_ptr<LocalClient> client);
  /// Its sessions are closed.
  void RemoveLocalClient(PeerId id);
  /// Tells those that are left that nothing comes any more.
  void StopLocalClients();

 private:
  struct Outgoing {
    PeerId to;
    cluster::Message message;
    std::shared_ptr<LocalClient> client;  ///< In this process.
  };

  /// Runs `f`, in the course of which a message to or from a peer is lost if it throws.
  template <typename F>
  void Guard(PeerId peer, F&& f) noexcept;
  void Send(PeerId to, cluster::Message message) override;  ///< From the role, within an event.
  void Carry(Outgoing* outgoing);
  /// A value of a step did not arrive.
  void FailStep(uint64_t step, const absl::Status& why);
  /// A message cannot be sent: whoever waits for it, or for its answer, is told.
  void Refuse(PeerId to, cluster::Message message);
  /// A message that has come, and the contents of its tensors.
  void OnWire(PeerId from, const std::string& bytes, std::vector<Tensor> parts,
              const absl::Status& whole);

  JobThreads jobs_;
  std::mutex mutex_;
  std::unique_ptr<NodeRole> role_;
  std::map<PeerId, std::shared_ptr<LocalClient>> local_clients_;
  std::vector<Outgoing> outgoing_;
  std::vector<std::function<void()>> deferred_;
  Player event_player_ = Player::kQuick;
  std::deque<cluster::Message> to_self_;
  std::unique_ptr<Links> links_;  ///< Ends first.
};

}  // namespace troupe

#endif  // TROUPE_NET_NODE_SHELL_H_
