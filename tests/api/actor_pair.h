/// Two processes' actors in one, joined without sockets: for tests.
#ifndef TROUPE_TESTS_API_ACTOR_PAIR_H_
#define TROUPE_TESTS_API_ACTOR_PAIR_H_

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime.h"
#include "api/internal/actor_host.h"
#include "net/links.h"

namespace troupe {

/// The task `/job:a/task:0` (with a device), and a client. What one sends waits until the thread
/// that has them lets it `Arrive`.
class ActorPair {
 public:
  static constexpr uint64_t kTask = 7, kClient = 9;  ///< Incarnations.
  static constexpr uint64_t kMaxTensorBytes = 64 << 20;
  static constexpr char kTaskName[] = "/job:a/replica:0/task:0";

  ActorPair() {
    Start(0, kTask);
    Start(1, kClient);
    Connect();
  }
  ~ActorPair() {
    for (Side& side : sides_) side.host->Disconnect();
  }

  ActorHost* task() { return sides_[0].host.get(); }
  /// The task's.
  Runtime* runtime() { return runtime_.get(); }
  ActorHost* client() { return sides_[1].host.get(); }

  /// A life of a side; the one before ends.
  void Start(int side, uint64_t incarnation) {
    Disconnect();
    if (side == 0) runtime_ = *Runtime::Create({.threads = 1, .job = "a"});
    sides_[side].Init(side, side == 0 ? kTaskName : "client:9", incarnation,
                      side == 0 ? runtime_ : nullptr);
    if (side == 1) sides_[1].links->SetTask(0, kTaskName, "nowhere:1");
  }
  void Connect() {
    for (int i : {0, 1}) {
      sides_[i].peer = std::make_shared<Wire>(this, 1 - i, sides_[1 - i].incarnation);
      sides_[i].links->OnPeerConnected(sides_[i].peer);
    }
  }
  bool connected() const { return sides_[0].peer != nullptr && sides_[1].peer != nullptr; }
  void Disconnect() {
    for (Side& side : sides_) {
      if (side.peer == nullptr) continue;
      side.links->OnPeerLost(side.peer, absl::UnavailableError("cut"));
      side.peer = nullptr;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& queue : under_way_) queue.clear();
  }
  /// Hands on what is under way. False if there was nothing.
  bool Arrive() {
    bool any = false;
    for (uint32_t i = 0; ArriveOne(i); ++i) any = true;
    return any;
  }
  /// Hands on one thing; `choice` says which.
  bool ArriveOne(uint32_t choice) {
    std::function<void()> next;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (size_t i = 0; i < std::size(under_way_) && next == nullptr; ++i) {
        auto& queue = under_way_[(choice + i) % std::size(under_way_)];
        if (queue.empty()) continue;
        next = std::move(queue.front());
        queue.pop_front();
      }
    }
    if (next == nullptr) return false;
    next();
    return true;
  }
  /// What hears of frames to side 0 or 1 before they are sent.
  std::function<void(int to, const std::string& body)> on_frame;
  /// As if the other side had sent it.
  void Deliver(int to, std::string body, std::vector<Tensor> tensors = {}) {
    Side& side = sides_[to];
    if (side.peer == nullptr) return;
    side.host->OnFrame(to == 0 ? ClientPeer(kClient) : 0, side.peer, std::move(body),
                       std::move(tensors), absl::OkStatus());
  }

 private:
  class Wire final : public Peer {
   public:
    Wire(ActorPair* pair, int to, uint64_t incarnation) : pair_(pair), to_(to) {
      info_.task = to == 0 ? kTaskName : "client:9";
      info_.incarnation = incarnation;
    }
    const PeerInfo& info() const override { return info_; }
    using Peer::Send;
    absl::Status Send(absl::Span<SendItem> items) override {
      for (SendItem& item : items) {
        pair_->Add(2 + to_, [pair = pair_, to = to_, item] {
          Side& side = pair->sides_[to];
          const IncomingTensor info{
              item.step,           item.key,           item.tag, false, item.tensor.type(),
              item.tensor.shape(), item.tensor.bytes()};
          if (side.peer == nullptr || !side.links->Admit(side.peer, info).ok()) return;
          side.links->OnTensor(side.peer, {item.step, item.key, item.tag, false, item.tensor, {}});
        });
      }
      return absl::OkStatus();
    }
    absl::Status SendMessage(uint64_t type, uint64_t id, std::string body) override {
      if (pair_->on_frame != nullptr) pair_->on_frame(to_, body);
      pair_->Add(to_, [pair = pair_, to = to_, type, id, body = std::move(body)] {
        Side& side = pair->sides_[to];
        if (side.peer != nullptr) side.links->OnMessage(side.peer, type, id, body);
      });
      return absl::OkStatus();
    }
    void Close(const std::string&, std::chrono::milliseconds) override {
      pair_->Add(to_, [pair = pair_] { pair->Disconnect(); });
    }
    bool connected() const override { return true; }
    PeerStats stats() const override { return {}; }

   private:
    ActorPair* const pair_;
    const int to_;
    PeerInfo info_;
  };
  struct Side {
    void Init(int number, const std::string& name, uint64_t life,
              std::shared_ptr<Runtime> runtime) {
      host = nullptr;
      incarnation = life;
      Links::Events events;
      events.number = [number](const PeerInfo&) -> absl::StatusOr<PeerId> {
        return number == 0 ? ClientPeer(kClient) : 0;
      };
      events.up = events.lost = [](PeerId, uint64_t) {};
      events.unreachable = [](PeerId, const std::vector<uint64_t>&, const absl::Status&) {};
      events.tick = [] {};
      links = std::make_unique<Links>(
          name, std::chrono::milliseconds(1000), std::move(events),
          [](const std::string&, const ConnectOptions&, const Transport::Connected& done) {
            done(absl::UnavailableError("nobody is there"));
          });
      ActorHost::Options options{name, incarnation, links.get(), std::move(runtime)};
      options.max_tensor_bytes = kMaxTensorBytes;
      host = std::make_shared<ActorHost>(std::move(options));
      links->SetFrameSink(host.get());
    }
    uint64_t incarnation = 0;
    std::unique_ptr<Links> links;
    std::shared_ptr<ActorHost> host;  ///< Ends first.
    std::shared_ptr<Peer> peer;
  };

  void Add(int queue, std::function<void()> what) {
    std::lock_guard<std::mutex> lock(mutex_);
    under_way_[queue].push_back(std::move(what));
  }

  std::mutex mutex_;
  std::shared_ptr<Runtime> runtime_;
  /// Messages to either side, tensors to either side.
  std::deque<std::function<void()>> under_way_[4];
  Side sides_[2];
};

}  // namespace troupe

#endif  // TROUPE_TESTS_API_ACTOR_PAIR_H_
