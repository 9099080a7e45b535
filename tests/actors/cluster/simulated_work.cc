#include "tests/actors/cluster/simulated_work.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "devices/status_macros.h"
#include "devices/tensor.h"
#include "devices/tensor_proto.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

namespace {

constexpr int kRows = 9000;
constexpr int kAskTimeoutMs = 3000;

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
    std::string actor;
    int a = 0, b = 0;
    words >> kind >> a >> b >> actor;
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
    } else if (kind == "ring") {
      Ring(&work);
    } else {
      work.tasks.push_back(b);
      AtQueue(kind, a, b, &work);
      AtStage(kind, a, b, &work);
      AtBarrier(kind, a, b, &work);
      AtMutex(kind, a, b, &work);
      AtTable(kind, a, b, &work);
      AtAccumulator(kind, a, b, &work);
      AtActor(kind, a, b, actor, &work);
    }
    return work;
  }
  std::string Take() { return graph_.SerializeAsString(); }

 private:
  void Ring(SimulatedWork* work) {
    std::string before;
    for (int i = 0; i < num_tasks_; ++i) {
      std::vector<std::string> inputs = {"delta", "zeros"};
      const int sender = (i + num_tasks_ - 1) % num_tasks_;
      if (i > 0) inputs.push_back("^" + before);
      before = Update(i, Op(StrCat("sent", i), "AddV2", sender, inputs), work);
    }
  }
  void AtQueue(const std::string& kind, int a, int b, SimulatedWork* work) {
    if (kind == "put") {
      work->kind = SimulatedWork::Kind::kPut;
      const std::string value = a == b ? "delta" : Op("sent", "AddV2", a, {"delta", "zeros"});
      Done(QueueOp("put", "QueueEnqueueV2", b, {value}, "Tcomponents"), b, work);
    } else if (kind == "take" || kind == "pair") {
      work->kind = SimulatedWork::Kind::kTake;
      work->count = kind == "take" ? 1 : 2;
      const std::string taken =
          work->count == 1
              ? QueueOp("take", "QueueDequeueV2", b, {}, "component_types")
              : QueueOp("take", "QueueDequeueManyV2", b, {Int32("two", 2)}, "component_types");
      work->fetches.push_back(Op("taken", "Identity", a, {taken}) + ":0");
    }
  }
  void AtStage(const std::string& kind, int a, int b, SimulatedWork* work) {
    if (kind != "stage" && kind != "unstage") return;
    const bool puts = kind == "stage";
    work->place = SimulatedWork::Place::kStage;
    work->kind = puts ? SimulatedWork::Kind::kPut : SimulatedWork::Kind::kTake;
    work->count = 1;
    const std::string value = !puts    ? ""
                              : a == b ? "delta"
                                       : Op("sent", "AddV2", a, {"delta", "zeros"});
    const std::string op = StrCat(prefix_, "/", kind);
    auto& attrs = *Node(op, puts ? "Stage" : "Unstage", b,
                        puts ? std::vector<std::string>{value} : std::vector<std::string>(), "")
                       ->mutable_attr();
    attrs["dtypes"].mutable_list()->add_type(DT_INT64);
    attrs["capacity"].set_i(4);
    attrs["shared_name"].set_s(StrCat("s", b));
    if (puts) return Done(op, b, work);
    work->fetches.push_back(Op("taken", "Identity", a, {op}) + ":0");
  }
  void AtBarrier(const std::string& kind, int a, int b, SimulatedWork* work) {
    if (kind != "insert" && kind != "join" && kind != "joins") return;
    const bool puts = kind == "insert";
    work->place = SimulatedWork::Place::kBarrier;
    work->kind = puts ? SimulatedWork::Kind::kPut : SimulatedWork::Kind::kTake;
    work->count = kind == "joins" ? 2 : 1;
    const std::string barrier = StrCat("b", b);
    if (made_.count(barrier) == 0) {
      auto& attrs = *Node(barrier, "Barrier", b, {}, "")->mutable_attr();
      for (int i = 0; i < 2; ++i) {
        attrs["component_types"].mutable_list()->add_type(DT_INT64);
        attrs["shapes"].mutable_list()->add_shape()->add_dim()->set_size(2);
      }
      attrs["shared_name"].set_s(barrier);
    }
    if (!puts) {
      const std::string take = StrCat(prefix_, "/take");
      const std::string count = work->count == 1 ? Int32("only", 1) : Int32("two", work->count);
      auto& attrs = *Node(take, "BarrierTakeMany", b, {barrier, count}, "")->mutable_attr();
      for (int i = 0; i < 2; ++i) attrs["component_types"].mutable_list()->add_type(DT_INT64);
      // Both components are the same number.
      work->fetches.push_back(Op("taken", "Maximum", a, {take + ":2", take + ":3"}) + ":0");
      return;
    }
    if (made_.count("key") == 0) {
      (*Node("key", "Placeholder", -1, {}, "")->mutable_attr())["dtype"].set_type(DT_STRING);
    }
    Constant("one_row", {2}, {1, 2});
    std::vector<std::string> controls = {"delta"};
    for (int i = 0; i < 2; ++i) {
      const std::string row = Op(StrCat("row", i), "Reshape", i == 0 ? a : b, {"delta", "one_row"},
                                 {{"Tshape", DT_INT64}});
      const std::string insert = StrCat(prefix_, "/insert", i);
      auto& attrs = *Node(insert, "BarrierInsertMany", b, {barrier, "key", row})->mutable_attr();
      attrs["component_index"].set_i(i);
      controls.push_back("^" + insert);
    }
    work->fetches.push_back(Op("done", "Identity", b, controls) + ":0");
  }
  void AtMutex(const std::string& kind, int a, int b, SimulatedWork* work) {
    if (kind != "lock") return;
    work->kind = SimulatedWork::Kind::kLock;
    const std::string mutex = StrCat("m", b);
    if (made_.count(mutex) == 0) {
      (*Node(mutex, "MutexV2", b, {}, "")->mutable_attr())["shared_name"].set_s(mutex);
    }
    const std::string lock = StrCat(prefix_, "/lock"), back = StrCat(prefix_, "/back");
    Node(lock, "MutexLock", b, {mutex}, "");
    Constant("counter", {1}, {-1});
    Constant("zero", {}, {0});
    Constant("one", {}, {1});
    const std::string count = TableOp("count", "Find", b, {"counter", "zero", "^" + lock});
    const std::string sum = Op("sum", "AddV2", a, {count, "one"});
    const std::string write = TableOp("write", "Insert", b, {"counter", sum});
    Node(back, "ConsumeMutexLock", b, {lock, "^" + write}, "");
    work->fetches.push_back(Op("counted", "Identity", b, {sum, "^" + back}) + ":0");
  }
  void AtTable(const std::string& kind, int a, int b, SimulatedWork* work) {
    if (kind != "table") return;
    work->kind = SimulatedWork::Kind::kTable;
    Constant("zero", {}, {0});
    const std::string value = a == b ? "delta" : Op("sent", "AddV2", a, {"delta", "zeros"});
    const std::string put = TableOp("put", "Insert", b, {value, value});
    const std::string found = TableOp("found", "Find", b, {"delta", "zero", "^" + put});
    work->fetches.push_back(Op("looked_up", "Identity", b, {found}) + ":0");
  }
  /// An op on the table of a task, which all sessions share.
  std::string TableOp(const std::string& name, const std::string& op, int task,
                      const std::vector<std::string>& inputs) {
    const std::string table = StrCat("t", task);
    if (made_.count(table) == 0) {
      auto& attrs = *Node(table, "MutableHashTableV2", task, {}, "key_dtype")->mutable_attr();
      attrs["value_dtype"].set_type(DT_INT64);
      attrs["shared_name"].set_s(table);
    }
    std::vector<std::string> all = {table};
    all.insert(all.end(), inputs.begin(), inputs.end());
    std::string full = StrCat(prefix_, "/", name);
    NodeDef* node = Node(full, StrCat("LookupTable", op, "V2"), task, all, "Tin");
    (*node->mutable_attr())["Tout"].set_type(DT_INT64);
    return full;
  }
  void AtAccumulator(const std::string& kind, int a, int b, SimulatedWork* work) {
    using Kind = SimulatedWork::Kind;
    if (kind == "apply" || kind == "old") {
      work->kind = Kind::kApply;
      work->old = kind == "old";
      Constant("axis", {}, {0});
      const std::string number = Op("number", "Sum", a, {"delta", "axis"}, {{"Tidx", DT_INT64}});
      const std::string both = Op("both", "AddV2", a, {number, "zeros"});
      const std::string values =
          Op("values", "Cast", a, {both}, {{"SrcT", DT_INT64}, {"DstT", DT_DOUBLE}});
      Constant("step0", {}, {0});
      Constant("never_stale", {}, {int64_t{1} << 50});
      Constant("any_shape", {1}, {-1});
      const std::string apply = AccumulatorOp(
          "apply", "SparseAccumulatorApplyGradient", b,
          {work->old ? "step0" : "never_stale", "delta", values, "any_shape"}, "dtype");
      (*graph_.mutable_node(graph_.node_size() - 1)->mutable_attr())["has_known_shape"].set_b(
          false);
      Done(apply, b, work);
    } else if (kind == "mean") {
      work->kind = Kind::kMean;
      work->count = 2;
      const std::string mean = AccumulatorOp("mean", "SparseAccumulatorTakeGradient", b,
                                             {Int32("two", work->count)}, "dtype");
      work->fetches.push_back(Op("rows", "Identity", a, {mean}) + ":0");
      work->fetches.push_back(Op("values", "Identity", a, {mean + ":1"}, {{"T", DT_DOUBLE}}) +
                              ":0");
    } else if (kind == "advance") {
      work->kind = Kind::kAdvance;
      Constant("axis", {}, {0});
      const std::string step = Op("step", "Sum", a, {"delta", "axis"}, {{"Tidx", DT_INT64}});
      Done(AccumulatorOp("advance", "AccumulatorSetGlobalStep", b, {step}, ""), b, work);
    } else if (kind == "count") {
      work->kind = Kind::kCount;
      const std::string count = AccumulatorOp("count", "AccumulatorNumAccumulated", b, {}, "");
      work->fetches.push_back(
          Op("counted", "Cast", a, {count}, {{"SrcT", DT_INT32}, {"DstT", DT_INT64}}) + ":0");
    }
  }
  void AtActor(const std::string& kind, int a, int b, const std::string& actor,
               SimulatedWork* work) {
    if (kind != "ask" && kind != "tell") return;
    const bool ask = kind == "ask";
    work->kind = ask ? SimulatedWork::Kind::kAsk : SimulatedWork::Kind::kTell;
    const std::string value = a == b ? "delta" : Op("sent", "AddV2", a, {"delta", "zeros"});
    const std::string full = StrCat(prefix_, "/asked");
    auto& attrs = *Node(full, ask ? "AskActor" : "TellActor", b, {value}, "")->mutable_attr();
    attrs["actor"].set_s(actor);
    attrs["Tin"].mutable_list()->add_type(DT_INT64);
    if (!ask) return Done(full, b, work);
    attrs["Tout"].mutable_list()->add_type(DT_INT64);
    attrs["timeout_ms"].set_i(kAskTimeoutMs);
    work->fetches.push_back(Op("answer", "Identity", b, {full}) + ":0");
  }
  /// What is fetched says that an op of task `at` is done.
  void Done(const std::string& op, int at, SimulatedWork* work) {
    work->fetches.push_back(Op("done", "Identity", at, {"delta", "^" + op}) + ":0");
  }
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
    std::string full = StrCat(prefix_, "/", name);
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
    std::string name = Op(StrCat("added", task), "Identity", task,
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
    std::string full = StrCat(prefix_, "/", name);
    auto& attrs = *Node(full, op, task, all, "")->mutable_attr();
    attrs[types].mutable_list()->add_type(DT_INT64);
    return full;
  }
  /// An op on the accumulator of a task, which all sessions share. `type`: its attribute that says
  /// what gradients are, if any.
  std::string AccumulatorOp(const std::string& name, const std::string& op, int task,
                            const std::vector<std::string>& inputs, const std::string& type) {
    const std::string accumulator = StrCat("a", task);
    if (made_.count(accumulator) == 0) {
      auto& attrs =
          *Node(accumulator, "SparseConditionalAccumulator", task, {}, "")->mutable_attr();
      attrs["dtype"].set_type(DT_DOUBLE);
      attrs["shape"].mutable_shape()->set_unknown_rank(true);
      attrs["shared_name"].set_s(accumulator);
    }
    std::vector<std::string> all = {accumulator};
    all.insert(all.end(), inputs.begin(), inputs.end());
    std::string full = StrCat(prefix_, "/", name);
    auto& attrs = *Node(full, op, task, all, "")->mutable_attr();
    if (!type.empty()) attrs[type].set_type(DT_DOUBLE);
    return full;
  }
  std::string Int32(const std::string& name, int32_t value) {
    if (made_.count(name) == 0) {
      auto& attrs = *Node(name, "Const", -1, {}, "")->mutable_attr();
      attrs["dtype"].set_type(DT_INT32);
      TensorToProto(Tensor::Scalar<int32_t>(value), attrs["value"].mutable_tensor());
    }
    return name;
  }
  /// What is fed, three times, divided by three: `a` counts, `b` adds.
  std::string Loop(int a, int b) {
    Constant("zero", {}, {0});
    Constant("one", {}, {1});
    Constant("three", {}, {3});
    auto enter = [&](const std::string& name, int task, const std::string& input, bool constant) {
      std::string full = Op(name, "Enter", task, {input});
      auto& attrs = *graph_.mutable_node(graph_.node_size() - 1)->mutable_attr();
      attrs["frame_name"].set_s(prefix_);
      attrs["is_constant"].set_b(constant);
      return full;
    };
    auto merge = [&](const std::string& name, int task, const std::string& first,
                     const std::string& next) {
      std::string full = Op(name, "Merge", task, {first, StrCat(prefix_, "/", next)});
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

}  // namespace

SimulatedGraph WriteSimulatedGraph(int num_tasks, const std::vector<std::string>& names) {
  GraphWriter writer(num_tasks);
  SimulatedGraph written;
  for (const std::string& name : names) written.work.push_back(writer.Add(name));
  written.graph = writer.Take();
  return written;
}

}  // namespace troupe
