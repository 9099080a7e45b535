#include "tests/actors/cluster/simulated_node.h"

#include <new>
#include <utility>

#include "actors/runtime.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/queues/accumulator.h"
#include "kernels/queues/queue.h"
#include "kernels/sync/synchronizer_options.h"

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
    runtime.clock = this;
    runtime_ = *Runtime::Create(runtime);
    variable_ = *runtime_->devices()[0]->containers.FindOrCreateVariable(
        Containers::kDefault, StrCat("v", options_.number), ElementType::kInt64,
        PartialShape(Shape({2})));
    variable_->TryLend().set_value(
        Tensor::Vector<int64_t>({static_cast<int64_t>(options_.role.incarnation), 0}));
    worker_ = std::make_unique<PartitionEngine>(runtime_, this);
    master_ = std::make_unique<GraphEngine>(this);
  }
  MakeLinks();
  if (network_->applications != nullptr && (!options_.client || options_.member)) {
    application_ = network_->applications->Boot(this);
    links_->SetFrameSink(application_->frame_sink());
  }
  role_ = std::make_unique<NodeRole>(options_.role, this, worker_.get(), master_.get(), now());
  role_->set_watcher([this](PeerId peer, FailureDetectorRole::Change change, uint64_t) {
    if (change == FailureDetectorRole::Change::kLost) links_->Drop(peer);
  });
  role_->set_member_watcher([this](PeerId peer, const std::string& task, const std::string&) {
    if (!task.empty()) {
      Play([&] { links_->SetTask(peer, task, task.substr(task.rfind(':') + 1)); });
    } else if (peer != role_->self()) {
      Defer([this, peer] { links_->RemoveTask(peer); });
    } else {
      network_->left(this);
    }
  });
  Tick();
}

void SimulatedNode::MakeLinks() {
  SimulatedTransport::Options streams;
  streams.process = options_.process;
  streams.name = links_name();
  streams.incarnation = options_.role.incarnation;
  streams.serves = !options_.client || options_.member;
  std::copy(std::begin(options_.windows), std::end(options_.windows), streams.windows);
  transport_ = std::make_unique<SimulatedTransport>(
      streams, [this](ClusterTime when, Schedule::Event event) { Later(when, std::move(event)); },
      &network_->streams);
  // As in `NodeShell`.
  Links::Events events;
  events.number = [this](const PeerInfo& info) -> absl::StatusOr<PeerId> {
    if (options_.client && !options_.member) return PeerId{0};
    if (info.task.starts_with("client")) return ClientPeer(info.incarnation);
    TROUPE_ASSIGN_OR_RETURN(const Links::Task task, links_->FindTask(info.task));
    return task.id;
  };
  events.up = [this](PeerId peer, uint64_t incarnation) {
    network_->schedule->Trace(StrCat(name(), " is linked with ", peer, ", life ", incarnation));
    Enter([&] { role_->OnLinkUp(peer, incarnation, now()); });
  };
  events.lost = [this](PeerId peer, uint64_t) {
    network_->schedule->Trace(StrCat(name(), " lost its link with ", peer));
    Enter([&] { role_->OnLinkDown(peer, now()); });
  };
  events.unreachable = [this](PeerId peer, const std::vector<uint64_t>& steps,
                              const absl::Status& why) {
    network_->schedule->Trace(
        StrCat(name(), " cannot reach ", peer, " with ", steps.size(), " values: ", why.message()));
    Enter([&] { role_->OnUnreachable(peer, steps, why, now()); });
  };
  events.message = [this](PeerId from, const std::string& bytes, const std::vector<Tensor>&,
                          const absl::Status&) {
    cluster::Message message;
    if (message.ParseFromString(bytes)) OnMessage(from, std::move(message));
  };
  events.tensor = [this](ReceivedTensor tensor) {
    network_->schedule->Trace(StrCat(name(), " gets a value of step ", tensor.step));
    auto credit = std::make_shared<CreditLease>(std::move(tensor.credit));
    worker_->Arrive(tensor.step, tensor.key, tensor.tag, tensor.dead, std::move(tensor.tensor),
                    std::move(credit));
  };
  events.undelivered = [this](uint64_t step, const absl::Status& why) {
    Post([this, step, why] { Enter([&] { role_->worker()->OnSendFailed(step, why); }); });
  };
  events.tick = [this] { Enter([this] { role_->Tick(now()); }); };
  links_ = std::make_unique<Links>(
      streams.name, std::chrono::milliseconds(1667), std::move(events),
      [this](const std::string& address, const ConnectOptions& how, Transport::Connected done) {
        transport_->Connect(address, how, std::move(done));
      });
  transport_->set_sink(links_.get());
  for (PeerId i = 0; i < options_.role.tasks.size(); ++i) {
    links_->SetTask(i, options_.role.tasks[i].name, std::to_string(options_.processes[i]));
  }
}

SimulatedNode::~SimulatedNode() = default;

void SimulatedNode::Die(bool silently) {
  if (!std::exchange(alive_, false)) return;
  links_->Stop(std::chrono::milliseconds(0));
  links_->SetFrameSink(nullptr);
  transport_->Die(silently);
  if (worker_ != nullptr) {
    // An executor cannot be taken away in the midst of its step: all steps are ended first. What
    // they do meanwhile is the dead task's own affair.
    Play([this] {
      role_->worker()->AbortAll(absl::CancelledError("dead"));
      while (!jobs_.empty()) {
        auto job = jobs_.extract(jobs_.begin());
        job.mapped()();
      }
    });
    if (!worker_->idle()) network_->schedule->Violation("steps do not end when they are cancelled");
  }
  role_.reset();
  worker_.reset();
  master_.reset();
  application_.reset();
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
      self->Play([&] { event(); });
    }
  });
}

void SimulatedNode::Play(absl::FunctionRef<void()> event) {
  application_ != nullptr ? application_->Play(event) : event();
}

void SimulatedNode::Enter(absl::FunctionRef<void()> event) {
  if (!alive_) return;
  if (std::exchange(in_event_, true)) {
    network_->schedule->Violation("an event within an event: a lock would never be got");
  }
  KeepGoing(event);
  while (!to_self_.empty()) {
    cluster::Message message = std::move(to_self_.front());
    to_self_.pop_front();
    role_->OnOwnMessage(std::move(message), now());
  }
  in_event_ = false;
  for (auto& [to, message] : std::exchange(outgoing_, {})) {
    links_->Send(to, message.SerializeAsString());
  }
  for (auto& job : std::exchange(deferred_, {})) {
    job();
    network_->ran(this);
  }
}

void SimulatedNode::Together(absl::FunctionRef<void()> job) {
  job();
  if (alive_) network_->ran(this);
}

uint64_t SimulatedNode::NowNs() {
  // Now and then a step takes long.
  busy_ += network_->schedule->Chance(0.15) ? 200 : 1;
  return static_cast<uint64_t>(busy_) * 1000;
}

void SimulatedNode::Send(PeerId to, cluster::Message message) {
  if (options_.no_memory != nullptr && network_->schedule->Chance(*options_.no_memory)) {
    throw std::bad_alloc();
  }
  if (!options_.client && to == role_->self()) {
    to_self_.push_back(std::move(message));
  } else {
    outgoing_.emplace_back(to, std::move(message));
  }
}

void SimulatedNode::OnMessage(PeerId from, cluster::Message message) {
  network_->schedule->Mark(message.id() * 31 + static_cast<uint64_t>(message.body_case()));
  if (network_->schedule->tracing()) {
    network_->schedule->Trace(StrCat(name(), " <- ", from, " ",
                                     message.has_status() ? "reply " : "",
                                     message.ShortDebugString().substr(0, 400)));
  }
  bool handled = false;
  Enter([&] {
    role_->OnMessage(from, std::move(message), now());
    handled = true;
  });
  if (!handled && alive_) links_->Lose(from, absl::InternalError("it was not handled"));
}

void SimulatedNode::Tick() {
  Later(now() + kTick, [this] {
    links_->OnTick();
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
  network_->schedule->Trace(StrCat(name(), " sends a value of step ", step, " to ", task));
  const absl::StatusOr<Links::Task> to = links_->FindTask(task);
  if (to.ok()) {
    links_->Send(to->id, {step, key, tag, dead, std::move(value)});
  } else {
    Post([this, step, status = absl::UnavailableError(to.status().message())] {
      Enter([&] { role_->worker()->OnSendFailed(step, status); });
    });
  }
}

int64_t SimulatedNode::sum() { return variable_->TryLend().value().unchecked_values<int64_t>()[1]; }

std::vector<int64_t> SimulatedNode::EmptyQueue() {
  std::vector<int64_t> numbers;
  auto queue = FindWaiting<Queue>(&runtime_->devices()[0]->containers, Containers::kDefault,
                                  StrCat("q", options_.number));
  if (!queue.ok()) return numbers;
  const auto take = [&](absl::StatusOr<Tuple> element) {
    numbers.push_back(element.ok() ? (*element)[0].unchecked_values<int64_t>()[1] : -1);
  };
  while ((*queue)->Size() > 0) (*queue)->Dequeue(nullptr, take);
  // If somebody still waits for an element, this one is its.
  (*queue)->Enqueue({Tensor::Vector<int64_t>({0, 0})}, nullptr, [](absl::StatusOr<Tuple>) {});
  CheckNone((*queue)->Size() != 1, "calls that wait for elements");
  CancellationToken token;
  (*queue)->Dequeue(&token, [](absl::StatusOr<Tuple>) {});
  token.Cancel(absl::CancelledError("over"));
  return numbers;
}

template <typename T>
RefPtr<T> SimulatedNode::Find(const char* kind) {
  auto found = FindWaiting<T>(&runtime_->devices()[0]->containers, Containers::kDefault,
                              StrCat(kind, options_.number));
  return found.ok() ? *found : nullptr;
}

std::vector<int64_t> SimulatedNode::EmptyStage() {
  std::vector<int64_t> numbers;
  const auto stage = Find<TupleStage>("s");
  if (!stage) return numbers;
  const auto take = [&](absl::StatusOr<Tuple> tuple) {
    numbers.push_back(tuple.ok() ? (*tuple)[0].unchecked_values<int64_t>()[1] : -1);
  };
  while (stage->Size() > 0) stage->Take({ElementType::kInt64}, nullptr, take);
  // If somebody still waits for a tuple, this one is its.
  stage->Put({Tensor::Vector<int64_t>({0, 0})}, nullptr, [](absl::StatusOr<Tuple>) {});
  CheckNone(stage->Size() != 1, "calls that wait for tuples");
  stage->Clear([](absl::StatusOr<Tuple>) {});
  return numbers;
}

std::vector<int64_t> SimulatedNode::EmptyBarrier() {
  std::vector<int64_t> numbers;
  const auto barrier = Find<TupleBarrier>("b");
  if (!barrier) return numbers;
  const auto take = [&](absl::StatusOr<Tuple> tuple) {
    numbers.push_back(tuple.ok() ? (*tuple)[2].unchecked_values<int64_t>()[1] : -1);
  };
  while (barrier->ReadySize() > 0) barrier->Take(1, false, nullptr, take);
  // If somebody still waits, these are its.
  constexpr int kEnough = 2;
  const auto keys = Tensor::Vector<std::string>({"a", "b"});
  const auto values = Tensor::Vector<int64_t>({0, 0, 0, 0}).Reshaped(Shape({kEnough, 2}));
  for (int i = 0; i < 2; ++i) {
    barrier->Insert(i, keys, values, nullptr, [](absl::StatusOr<Tuple>) {});
  }
  CheckNone(barrier->ReadySize() != kEnough, "calls that wait for a barrier");
  return numbers;
}

void SimulatedNode::CheckNobodyLocks() {
  const auto mutex = Find<Mutex>("m");
  if (!mutex) return;
  CheckNone(mutex->held(), "mutex that is held");
  mutex->Lock(nullptr, [](absl::StatusOr<Tuple>) {});
  CheckNone(mutex->held(), "calls that wait for a mutex");
}

SimulatedNode::Entries SimulatedNode::TableEntries() {
  Entries entries;
  const auto table = Find<LookupTable>("t");
  if (!table) return entries;
  const auto keep = [&](absl::StatusOr<Tuple> exported) {
    if (!exported.ok()) return;
    const auto keys = (*exported)[0].unchecked_values<int64_t>();
    const auto values = (*exported)[1].unchecked_values<int64_t>();
    entries.keys.assign(keys.begin(), keys.end());
    entries.values.assign(values.begin(), values.end());
  };
  table->Export(nullptr, keep);
  bool over = false;
  table->Remove(Tensor::Vector<int64_t>({0}), nullptr,
                [&](absl::StatusOr<Tuple> removed) { over = removed.ok(); });
  CheckNone(over ? 0 : 1, "calls that hold a table");
  return entries;
}

SimulatedNode::Gradients SimulatedNode::EmptyAccumulator() {
  Gradients left;
  auto accumulator = FindWaiting<Accumulator>(&runtime_->devices()[0]->containers,
                                              Containers::kDefault, StrCat("a", options_.number));
  if (!accumulator.ok()) return left;
  left.count = (*accumulator)->NumAccumulated();
  const auto keep = [&](absl::StatusOr<Tuple> mean) {
    if (!mean.ok()) return;
    const auto rows = (*mean)[0].unchecked_values<int64_t>();
    const auto values = (*mean)[1].unchecked_values<double>();
    left.rows.assign(rows.begin(), rows.end());
    left.values.assign(values.begin(), values.end());
  };
  if (left.count > 0) (*accumulator)->TakeGradient(left.count, nullptr, keep);
  // If somebody still waits for gradients, these are its.
  constexpr int kEnough = 2;
  for (int i = 0; i < kEnough; ++i) {
    (*accumulator)
        ->ApplyGradient(INT64_MAX,
                        {Tensor::Vector<int64_t>({0}), Tensor::Vector<double>({0}),
                         Tensor::Vector<int64_t>({-1})},
                        nullptr, [](absl::StatusOr<Tuple>) {});
  }
  CheckNone((*accumulator)->NumAccumulated() != kEnough, "calls that wait for gradients");
  return left;
}

void SimulatedNode::CheckNone(size_t count, const char* what) {
  if (count == 0) return;
  network_->schedule->Violation(StrCat(options_.role.task, " still has ", count, " ", what));
}

void SimulatedNode::CheckNoGraphs() {
  CheckNone(role_->master()->num_signatures(), "signatures");
  CheckNone(role_->worker()->num_graphs(), "graphs as worker");
  CheckNone(worker_->counts().graphs, "graphs in its engine");
}

void SimulatedNode::CheckNothingLeft() {
  CheckNone(role_->master()->num_steps(), "steps as master");
  CheckNone(role_->master()->num_sessions(), "sessions as master");
  CheckNone(role_->worker()->num_steps(), "steps as worker");
  CheckNone(role_->worker()->num_sessions(), "sessions as worker");
  CheckNone(role_->worker()->num_early_feeds(), "feeds without a step");
  CheckNone(role_->calls()->num_unanswered(), "requests that are not answered");
  CheckNone(worker_->counts().steps, "steps under way");
  CheckNone(worker_->counts().sessions, "sessions in its engine");
  CheckNone(worker_->counts().early, "steps with values that came too early");
  CheckNone(master_->num_sessions(), "graphs of sessions");
  CheckNone(jobs_.size(), "jobs that did not run");
  transport_->CheckNothingLeft();
  if (application_ != nullptr) application_->CheckNothingLeft();
}

}  // namespace troupe
