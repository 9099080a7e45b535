#include "api/training/queue_runner.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "api/internal/session_interface.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/path.h"
#include "graph/protos/meta_graph.pb.h"
#include "troupe/api/ops.h"

namespace troupe {
namespace {

/// A runner in a session. Kept alive by the steps that are under way, and by whoever holds it.
class Running final : public RunningQueueRunner, public std::enable_shared_from_this<Running> {
 public:
  Running(std::string name, std::string queue, Node* close, Node* cancel,
          std::vector<absl::StatusCode> closed, Session* session, RunningQueueRunners* all,
          size_t num_enqueues)
      : name_(std::move(name)),
        queue_(std::move(queue)),
        close_(close),
        cancel_(cancel),
        closed_(std::move(closed)),
        session_(session),
        all_(all),
        num_running_(num_enqueues) {}

  /// The next step of an enqueue, or the end of its chain.
  void Enqueue(Node* node, Coordinator::Member member) {
    if (member.should_stop()) return End(/*queue_closed=*/false, std::move(member));
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (holders_ > 0) return held_back_.emplace_back(node, std::move(member)), void();
      ++num_steps_;
    }
    session_->RunAsync(FeedMap{}, {}, {node},
                       [self = shared_from_this(), node, member = std::move(member)](
                           absl::StatusOr<std::vector<Tensor>> result) mutable {
                         self->StepOver();
                         if (result.ok()) return self->Enqueue(node, std::move(member));
                         self->Fail(node, result.status(), std::move(member));
                       });
  }
  const std::string& queue() const override { return queue_; }
  void Hold() override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++holders_;
  }
  void Release() override {
    std::vector<std::pair<Node*, Coordinator::Member>> held_back;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (--holders_ == 0) held_back.swap(held_back_);
    }
    for (auto& [node, member] : held_back) Enqueue(node, std::move(member));
  }
  int64_t num_steps() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return num_steps_;
  }
  /// The coordinator stops: whoever waits at the queue goes on.
  void Stop() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (num_running_ == 0 || cancel_ == nullptr) return;
    // Steps of this session are under way, so that it exists.
    session_->RunAsync(FeedMap{}, {}, {cancel_},
                       [self = shared_from_this()](absl::StatusOr<std::vector<Tensor>>) {});
  }

 private:
  void StepOver() {
    std::lock_guard<std::mutex> lock(mutex_);
    --num_steps_;
  }
  void Fail(Node* node, const absl::Status& status, Coordinator::Member member) {
    const bool queue_closed = std::count(closed_.begin(), closed_.end(), status.code()) > 0;
    if (!queue_closed && !member.should_stop()) {
      const absl::Status why =
          WithContext(StrCat("queue runner of ", name_, ", ", node->name(), ": "), status);
      all_->Fail(why);  // Before anything is closed.
      member.RequestStop(why);
    }
    End(queue_closed, std::move(member));
  }
  void End(bool queue_closed, Coordinator::Member member) {
    std::lock_guard<std::mutex> lock(mutex_);
    all_closed_ &= queue_closed;
    if (--num_running_ > 0) return;
    // Nobody fills the queue from here on: whoever waits at it goes on. The last one goes when that
    // is done.
    Node* const last = all_closed_ ? close_ : cancel_;
    if (last == nullptr) return;
    session_->RunAsync(FeedMap{}, {}, {last},
                       [member = std::move(member)](absl::StatusOr<std::vector<Tensor>>) {});
  }

  const std::string name_, queue_;
  Node* const close_;
  Node* const cancel_;
  const std::vector<absl::StatusCode> closed_;
  Session* const session_;
  RunningQueueRunners* const all_;  ///< The session's.
  mutable std::mutex mutex_;
  size_t num_running_;
  int64_t num_steps_ = 0;  ///< Under way.
  int holders_ = 0;
  std::vector<std::pair<Node*, Coordinator::Member>> held_back_;  ///< Steps to begin then.
  bool all_closed_ = true;
};

absl::StatusOr<Node*> Named(const Graph& graph, const std::string& name) {
  if (name.empty()) return nullptr;
  const std::string node = name.substr(0, name.find(':'));
  if (Node* found = graph.FindNode(node)) return found;
  return absl::NotFoundError(StrCat("a queue runner names node '", node, "', which is not there"));
}

}  // namespace

QueueRunner::QueueRunner(const Scope& scope, const Output& queue, std::vector<Node*> enqueues,
                         std::vector<absl::StatusCode> closed, Node* close, Node* cancel)
    : enqueues_(std::move(enqueues)), close_(close), cancel_(cancel), closed_(std::move(closed)) {
  if (!scope.ok()) return;
  const bool missing = std::count(enqueues_.begin(), enqueues_.end(), nullptr) > 0;
  if (!queue.valid() || enqueues_.empty() || missing) {
    scope.UpdateStatus(InvalidArgument("a queue runner needs a queue and the nodes that fill it"));
    return;
  }
  name_ = queue.node->name();
  // As TensorFlow calls them.
  const Scope closing = scope.WithOpName(StrCat(PathBase(name_), "_Close"));
  if (close_ == nullptr) close_ = ops::QueueCloseV2(closing, queue);
  if (cancel_ == nullptr) {
    cancel_ = ops::QueueCloseV2(closing, queue, {.cancel_pending_enqueues = true});
  }
  if (!scope.ok()) return;
  scope.graph()->AddToCollection(collections::kQueueRunners, ToProto().SerializeAsString());
}

absl::StatusOr<QueueRunner> QueueRunner::FromProto(const Graph& graph, const QueueRunnerDef& def) {
  QueueRunner runner;
  runner.name_ = def.queue_name();
  for (const std::string& name : def.enqueue_op_name()) {
    TROUPE_ASSIGN_OR_RETURN(runner.enqueues_.emplace_back(), Named(graph, name));
    if (runner.enqueues_.back() == nullptr) {
      return InvalidArgument("the queue runner of '", runner.name_, "' has an enqueue of no name");
    }
  }
  TROUPE_ASSIGN_OR_RETURN(runner.close_, Named(graph, def.close_op_name()));
  TROUPE_ASSIGN_OR_RETURN(runner.cancel_, Named(graph, def.cancel_op_name()));
  for (const int code : def.queue_closed_exception_types()) {
    runner.closed_.push_back(static_cast<absl::StatusCode>(code));
  }
  // What TensorFlow takes for it if nothing is said.
  if (runner.closed_.empty()) runner.closed_ = {absl::StatusCode::kOutOfRange};
  return runner;
}

QueueRunnerDef QueueRunner::ToProto() const {
  QueueRunnerDef def;
  def.set_queue_name(name_);
  for (const Node* node : enqueues_) def.add_enqueue_op_name(node->name());
  if (close_ != nullptr) def.set_close_op_name(close_->name());
  if (cancel_ != nullptr) def.set_cancel_op_name(cancel_->name());
  for (const absl::StatusCode code : closed_) {
    def.add_queue_closed_exception_types(static_cast<error::Code>(code));
  }
  return def;
}

absl::StatusOr<std::vector<QueueRunner>> QueueRunner::OfGraph(const Graph& graph) {
  std::vector<QueueRunner> runners;
  for (const std::string& text : graph.Collection(collections::kQueueRunners)) {
    QueueRunnerDef def;
    if (!def.ParseFromString(text)) {
      return InvalidArgument("collection '", collections::kQueueRunners,
                             "' of the graph holds what is no QueueRunnerDef");
    }
    TROUPE_ASSIGN_OR_RETURN(runners.emplace_back(), FromProto(graph, def));
  }
  return runners;
}

absl::Status QueueRunner::Start(Session& session, Coordinator& coordinator) const {
  if (enqueues_.empty()) return InvalidArgument("a queue runner without enqueues was started");
  auto running = std::make_shared<Running>(name_, queue_node(), close_, cancel_, closed_, &session,
                                           session.impl_->queue_runners(), enqueues_.size());
  session.impl_->queue_runners()->Add(running);
  std::vector<Coordinator::Member> members;
  for (size_t i = 0; i < enqueues_.size(); ++i) {
    members.push_back(coordinator.Register(StrCat("queue runner of ", name_, ", ", i)));
  }
  for (size_t i = 0; i < enqueues_.size(); ++i) running->Enqueue(enqueues_[i], members[i]);
  members.clear();
  coordinator.OnStop([weak = std::weak_ptr<Running>(running)] {
    if (const auto running = weak.lock()) running->Stop();
  });
  return absl::OkStatus();
}

absl::Status StartQueueRunners(Session& session, Coordinator& coordinator) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<QueueRunner> runners,
                          QueueRunner::OfGraph(*session.graph()));
  for (const QueueRunner& runner : runners) {
    TROUPE_RETURN_IF_ERROR(runner.Start(session, coordinator));
  }
  return absl::OkStatus();
}

}  // namespace troupe
