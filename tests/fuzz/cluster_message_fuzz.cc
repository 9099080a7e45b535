// Messages of the control plane, in any order, from anybody: a task survives them, and keeps
// nothing of those who are gone.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actors/cluster/node_role.h"

namespace troupe {
namespace {

class Outside final : public Outbox {
 public:
  void Send(PeerId, cluster::Message) override {}
};

/// Ends what it is given to do when it is told to, one after the other.
class Worker final : public WorkerEngine {
 public:
  std::vector<cluster::DeviceInfo> Devices() override { return {}; }
  void Register(cluster::Message, Done done) override {
    ends.push_back([done = std::move(done)] { done(absl::OkStatus()); });
  }
  void Deregister(const std::string&, const std::string&) override {}
  void DeleteSession(const std::string&) override {}
  void Start(cluster::Message, StepDone done) override {
    ends.push_back([done = std::move(done)] { done(absl::OkStatus(), {}); });
  }
  void Deliver(uint64_t, cluster::CrossingTensor) override {}
  void Abort(uint64_t, const absl::Status&) override {}
  void ResetContainers(const std::vector<std::string>&) override {}

  std::vector<std::function<void()>> ends;
};

class Master final : public MasterEngine {
 public:
  explicit Master(std::vector<std::function<void()>>* ends) : ends_(ends) {}
  void CreateGraph(const std::string&, cluster::Message, Done done) override { Later(done); }
  void ExtendGraph(const std::string&, cluster::Message, Done done) override { Later(done); }
  void DeleteGraph(const std::string&) override {}
  void Build(const std::string&, cluster::Message request, std::vector<cluster::DeviceInfo>,
             BuildDone done) override {
    BuiltStep built;
    BuiltStep::Part part;
    part.task = "/job:a/replica:0/task:0";
    for (int i = 0; i < request.feed_names_size(); ++i) part.feeds.push_back(i);
    for (int i = 0; i < request.fetch_names_size(); ++i) part.fetches.push_back(i);
    built.num_fetches = request.fetch_names_size();
    built.needs.resize(static_cast<size_t>(built.num_fetches));
    built.parts.push_back(part);
    ends_->push_back([done, built] { done(built); });
  }

 private:
  void Later(const Done& done) {
    ends_->push_back([done] { done(absl::OkStatus()); });
  }

  std::vector<std::function<void()>>* const ends_;
};

void Play(const uint8_t* data, size_t size) {
  Outside outside;
  Worker worker;
  Master master(&worker.ends);
  NodeRole::Options options;
  options.task = "/job:a/replica:0/task:0";
  options.incarnation = 5;
  options.tasks = {{"/job:a/replica:0/task:0", "h:1"}, {"/job:b/replica:0/task:0", "h:2"}};
  NodeRole node(options, &outside, &worker, &master, 0);
  ClusterTime now = 1;
  // Per message: who sends it, its length (2 bytes), and its bytes.
  while (size >= 3) {
    const uint8_t what = data[0];
    const size_t length = std::min<size_t>(data[1] | size_t{data[2]} << 8, size - 3);
    cluster::Message message;
    const bool is_message = message.ParseFromArray(data + 3, static_cast<int>(length));
    data += 3 + length;
    size -= 3 + length;
    const PeerId peer = (what & 1) != 0 ? 1 : kFirstClient + (what >> 6);
    now += kSecond / 10;
    if ((what & 2) != 0) node.Tick(now += kSecond);
    if ((what & 4) != 0) node.OnLinkDown(peer, now);
    if ((what & 8) != 0) {
      std::vector<std::function<void()>> ends = std::exchange(worker.ends, {});
      for (const auto& end : ends) end();
    }
    if (!is_message) continue;
    // Most inputs are to get past the first checks.
    if ((what & 16) != 0) {
      message.set_version(kProtocolVersion);
      message.set_incarnation(9);
      message.set_to_incarnation(0);
      message.set_task(peer == 1 ? options.tasks[1].name : "");
    }
    node.OnMessage(peer, std::move(message), now);
  }
  for (const PeerId peer :
       {PeerId{1}, kFirstClient, kFirstClient + 1, kFirstClient + 2, kFirstClient + 3}) {
    node.OnLinkDown(peer, now);
  }
  node.Stop(now);
  while (!worker.ends.empty()) {
    std::vector<std::function<void()>> ends = std::exchange(worker.ends, {});
    for (const auto& end : ends) end();
  }
  node.Tick(now + 100 * kSecond);
  if (node.worker()->num_sessions() != 0 || node.worker()->num_early_values() != 0 ||
      node.master()->num_sessions() != 0) {
    std::abort();
  }
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::Play(data, size);
  return 0;
}
