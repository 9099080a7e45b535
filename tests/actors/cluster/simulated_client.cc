#include "tests/actors/cluster/simulated_client.h"

#include <utility>

#include "devices/status_macros.h"
#include "devices/tensor_proto.h"

namespace troupe {

namespace {

void SetNames(const SimulatedWork& work, cluster::Signature* signature) {
  signature->add_feeds("delta:0");
  if (work.named()) signature->add_feeds("key:0");
  for (const std::string& fetch : work.fetches) signature->add_fetches(fetch);
}

}  // namespace

SimulatedClient::SimulatedClient(ClusterSimulator* simulator, Options options)
    : simulator_(simulator), options_(std::move(options)) {
  SimulatedGraph written = WriteSimulatedGraph(simulator->num_tasks(), options_.work);
  work_ = std::move(written.work);
  graph_ = std::move(written.graph);
}

void SimulatedClient::Start() {
  id_ = simulator_->AddClient(options_.master);
  ++life_;
  session_.clear();
  Soon(options_.think);
}

void SimulatedClient::Stop() {
  stopped_ = true;
  if (!session_.empty()) Close();
}

void SimulatedClient::Kill() {
  ++life_;
  session_.clear();
  simulator_->KillClient(id_);
}

void SimulatedClient::Soon(ClusterTime at_most) {
  simulator_->schedule()->After(simulator_->schedule()->Between(1, at_most), [this, life = life_] {
    if (life == life_ && !stopped_) Next();
  });
}

void SimulatedClient::Next() {
  if (resting_) {
    Soon(options_.think);
  } else if (!simulator_->HasMaster(id_)) {
    last_ = absl::UnavailableError("there is no master");
    Soon(kSecond / 2);
  } else if (session_.empty()) {
    Create();
  } else {
    Run();
  }
}

void SimulatedClient::Answered(const absl::Status& status) {
  codes_.insert(status.code());
  last_ = status;
}

void SimulatedClient::Create() {
  cluster::Message request;
  request.mutable_create_session()->set_graph(graph_);
  const uint64_t call = simulator_->Call(
      id_, std::move(request), 25 * kSecond,
      [this, life = life_](const absl::Status& status, const cluster::Message& reply) {
        if (life != life_) return;
        Answered(status);
        if (status.ok()) session_ = reply.create_session_reply().session();
        callables_.clear();
        Soon(options_.think);
      });
  if (call != 0) Disturb(call);
}

void SimulatedClient::Run() {
  Schedule& schedule = *simulator_->schedule();
  const SimulatedWork& work = work_[schedule.Between(0, static_cast<int64_t>(work_.size()) - 1)];
  if (options_.callables && callables_[work.name].empty()) {
    MakeCallable(work);
    return;
  }
  const int64_t number = Begin(work);
  cluster::Message request;
  cluster::RunStepRequest* run = request.mutable_run_step();
  run->set_session(session_);
  run->set_timeout_us(work.waits() ? schedule.Between(kSecond / 20, kSecond / 2)
                                   : options_.step_timeout);
  TensorToProto(Tensor::Vector<int64_t>({0, number}), run->add_feeds());
  if (work.named()) {
    TensorToProto(Tensor::Vector<std::string>({StrCat("key ", number)}), run->add_feeds());
  }
  if (options_.callables) {
    run->set_callable(callables_[work.name]);
  } else {
    SetNames(work, run->mutable_signature());
  }
  ++attempted_;
  const uint64_t call =
      simulator_->Call(id_, std::move(request), 20 * kSecond,
                       [this, life = life_, number, &work](const absl::Status& status,
                                                           const cluster::Message& reply) {
                         if (life != life_) return;
                         Answered(status);
                         if (status.code() == absl::StatusCode::kAborted) session_.clear();
                         if (status.ok()) ++succeeded_;
                         Ended(work, number, status, reply.run_step_reply());
                         Soon(options_.think);
                       });
  if (call != 0) Disturb(call);
}

int64_t SimulatedClient::Begin(const SimulatedWork& work) {
  using Kind = SimulatedWork::Kind;
  const int task = work.tasks.front();
  switch (work.kind) {
    case Kind::kUpdate:
      return simulator_->ledger()->Attempt(work.tasks);
    case Kind::kPut:
      return simulator_->queue_ledger(work.place)->BeginPut(task);
    case Kind::kTake:
      return simulator_->queue_ledger(work.place)->BeginTake(task, work.count);
    case Kind::kApply:
      return simulator_->accumulator_ledger()->BeginApply(task, work.old);
    case Kind::kMean:
      return simulator_->accumulator_ledger()->BeginTake(task, work.count);
    case Kind::kAdvance:
      return simulator_->accumulator_ledger()->BeginAdvance();
    case Kind::kCount:
      return simulator_->accumulator_ledger()->BeginCount();
    case Kind::kAsk:
      return simulator_->applications()->BeginAsk();
    case Kind::kTell:
      return simulator_->applications()->BeginTell();
    case Kind::kLock:
      return simulator_->mutex_ledger()->Begin();
    case Kind::kTable:
      return simulator_->table_ledger()->Begin(task);
  }
  return 0;
}

void SimulatedClient::Ended(const SimulatedWork& work, int64_t number, const absl::Status& status,
                            const cluster::RunStepReply& reply) {
  using Kind = SimulatedWork::Kind;
  QueueLedger* const queues = simulator_->queue_ledger(work.place);
  AccumulatorLedger* const accumulators = simulator_->accumulator_ledger();
  if (!status.ok()) {
    if (work.kind == Kind::kTake) queues->TakeFailed(number);
    if (work.kind == Kind::kMean) accumulators->TakeFailed(number);
    if (work.kind == Kind::kAsk) simulator_->applications()->EndAsk(number, status);
    return;
  }
  std::vector<Tensor> fetched;
  for (const TensorProto& fetch : reply.fetches()) fetched.push_back(*TensorFromProto(fetch));
  const absl::Span<const int64_t> first =
      work.fetches.empty() ? absl::Span<const int64_t>() : fetched[0].unchecked_values<int64_t>();
  const int task = work.tasks.front();
  switch (work.kind) {
    case Kind::kUpdate:
      for (size_t i = 0; i < work.tasks.size(); ++i) {
        simulator_->ledger()->Acknowledge(number, work.tasks[i],
                                          fetched[i].unchecked_values<int64_t>()[1]);
      }
      break;
    case Kind::kPut:
      return queues->EndPut(number);
    case Kind::kTake: {
      std::vector<int64_t> numbers;
      for (int i = 0; i < work.count; ++i) numbers.push_back(first[2 * i + 1]);
      return queues->EndTake(number, numbers);
    }
    case Kind::kApply:
      return accumulators->EndApply(number);
    case Kind::kMean:
      return accumulators->EndTake(number, first, fetched[1].unchecked_values<double>());
    case Kind::kAdvance:
      return accumulators->EndAdvance(task, number);
    case Kind::kCount:
      return accumulators->EndCount(task, number, first[0]);
    case Kind::kAsk:
      return simulator_->applications()->EndAsk(number, first);
    case Kind::kTell:
      return;
    case Kind::kLock:
      return simulator_->mutex_ledger()->End(task, number, first[0]);
    case Kind::kTable:
      return simulator_->table_ledger()->End(number, first[1]);
  }
}

void SimulatedClient::MakeCallable(const SimulatedWork& work) {
  cluster::Message request;
  request.mutable_make_callable()->set_session(session_);
  SetNames(work, request.mutable_make_callable()->mutable_signature());
  const uint64_t call =
      simulator_->Call(id_, std::move(request), 20 * kSecond,
                       [this, life = life_, session = session_, &work](
                           const absl::Status& status, const cluster::Message& reply) {
                         if (life != life_) return;
                         Answered(status);
                         if (status.code() == absl::StatusCode::kAborted) session_.clear();
                         if (status.ok() && session == session_)
                           callables_[work.name] = reply.make_callable_reply().callable();
                         Soon(options_.think);
                       });
  if (call != 0) Disturb(call);
}

void SimulatedClient::Disturb(uint64_t call) {
  Schedule& schedule = *simulator_->schedule();
  if (!schedule.Chance(options_.restless)) return;
  schedule.After(schedule.Between(0, 3000), [this, call, life = life_, &schedule] {
    if (life != life_ || stopped_) return;
    const int64_t what = schedule.Between(0, 3);
    if (what == 0) {
      Kill();
      schedule.After(schedule.Between(0, kSecond), [this] {
        if (!stopped_) Start();
      });
    } else if (what == 1 && !session_.empty()) {
      Close();
    } else {
      cluster::Message cancel;
      cancel.mutable_cancel()->add_ids(call);
      simulator_->Call(id_, std::move(cancel), 15 * kSecond,
                       [](const absl::Status&, const cluster::Message&) {});
    }
  });
}

void SimulatedClient::Close() {
  cluster::Message request;
  request.mutable_close_session()->set_session(std::exchange(session_, {}));
  simulator_->Call(id_, std::move(request), 15 * kSecond,
                   [](const absl::Status&, const cluster::Message&) {});
}

}  // namespace troupe
