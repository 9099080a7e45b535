/// A task of a cluster without a network: the real roles and engines, played by whoever sends it
/// messages. For fuzz targets and tests of bad messages.

#ifndef TROUPE_TESTS_ACTORS_CLUSTER_TASK_NODE_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_TASK_NODE_H_

#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/cluster/engine.h"
#include "actors/cluster/graph_engine.h"
#include "actors/cluster/node_role.h"
#include "actors/cluster/partition_engine.h"

namespace troupe {

/// Task 0 of two, which serves as worker and master. Graphs are compiled and never run: what a
/// graph does is its owner's right, for ever and with all of the memory.
class TaskNode final : public EngineHost, public Outbox, public WorkerEngine {
 public:
  TaskNode() : master_(this) {
    HostAllocator()->set_limit(64 << 20);
    Runtime::Options runtime;
    runtime.threads = 1;
    runtime.job = "a";
    runtime_ = *Runtime::Create(runtime);
    worker_ = std::make_unique<PartitionEngine>(runtime_, this);
    NodeRole::Options options;
    options.task = Task(0);
    options.incarnation = 5;
    options.tasks = {{Task(0), "h:1"}, {Task(1), "h:2"}};
    options.worker.max_early_feeds = 1000;
    options.worker.max_early_bytes = 1 << 20;
    role_ = std::make_unique<NodeRole>(options, this, this, &master_, now_);
  }
  static std::string Task(int number) { return "/job:a/replica:0/task:" + std::to_string(number); }

  NodeRole* role() { return role_.get(); }
  /// What was sent, oldest first.
  std::deque<std::pair<PeerId, cluster::Message>>& sent() { return sent_; }
  void OnMessage(PeerId from, cluster::Message message) {
    Enter([&] { role_->OnMessage(from, std::move(message), now_); });
    RunJobs();
  }
  void OnLinkDown(PeerId peer) {
    Enter([&] { role_->OnLinkDown(peer, now_); });
    RunJobs();
  }
  void Pass(ClusterTime time) {
    now_ += time;
    Enter([&] { role_->Tick(now_); });
    RunJobs();
  }
  /// Ends everything; nothing may be left.
  void Stop() {
    Enter([&] { role_->Stop(now_); });
    RunJobs();
    for (const auto& step : std::exchange(started_, {})) {
      Enter([&] { step.second(absl::CancelledError("stopped"), {}); });
    }
    RunJobs();
    Pass(121 * kSecond);
    if (role_->worker()->num_sessions() + role_->worker()->num_steps() +
            role_->worker()->num_early_feeds() + role_->master()->num_sessions() +
            worker_->counts().sessions + worker_->counts().early + master_.num_sessions() >
        0) {
      std::abort();
    }
  }

  // EngineHost.
  bool has_threads() const override { return false; }
  void Post(std::function<void()> job) override { jobs_.push_back(std::move(job)); }
  void Defer(std::function<void()> job) override { jobs_.push_back(std::move(job)); }
  void Enter(absl::FunctionRef<void()> event) override {
    if (std::exchange(in_event_, true)) std::abort();
    event();
    while (!to_self_.empty()) {
      cluster::Message message = std::move(to_self_.front());
      to_self_.pop_front();
      role_->OnOwnMessage(std::move(message), now_);
    }
    in_event_ = false;
  }
  void Together(absl::FunctionRef<void()> job) override { job(); }
  void SendTensor(const std::string&, uint64_t, uint64_t, uint64_t, bool, Tensor) override {}

  // Outbox.
  void Send(PeerId to, cluster::Message message) override {
    if (role_ != nullptr && to == role_->self()) {
      to_self_.push_back(std::move(message));
      return;
    }
    sent_.emplace_back(to, std::move(message));
    if (sent_.size() > 64) sent_.pop_front();
  }

  // WorkerEngine.
  std::vector<cluster::DeviceInfo> Devices() override { return worker_->Devices(); }
  void Register(cluster::RegisterGraphRequest request, Done done) override {
    worker_->Register(std::move(request), std::move(done));
  }
  void Deregister(const std::string& session, const std::string& handle) override {
    worker_->Deregister(session, handle);
  }
  void DeleteSession(const std::string& session) override { worker_->DeleteSession(session); }
  void Start(cluster::RunGraphRequest request, StepDone done) override {
    started_[request.step()] = std::move(done);
  }
  std::string TakeTrace(uint64_t) override { return std::string(1000, 't'); }
  void Forget(uint64_t step) override { worker_->Forget(step); }
  std::vector<uint64_t> DropEarly(ClusterTime now, ClusterTime older_than) override {
    return worker_->DropEarly(now, older_than);
  }
  void Abort(uint64_t step, const absl::Status& status) override {
    Post([this, step, status] {
      auto it = started_.find(step);
      if (it == started_.end()) return;
      const StepDone done = std::move(it->second);
      started_.erase(it);
      Enter([&] { done(status, {}); });
    });
  }
  void States(const std::string& session, StatesDone done) override {
    worker_->States(session, std::move(done));
  }
  void GetResources(const cluster::GetResourcesRequest& request, ResourcesDone done) override {
    worker_->GetResources(request, std::move(done));
  }
  void SetResource(cluster::SetResourceRequest request, Done done) override {
    worker_->SetResource(std::move(request), std::move(done));
  }
  void ResetContainers(const std::vector<std::string>& containers) override {
    worker_->ResetContainers(containers);
  }

 private:
  void RunJobs() {
    while (!jobs_.empty()) {
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      job();
    }
  }

  ClusterTime now_ = kSecond;
  bool in_event_ = false;
  std::deque<std::function<void()>> jobs_;
  std::deque<cluster::Message> to_self_;
  std::deque<std::pair<PeerId, cluster::Message>> sent_;
  std::map<uint64_t, StepDone> started_;
  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<PartitionEngine> worker_;
  GraphEngine master_;
  std::unique_ptr<NodeRole> role_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_TASK_NODE_H_
