/// A sink that keeps what it is told, for tests of the transport.
#ifndef TROUPE_TESTS_NET_RECORDING_SINK_H_
#define TROUPE_TESTS_NET_RECORDING_SINK_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "net/transport.h"
#include "tests/net/connect_now.h"

namespace troupe {

class RecordingSink : public TensorSink {
 public:
  struct Message {
    uint64_t type, id;
    std::string body;
  };

  absl::Status OnHello(const PeerInfo& peer) override {
    return on_hello ? on_hello(peer) : absl::OkStatus();
  }
  void OnPeerConnected(const std::shared_ptr<Peer>& peer) override {
    Note([&] { connected.push_back(peer); });
  }
  absl::Status Admit(const std::shared_ptr<Peer>&, const IncomingTensor& info) override {
    return admit ? admit(info) : absl::OkStatus();
  }
  void OnTensor(const std::shared_ptr<Peer>& peer, ReceivedTensor received) override {
    if (on_tensor) return on_tensor(peer, std::move(received));
    Note([&] {
      if (!keep_credits) received.credit.Release();
      tensors.push_back(std::move(received));
    });
  }
  void OnRejected(const std::shared_ptr<Peer>&, uint64_t, uint64_t key, uint64_t,
                  const absl::Status& why) override {
    Note([&] { rejected.emplace_back(key, why); });
  }
  void OnMessage(const std::shared_ptr<Peer>& peer, uint64_t type, uint64_t id,
                 std::string body) override {
    if (on_message) return on_message(peer, type, id, std::move(body));
    Note([&] { messages.push_back({type, id, std::move(body)}); });
  }
  void OnPeerLost(const std::shared_ptr<Peer>& peer, const absl::Status& why) override {
    Note([&] { lost.emplace_back(peer->info(), why); });
  }
  void OnStranger(const std::string&, const absl::Status& why) override {
    Note([&] { strangers.push_back(why); });
  }

  /// Waits until `condition` (which sees a consistent state) holds; false after ten seconds.
  bool Await(const std::function<bool()>& condition) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(10), condition);
  }

  /// A copy of one of the members below: more may come while a test looks.
  template <typename T>
  T Get(const T& member) {
    std::lock_guard<std::mutex> lock(mutex);
    return member;
  }

  // Set before the sink is used.
  std::function<absl::Status(const PeerInfo&)> on_hello;
  std::function<absl::Status(const IncomingTensor&)> admit;
  std::function<void(const std::shared_ptr<Peer>&, ReceivedTensor)> on_tensor;
  std::function<void(const std::shared_ptr<Peer>&, uint64_t, uint64_t, std::string)> on_message;
  bool keep_credits = false;

  // Guarded by the mutex.
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<Peer>> connected;
  std::vector<ReceivedTensor> tensors;
  std::vector<std::pair<uint64_t, absl::Status>> rejected;
  std::vector<Message> messages;
  std::vector<std::pair<PeerInfo, absl::Status>> lost;
  std::vector<absl::Status> strangers;

 private:
  template <typename F>
  void Note(F note) {
    std::lock_guard<std::mutex> lock(mutex);
    note();
    changed.notify_all();
  }
};

/// A task that listens on loopback.
struct Task {
  explicit Task(const std::string& name, TransportOptions options = {}) {
    options.task = name;
    auto created = Transport::Create(options, &sink);
    if (!created.ok()) return;
    transport = *std::move(created);
    port = transport->Listen("127.0.0.1", 0).value_or(0);
    address = "127.0.0.1:" + std::to_string(port);
  }
  ~Task() { Stop(); }
  void Stop(std::chrono::milliseconds drain = {}) {
    if (transport != nullptr) (void)transport->Stop(drain);
  }
  /// nullptr if it fails.
  std::shared_ptr<Peer> ConnectTo(const Task& other) {
    auto peer = ConnectNow(*transport, other.address);
    return peer.ok() ? *peer : nullptr;
  }

  RecordingSink sink;
  std::unique_ptr<Transport> transport;
  int port = 0;
  std::string address;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_NET_RECORDING_SINK_H_
