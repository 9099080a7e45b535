#include "api/internal/held_queues.h"

#include <algorithm>
#include <future>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "actors/runtime.h"
#include "api/internal/session_interface.h"
#include "api/training/queue_runner.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "kernels/io/reader.h"
#include "kernels/queues/queue.h"

namespace troupe {
namespace {

/// Between two looks at steps that come to rest.
constexpr absl::Duration kLongestPause = absl::Milliseconds(5);

bool IsQueue(const Node& node) {
  for (std::string_view kind :
       {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"}) {
    if (node.op() == kind || node.op() == StrCat(kind, "V2")) return true;
  }
  return false;
}

bool IsReader(const Node& node) {
  for (std::string_view kind :
       {"TFRecord", "TextLine", "FixedLengthRecord", "WholeFile", "Identity"}) {
    if (node.op() == StrCat(kind, "Reader") || node.op() == StrCat(kind, "ReaderV2")) return true;
  }
  return false;
}

bool IsVariable(const Node& node) {
  return node.op() == "VarHandleOp" || node.op() == "VariableV2" || node.op() == "Variable";
}

/// Whether a node that takes a variable's handle or reference leaves the variable as it is.
bool OnlyReads(const Node& node) {
  for (std::string_view op : {"ReadVariableOp", "VarIsInitializedOp", "IsVariableInitialized",
                              "VariableShape", "ResourceGather", "ResourceGatherNd"}) {
    if (node.op() == op) return true;
  }
  return false;
}

using Nodes = std::set<const Node*>;

/// The nodes, and all that they need.
Nodes NeededBy(absl::Span<Node* const> nodes) {
  Nodes needed;
  std::vector<const Node*> pending(nodes.begin(), nodes.end());
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (!needed.insert(node).second) continue;
    for (const Edge* edge : node->in_edges()) pending.push_back(edge->src);
  }
  return needed;
}

/// What the queue runners of a graph work with.
struct Inputs {
  /// A queue stands before those that it is filled from.
  std::vector<const Node*> with_runner, others;
  std::vector<const Node*> readers;
  /// Variables that runners' steps may change.
  std::vector<const Node*> variables;
};

absl::StatusOr<Inputs> InputsOf(const Graph& graph) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<QueueRunner> runners, QueueRunner::OfGraph(graph));
  std::vector<std::pair<const Node*, Nodes>> queues;  // And what fills it.
  Nodes all;
  for (const QueueRunner& runner : runners) {
    const Node* const queue = graph.FindNode(runner.queue_node());
    if (queue == nullptr || !IsQueue(*queue)) {
      return absl::UnimplementedError(
          StrCat("'", runner.name(), "', which a queue runner fills, is no queue of the graph"));
    }
    Nodes needed = NeededBy(runner.enqueues());
    all.insert(needed.begin(), needed.end());
    const auto known =
        std::find_if(queues.begin(), queues.end(), [&](auto& q) { return q.first == queue; });
    if (known == queues.end()) {
      queues.emplace_back(queue, std::move(needed));
    } else {
      known->second.merge(needed);
    }
  }
  Inputs inputs;
  const auto visit = [&](const auto& visit, const std::pair<const Node*, Nodes>& queue) -> void {
    if (all.erase(queue.first) == 0) return;  // It has been visited.
    for (const auto& other : queues) {
      if (queue.second.count(other.first) > 0) visit(visit, other);
    }
    inputs.with_runner.push_back(queue.first);
  };
  for (const auto& queue : queues) visit(visit, queue);
  std::reverse(inputs.with_runner.begin(), inputs.with_runner.end());
  for (const Node* node : all) {
    if (IsQueue(*node)) inputs.others.push_back(node);
    if (IsReader(*node)) inputs.readers.push_back(node);
    if (!IsVariable(*node)) continue;
    for (const Edge* edge : node->out_edges()) {
      if (edge->control() || all.count(edge->dst) == 0 || OnlyReads(*edge->dst)) continue;
      const ElementType type = edge->dst->input_type(edge->dst_input);
      if (type != ElementType::kResource && !IsRefType(type)) continue;
      inputs.variables.push_back(node);
      break;
    }
  }
  return inputs;
}

/// The resource of a queue's or a variable's node; nullptr if there is none yet.
template <typename T>
RefPtr<T> Find(const Session& session, const Node& node) {
  const auto container = node.attrs().GetOr<std::string>("container", "");
  auto name = node.attrs().GetOr<std::string>("shared_name", "");
  if (name.empty() && node.op() != "VarHandleOp") name = node.name();
  for (const auto& device : session.runtime()->devices()) {
    const auto found = device->containers.FindOrCreate(container, name, nullptr);
    if (auto* resource = found.ok() ? dynamic_cast<T*>(found->get()) : nullptr) {
      return RefPtr<T>::Share(resource);
    }
  }
  return nullptr;
}

/// What `call` gives to the function that it is given.
template <typename Result>
Result Await(absl::FunctionRef<void(std::function<void(Result)>)> call) {
  std::promise<Result> promise;
  call([&promise](Result result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

absl::StatusOr<Tensor> ValueOf(Variable* variable) {
  return Await<absl::StatusOr<Tensor>>(
      [&](auto done) { variable->Lend([done](Variable::Lease lease) { done(lease.value()); }); });
}

absl::Status SetValue(Variable* variable, const Tensor& value) {
  if (variable->type() != value.type() || !variable->shape().IsCompatibleWith(value.shape())) {
    return InvalidArgument("the state is of another type or shape");
  }
  return Await<absl::Status>([&](auto done) {
    variable->Lend([done, value](Variable::Lease lease) {
      lease.set_value(value);
      lease.Release();
      done(absl::OkStatus());
    });
  });
}

bool CanBeSaved(const Tensor& tensor) {
  return (IsPlain(tensor.type()) || tensor.type() == ElementType::kString) &&
         tensor.space() == MemorySpace::kHost;
}

absl::Status CheckCanBeSaved(const std::string& name, const QueueState& state) {
  for (const auto* tuples : {&state.elements, &state.waiting}) {
    for (const Tuple& tuple : *tuples) {
      if (std::all_of(tuple.begin(), tuple.end(), CanBeSaved)) continue;
      return absl::UnimplementedError(
          StrCat("queue '", name, "' holds elements of types that cannot be saved"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

HeldQueues::~HeldQueues() {
  for (const auto& runner : held_) runner->Release();
}

absl::StatusOr<QueueState> HeldQueues::Settle(const Node& node, absl::Time deadline) {
  std::vector<std::shared_ptr<RunningQueueRunner>> runners;
  for (auto& runner : session_.impl_->queue_runners()->All()) {
    if (runner->queue() != node.name()) continue;
    runner->Hold();
    held_.push_back(runner);
    runners.push_back(std::move(runner));
  }
  for (absl::Duration pause = absl::Microseconds(20);; pause = std::min(2 * pause, kLongestPause)) {
    // Before the queue is looked at: a step that ends meanwhile has put its element in, or not.
    int64_t num_steps = 0;
    for (const auto& runner : runners) num_steps += runner->num_steps();
    QueueState state;
    if (const RefPtr<Queue> queue = Find<Queue>(session_, node)) {
      TROUPE_ASSIGN_OR_RETURN(state, Await<absl::StatusOr<QueueState>>(
                                         [&](auto done) { queue->Save(std::move(done)); }));
    }
    // No step begins and nobody takes anything: if so many wait, all of them do.
    if (num_steps == state.num_waiting_calls) return state;
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          StrCat("steps that fill queue '", node.name(), "' have not come to rest: ", num_steps,
                 " are under way, ", state.num_waiting_calls, " wait for room"));
    }
    absl::SleepFor(pause);
  }
}

absl::Status HeldQueues::Save(absl::Duration patience, TrainingState* state) {
  TROUPE_ASSIGN_OR_RETURN(const Inputs inputs, InputsOf(*session_.graph()));
  if (inputs.with_runner.empty()) return absl::OkStatus();
  if (session_.runtime() == nullptr) {
    return absl::UnimplementedError("the queues of a master's session are in other processes");
  }
  const absl::Time deadline = absl::Now() + patience;
  // Whoever takes from a queue is held before whoever fills it: it may wait for an element.
  for (const auto* nodes : {&inputs.with_runner, &inputs.others}) {
    for (const Node* node : *nodes) {
      TROUPE_ASSIGN_OR_RETURN(QueueState queue, Settle(*node, deadline));
      TROUPE_RETURN_IF_ERROR(CheckCanBeSaved(node->name(), queue));
      if (Find<Queue>(session_, *node)) state->queues[node->name()] = std::move(queue);
    }
  }
  for (const Node* node : inputs.readers) {
    const RefPtr<Reader> reader = Find<Reader>(session_, *node);
    if (!reader) continue;
    TROUPE_ASSIGN_OR_RETURN(const Tuple saved, Await<absl::StatusOr<Tuple>>([&](auto done) {
                              reader->SaveState(std::move(done));
                            }));
    state->readers[node->name()] = saved[0].unchecked_scalar<std::string>();
  }
  for (const Node* node : inputs.variables) {
    const RefPtr<Variable> variable = Find<Variable>(session_, *node);
    if (!variable) continue;
    TROUPE_ASSIGN_OR_RETURN(Tensor value, ValueOf(variable.get()));
    if (!value.valid()) continue;
    if (!CanBeSaved(value)) {
      return absl::UnimplementedError(StrCat("variable '", node->name(),
                                             "', which a queue runner may change, is of a type or "
                                             "in a memory from which it cannot be saved"));
    }
    state->variables[node->name()] = std::move(value);
  }
  return absl::OkStatus();
}

absl::Status RestoreQueues(Session& session, TrainingState state) {
  const auto warn = [](const std::string& name, const absl::Status& why) {
    WriteLog(LogLevel::kWarning, "", {"state not restored"}, "'", name,
             "' begins anew: ", std::string(why.message()));
  };
  if (session.runtime() == nullptr) {
    const absl::Status elsewhere =
        InvalidArgument("the queues of a master's session are in other processes");
    for (const auto& [name, queue_state] : state.queues) warn(name, elsewhere);
    for (const auto& [name, value] : state.variables) warn(name, elsewhere);
    for (const auto& [name, reader_state] : state.readers) warn(name, elsewhere);
    return absl::OkStatus();
  }
  const absl::Status unknown = InvalidArgument("the graph has no such node");
  // Makes the node's resource and has `restore(resource)` give it its state.
  const auto make = [&](const std::string& name, bool (*fits)(const Node&), auto find,
                        auto restore) -> absl::Status {
    Node* const node = session.graph()->FindNode(name);
    if (node == nullptr || !fits(*node)) return warn(name, unknown), absl::OkStatus();
    TROUPE_RETURN_IF_ERROR(session.RunTargets({node}));
    const auto resource = find(session, *node);
    if (!resource) return absl::InternalError(StrCat("'", name, "' is nowhere"));
    const absl::Status restored = restore(resource.get());
    if (absl::IsInvalidArgument(restored)) return warn(name, restored), absl::OkStatus();
    return restored;
  };
  for (auto& entry : state.queues) {
    TROUPE_RETURN_IF_ERROR(make(entry.first, IsQueue, Find<Queue>, [&](Queue* queue) {
      return Await<absl::Status>(
          [&](auto done) { queue->Restore(std::move(entry.second), std::move(done)); });
    }));
  }
  for (const auto& entry : state.readers) {
    TROUPE_RETURN_IF_ERROR(make(entry.first, IsReader, Find<Reader>, [&](Reader* reader) {
      return Await<absl::StatusOr<Tuple>>(
                 [&](auto done) { reader->RestoreState(entry.second, std::move(done)); })
          .status();
    }));
  }
  for (const auto& [name, value] : state.variables) {
    const Node* const node = session.graph()->FindNode(name);
    const bool known = node != nullptr && IsVariable(*node);
    const RefPtr<Variable> variable = known ? Find<Variable>(session, *node) : nullptr;
    const absl::Status restored = variable ? SetValue(variable.get(), value)
                                  : known  ? InvalidArgument("nobody has initialized it")
                                           : unknown;
    if (!restored.ok()) warn(name, restored);
  }
  return absl::OkStatus();
}

}  // namespace troupe
