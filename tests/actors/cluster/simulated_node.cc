#include "tests/actors/cluster/simulated_node.h"

#include <utility>

#include "actors/runtime.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"

namespace troupe {

namespace {
constexpr ClusterTime kTick = kSecond / 10;
}

std::shared_ptr<SimulatedNode> SimulatedNode::Boot(const Options& options, Network* network) {
  std::shared_ptr<SimulatedNode> node(new SimulatedNode(options, network));
  node->Start();
  return node;
}

void SimulatedNode::Start() {
  if (!options_.client) {
    Runtime::Options runtime;
    runtime.threads = 1;
    runtime.job = "worker";
    runtime.task = options_.number;
    runtime_ = *Runtime::Create(runtime);
    variable_ = *runtime_->devices()[0]->containers.FindOrCreateVariable(
        Containers::kDefault, StrCat("v", options_.number), ElementType::kInt64,
        PartialShape(Shape({2})));
    variable_->TryLend().set_value(
        Tensor::Vector<int64_t>({static_cast<int64_t>(options_.role.incarnation), 0}));
    worker_ = std::make_unique<PartitionEngine>(runtime_, this);
    master_ = std::make_unique<GraphEngine>(this);
    SimulatedDataPlane::Options streams;
    streams.task = options_.number;
    streams.name = options_.role.task;
    streams.incarnation = options_.role.incarnation;
    std::copy(std::begin(options_.windows), std::end(options_.windows), streams.windows);
    SimulatedDataPlane::Events events;
    events.later = [this](ClusterTime when, Schedule::Event event) {
      Later(when, std::move(event));
    };
    events.tensor = [this](ReceivedTensor tensor) {
      auto credit = std::make_shared<CreditLease>(std::move(tensor.credit));
      worker_->Arrive(tensor.step, tensor.key, tensor.tag, tensor.dead, std::move(tensor.tensor),
                      std::move(credit));
    };
    events.message = [this](int task, const std::string& body) {
      cluster::Message message;
      if (message.ParseFromString(body)) OnMessage(static_cast<PeerId>(task), std::move(message));
    };
    events.lost = [this](int task, uint64_t incarnation) {
      const PeerId peer = static_cast<PeerId>(task);
      Enter([&] {
        network_->schedule->Trace(StrCat(name(), " lost its connection to ", task));
        if (role_->detector().incarnation(peer) == incarnation) role_->OnLinkDown(peer, now());
      });
    };
    data_ = std::make_unique<SimulatedDataPlane>(streams, std::move(events), &network_->streams);
  }
  role_ = std::make_unique<NodeRole>(options_.role, this, worker_.get(), master_.get(), now());
  if (!options_.client) {
    role_->set_watcher(
        [this](PeerId peer, FailureDetectorRole::Change change, uint64_t incarnation) {
          const int other = static_cast<int>(peer);
          if (change == FailureDetectorRole::Change::kUp) data_->Heard(other, incarnation);
          if (change == FailureDetectorRole::Change::kLost) data_->Drop(other);
        });
    role_->set_status_watcher([this](PeerId peer, uint64_t incarnation, const cluster::Message&) {
      data_->TaskUp(static_cast<int>(peer), options_.role.tasks[peer].name, incarnation,
                    role_->self() < peer);
    });
  }
  Tick();
}

SimulatedNode::~SimulatedNode() = default;

void SimulatedNode::Die(bool silently) {
  if (!std::exchange(alive_, false)) return;
  if (data_ != nullptr) data_->Die(silently);
  if (worker_ != nullptr) {
    // An executor cannot be taken away in the midst of its step: all steps are ended first. What
    // they do meanwhile is the dead task's own affair.
    role_->worker()->AbortAll(absl::CancelledError("dead"));
    while (!jobs_.empty()) {
      auto job = jobs_.extract(jobs_.begin());
      job.mapped()();
    }
    if (!worker_->idle()) network_->schedule->Violation("steps do not end when they are cancelled");
  }
  role_.reset();
  worker_.reset();
  master_.reset();
  jobs_.clear();
  variable_.reset();
  runtime_.reset();
}

void SimulatedNode::Later(ClusterTime when, Schedule::Event event) {
  network_->schedule->At(when, [self = shared_from_this(), event = std::move(event)]() mutable {
    if (!self->alive_) return;
    if (self->paused_until_ > self->now()) {
      self->Later(self->paused_until_, std::move(event));
    } else {
      event();
    }
  });
}

void SimulatedNode::Enter(std::function<void()> event) {
  if (!alive_) return;
  if (std::exchange(in_event_, true)) {
    network_->schedule->Violation("an event within an event: a lock would never be got");
  }
  event();
  while (!to_self_.empty()) {
    cluster::Message message = std::move(to_self_.front());
    to_self_.pop_front();
    role_->OnMessage(role_->self(), std::move(message), now());
  }
  in_event_ = false;
  for (auto& job : std::exchange(deferred_, {})) {
    job();
    network_->ran(this);
  }
}

void SimulatedNode::Together(absl::FunctionRef<void()> job) {
  job();
  if (alive_) network_->ran(this);
}

std::chrono::steady_clock::time_point SimulatedNode::JobClock() {
  // Now and then a step takes long.
  busy_ += network_->schedule->Chance(0.15) ? 200 : 1;
  return std::chrono::steady_clock::time_point(std::chrono::microseconds(busy_));
}

void SimulatedNode::Send(PeerId to, cluster::Message message) {
  if (!options_.client && to == role_->self()) {
    to_self_.push_back(std::move(message));
  } else if (!options_.messages_in_streams || options_.client || to >= kFirstClient ||
             message.to_incarnation() == 0 ||
             !data_->SendMessage(static_cast<int>(to), message.to_incarnation(),
                                 message.SerializeAsString())) {
    network_->send(this, to, std::move(message));
  }
}

void SimulatedNode::OnMessage(PeerId from, cluster::Message message) {
  if (network_->schedule->tracing()) {
    network_->schedule->Trace(StrCat(name(), " <- ", from, " ", cluster::Kind_Name(message.kind()),
                                     " ", cluster::Method_Name(message.method()), " id ",
                                     message.id(), " life ", message.incarnation(), " to ",
                                     message.to_incarnation(), " ", message.session(), " ",
                                     message.handle(), " step ", message.step(), " code ",
                                     message.code(), " ", message.error()));
  }
  Enter([&] { role_->OnMessage(from, std::move(message), now()); });
}

void SimulatedNode::OnLinkDown(PeerId peer) {
  network_->schedule->Trace(StrCat(name(), " lost its link to ", peer));
  Enter([&] { role_->OnLinkDown(peer, now()); });
}

void SimulatedNode::Tick() {
  Later(now() + kTick, [this] {
    Enter([this] { role_->Tick(now()); });
    Tick();
  });
}

void SimulatedNode::Post(std::function<void()> job) {
  const uint64_t number = next_job_++;
  jobs_[number] = std::move(job);
  if (!alive_) return;
  Schedule& schedule = *network_->schedule;
  const ClusterTime wait = schedule.Chance(options_.slow_jobs) ? schedule.Between(200, kSecond)
                                                               : schedule.Between(1, 100);
  Later(now() + wait, [this, number] { RunJob(number); });
}

void SimulatedNode::RunJob(uint64_t number) {
  auto job = jobs_.extract(number);
  job.mapped()();
  network_->ran(this);
}

void SimulatedNode::SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag,
                               bool dead, Tensor value) {
  if (!alive_) return;
  PeerId to = 0;
  while (options_.role.tasks[to].name != task) ++to;
  absl::Status status = data_->Send(static_cast<int>(to), {step, key, tag, dead, value});
  if (absl::IsNotFound(status)) {
    // As long as there is no connection, values go with the messages.
    cluster::Message message;
    message.set_version(kProtocolVersion);
    message.set_task(options_.role.task);
    message.set_incarnation(options_.role.incarnation);
    message.set_kind(cluster::TENSOR);
    message.set_step(step);
    cluster::CrossingTensor* crossing = message.mutable_crossing();
    crossing->set_key(key);
    crossing->set_tag(tag);
    crossing->set_dead(dead);
    if (!dead) TensorToProto(value, crossing->mutable_value());
    network_->send(this, to, std::move(message));
  } else if (!status.ok()) {
    Post([this, step, status] { Enter([&] { role_->worker()->OnSendFailed(step, status); }); });
  }
}

int64_t SimulatedNode::sum() { return variable_->TryLend().value().unchecked_values<int64_t>()[1]; }

void SimulatedNode::CheckNone(size_t count, const char* what) {
  if (count == 0) return;
  network_->schedule->Violation(StrCat(options_.role.task, " still has ", count, " ", what));
}

void SimulatedNode::CheckNoGraphs() {
  CheckNone(role_->master()->num_signatures(), "signatures");
  CheckNone(role_->worker()->num_graphs(), "graphs as worker");
  CheckNone(worker_->num_graphs(), "graphs in its engine");
}

void SimulatedNode::CheckNothingLeft() {
  CheckNone(role_->master()->num_steps(), "steps as master");
  CheckNone(role_->master()->num_sessions(), "sessions as master");
  CheckNone(role_->worker()->num_steps(), "steps as worker");
  CheckNone(role_->worker()->num_sessions(), "sessions as worker");
  CheckNone(role_->worker()->num_early_values(), "values without a step");
  CheckNone(role_->calls()->num_unanswered(), "requests that are not answered");
  CheckNone(worker_->num_steps(), "steps under way");
  CheckNone(worker_->num_sessions(), "sessions in its engine");
  CheckNone(worker_->num_early_steps(), "steps with values that came too early");
  CheckNone(master_->num_sessions(), "graphs of sessions");
  CheckNone(jobs_.size(), "jobs that did not run");
  data_->CheckNothingLeft();
}

}  // namespace troupe
