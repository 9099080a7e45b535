#include "tests/actors/cluster/simulated_client.h"

#include <sstream>
#include <utility>

#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

namespace {

constexpr int kRows = 9000;

/// Writes graphs of kinds of work.
class GraphWriter {
 public:
  explicit GraphWriter(int num_tasks) : num_tasks_(num_tasks) {
    Node("delta", "Placeholder", -1, {}, "dtype");
    Constant("zeros", {2}, {0, 0});
  }

  SimulatedWork Add(const std::string& name) {
    SimulatedWork work;
    work.name = name;
    prefix_ = name;
    std::replace(prefix_.begin(), prefix_.end(), ' ', '_');
    std::istringstream words(name);
    std::string kind;
    int a = 0, b = 0;
    words >> kind >> a >> b;
    if (kind == "here") {
      Update(a, "delta", &work);
    } else if (kind == "from") {
      Update(b, Op("sent", "AddV2", a, {"delta", "zeros"}), &work);
    } else if (kind == "large") {
      Constant("rows", {2}, {kRows, 2});
      Constant("one", {}, {1});
      const std::string ones = Op("ones", "Fill", a, {"rows", "one"}, {{"index_type", DT_INT64}});
      const std::string many = Op("many", "Mul", a, {ones, "delta"});
      Constant("axis", {}, {0});
      Constant("count", {}, {kRows});
      const std::string sum = Op("sum", "Sum", b, {many, "axis"}, {{"Tidx", DT_INT64}});
      Update(b, Op("mean", "FloorDiv", b, {sum, "count"}), &work);
    } else if (kind == "loop") {
      Update(b, Loop(a, b), &work);
    } else if (kind == "put") {
      const std::string value = a == b ? "delta" : Op("sent", "AddV2", a, {"delta", "zeros"});
      const std::string put = QueueOp("put", "QueueEnqueueV2", b, {value}, "Tcomponents");
      work.fetches.push_back(Op("done", "Identity", b, {"delta", "^" + put}) + ":0");
      work.puts = 1;
      work.queue = b;
    } else if (kind == "take" || kind == "pair") {
      work.takes = kind == "take" ? 1 : 2;
      work.queue = b;
      const std::string taken =
          work.takes == 1 ? QueueOp("take", "QueueDequeueV2", b, {}, "component_types")
                          : QueueOp("take", "QueueDequeueManyV2", b, {Two()}, "component_types");
      work.fetches.push_back(Op("taken", "Identity", a, {taken}) + ":0");
    } else {
      std::string before;
      for (int i = 0; i < num_tasks_; ++i) {
        std::vector<std::string> inputs = {"delta", "zeros"};
        const int sender = (i + num_tasks_ - 1) % num_tasks_;
        if (i > 0) inputs.push_back("^" + before);
        before = Update(i, Op(StrCat("sent", i), "AddV2", sender, inputs), &work);
      }
    }
    return work;
  }
  std::string Take() { return graph_.SerializeAsString(); }

 private:
  NodeDef* Node(const std::string& name, const std::string& op, int task,
                const std::vector<std::string>& inputs, const std::string& type = "T") {
    NodeDef* node = graph_.add_node();
    node->set_name(name);
    node->set_op(op);
    if (task >= 0) node->set_device(StrCat("/job:worker/task:", task));
    for (const std::string& input : inputs) node->add_input(input);
    if (!type.empty()) (*node->mutable_attr())[type].set_type(DT_INT64);
    made_.insert(name);
    return node;
  }
  std::string Op(const std::string& name, const std::string& op, int task,
                 const std::vector<std::string>& inputs,
                 const std::vector<std::pair<std::string, DataType>>& types = {}) {
    const std::string full = StrCat(prefix_, "/", name);
    NodeDef* node = Node(full, op, task, inputs);
    for (const auto& [attr, type] : types) (*node->mutable_attr())[attr].set_type(type);
    return full;
  }
  void Constant(const std::string& name, std::vector<int64_t> dims, std::vector<int64_t> values) {
    if (made_.count(name) != 0) return;
    NodeDef* node = Node(name, "Const", -1, {}, "dtype");
    TensorToProto(Tensor::FromValues<int64_t>(values, Shape(dims)).value(),
                  (*node->mutable_attr())["value"].mutable_tensor());
  }
  /// The variable of a task grows by `value`; the sum is fetched.
  std::string Update(int task, const std::string& value, SimulatedWork* work) {
    const std::string variable = StrCat("v", task);
    if (made_.count(variable) == 0) {
      NodeDef* node = Node(variable, "VariableV2", task, {}, "dtype");
      (*node->mutable_attr())["shape"].mutable_shape()->add_dim()->set_size(2);
      (*node->mutable_attr())["shared_name"].set_s(variable);
    }
    const std::string name = Op(StrCat("added", task), "Identity", task,
                                {Op(StrCat("add", task), "AssignAdd", task, {variable, value})});
    work->fetches.push_back(name + ":0");
    work->tasks.push_back(task);
    return name;
  }
  /// An op on the queue of a task, which all sessions share; four elements are in it at most.
  std::string QueueOp(const std::string& name, const std::string& op, int task,
                      const std::vector<std::string>& inputs, const std::string& types) {
    const std::string queue = StrCat("q", task);
    if (made_.count(queue) == 0) {
      auto& attrs = *Node(queue, "FIFOQueueV2", task, {}, "")->mutable_attr();
      attrs["component_types"].mutable_list()->add_type(DT_INT64);
      attrs["shapes"].mutable_list()->add_shape()->add_dim()->set_size(2);
      attrs["capacity"].set_i(4);
      attrs["shared_name"].set_s(queue);
    }
    std::vector<std::string> all = {queue};
    all.insert(all.end(), inputs.begin(), inputs.end());
    const std::string full = StrCat(prefix_, "/", name);
    auto& attrs = *Node(full, op, task, all, "")->mutable_attr();
    attrs[types].mutable_list()->add_type(DT_INT64);
    return full;
  }
  std::string Two() {
    if (made_.count("two") == 0) {
      auto& attrs = *Node("two", "Const", -1, {}, "")->mutable_attr();
      attrs["dtype"].set_type(DT_INT32);
      TensorToProto(Tensor::Scalar<int32_t>(2), attrs["value"].mutable_tensor());
    }
    return "two";
  }
  /// What is fed, three times, divided by three: `a` counts, `b` adds.
  std::string Loop(int a, int b) {
    Constant("zero", {}, {0});
    Constant("one", {}, {1});
    Constant("three", {}, {3});
    auto enter = [&](const std::string& name, int task, const std::string& input, bool constant) {
      const std::string full = Op(name, "Enter", task, {input});
      auto& attrs = *graph_.mutable_node(graph_.node_size() - 1)->mutable_attr();
      attrs["frame_name"].set_s(prefix_);
      attrs["is_constant"].set_b(constant);
      return full;
    };
    auto merge = [&](const std::string& name, int task, const std::string& first,
                     const std::string& next) {
      const std::string full = Op(name, "Merge", task, {first, StrCat(prefix_, "/", next)});
      (*graph_.mutable_node(graph_.node_size() - 1)->mutable_attr())["N"].set_i(2);
      return full;
    };
    const std::string i = merge("i", a, enter("i_in", a, "zero", false), "i_next");
    const std::string less = Op("less", "Less", a, {i, enter("limit", a, "three", true)});
    const std::string condition = StrCat(prefix_, "/condition");
    Node(condition, "LoopCond", a, {less}, "");
    const std::string i_switch = Op("i_switch", "Switch", a, {i, condition});
    Op("i_next", "NextIteration", a,
       {Op("i_more", "AddV2", a, {i_switch + ":1", enter("step", a, "one", true)})});
    const std::string x = merge("x", b, enter("x_in", b, "zeros", false), "x_next");
    const std::string x_switch = Op("x_switch", "Switch", b, {x, condition});
    Op("x_next", "NextIteration", b,
       {Op("x_more", "AddV2", b, {x_switch + ":1", enter("again", b, "delta", true)})});
    return Op("third", "FloorDiv", b, {Op("x_out", "Exit", b, {x_switch}), "three"});
  }

  const int num_tasks_;
  GraphDef graph_;
  std::set<std::string> made_;
  std::string prefix_;
};

void SetNames(const SimulatedWork& work, cluster::Signature* signature) {
  signature->add_feeds("delta:0");
  for (const std::string& fetch : work.fetches) signature->add_fetches(fetch);
}

}  // namespace

SimulatedClient::SimulatedClient(ClusterSimulator* simulator, Options options)
    : simulator_(simulator), options_(std::move(options)) {
  GraphWriter writer(simulator->num_tasks());
  for (const std::string& name : options_.work) work_.push_back(writer.Add(name));
  graph_ = writer.Take();
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
  QueueLedger* const queues = simulator_->queue_ledger();
  const int64_t number = work.puts > 0    ? queues->BeginPut(work.queue)
                         : work.takes > 0 ? queues->BeginTake(work.queue, work.takes)
                                          : simulator_->ledger()->Attempt(work.tasks);
  cluster::Message request;
  cluster::RunStepRequest* run = request.mutable_run_step();
  run->set_session(session_);
  run->set_timeout_us(work.puts + work.takes > 0 ? schedule.Between(kSecond / 20, kSecond / 2)
                                                 : options_.step_timeout);
  TensorToProto(Tensor::Vector<int64_t>({0, number}), run->add_feeds());
  if (options_.callables) {
    run->set_callable(callables_[work.name]);
  } else {
    SetNames(work, run->mutable_signature());
  }
  ++attempted_;
  const uint64_t call = simulator_->Call(
      id_, std::move(request), 20 * kSecond,
      [this, life = life_, number, &work](const absl::Status& status,
                                          const cluster::Message& reply) {
        if (life != life_) return;
        Answered(status);
        if (status.code() == absl::StatusCode::kAborted) session_.clear();
        if (status.ok()) ++succeeded_;
        if (work.puts + work.takes > 0) {
          QueueAnswered(work, number, status, reply);
        } else if (status.ok()) {
          for (size_t i = 0; i < work.tasks.size(); ++i) {
            const Tensor value =
                *TensorFromProto(reply.run_step_reply().fetches(static_cast<int>(i)));
            simulator_->ledger()->Acknowledge(number, work.tasks[i],
                                              value.unchecked_values<int64_t>()[1]);
          }
        }
        Soon(options_.think);
      });
  if (call != 0) Disturb(call);
}

void SimulatedClient::QueueAnswered(const SimulatedWork& work, int64_t number,
                                    const absl::Status& status, const cluster::Message& reply) {
  QueueLedger* const queues = simulator_->queue_ledger();
  if (!status.ok()) {
    if (work.takes > 0) queues->TakeFailed(number);
    return;
  }
  if (work.puts > 0) return queues->EndPut(number);
  std::vector<int64_t> numbers;
  const Tensor taken = *TensorFromProto(reply.run_step_reply().fetches(0));
  for (int i = 0; i < work.takes; ++i) {
    numbers.push_back(taken.unchecked_values<int64_t>()[2 * i + 1]);
  }
  queues->EndTake(number, numbers);
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
