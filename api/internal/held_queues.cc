#include "api/internal/held_queues.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "api/internal/session_interface.h"
#include "api/training/queue_runner.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/training_state.pb.h"

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

bool IsBarrier(const Node& node) { return node.op() == "Barrier"; }

bool IsAccumulator(const Node& node) { return node.op().ends_with("ConditionalAccumulator"); }

/// Whether a node of this op names a staging area or map, and makes it if nobody has.
bool IsStage(std::string_view op) {
  constexpr std::string_view kOrdered = "Ordered";
  if (op.starts_with(kOrdered)) op.remove_prefix(kOrdered.size());
  for (std::string_view known :
       {"Stage", "Unstage", "StagePeek", "StageSize", "StageClear", "MapStage", "MapUnstage",
        "MapUnstageNoKey", "MapPeek", "MapSize", "MapIncompleteSize", "MapClear"}) {
    if (op == known) return true;
  }
  return false;
}

/// Whether a step that runs the node waits for other steps than those of queue runners. Held at
/// it, it would not come to rest.
bool WaitsForSteps(const Node& node) {
  const std::string_view op = node.op();
  return op.ends_with("AccumulatorTakeGradient") || op == "BarrierTakeMany" || op == "Unstage" ||
         op.starts_with("MapUnstage") || op.starts_with("OrderedMapUnstage");
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

/// What the node names in a container.
ResourcePlace PlaceOf(const Node& node) {
  ResourcePlace place;
  place.node = node.name();
  place.container = node.attrs().GetOr<std::string>("container", "");
  place.name = node.attrs().GetOr<std::string>("shared_name", "");
  if (place.name.empty() && node.op() != "VarHandleOp") place.name = node.name();
  return place;
}

/// What a node of a staging area or map names, and the limits with which it makes it.
struct StageNode {
  ResourcePlace place;
  int64_t capacity, memory_limit;
};

/// All of a graph, those in its functions included. On which devices functions run is not known
/// here. Of those, a node without `shared_name` has an area of its own, of which nobody takes.
std::vector<StageNode> StagesOf(const Graph& graph) {
  std::vector<StageNode> stages;
  for (const Node* node : graph.nodes()) {
    if (!IsStage(node->op())) continue;
    stages.push_back({PlaceOf(*node), node->attrs().GetOr<int64_t>("capacity", 0),
                      node->attrs().GetOr<int64_t>("memory_limit", 0)});
  }
  for (const FunctionDef& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) {
      const auto attr = [&node](const char* name) -> const AttrValue& {
        const auto found = node.attr().find(name);
        return found == node.attr().end() ? AttrValue::default_instance() : found->second;
      };
      if (!IsStage(node.op()) || attr("shared_name").s().empty()) continue;
      stages.push_back({{StrCat("@", function.signature().name(), ":", node.name()),
                         ResourcePlace::kAnyDevice, attr("container").s(), attr("shared_name").s()},
                        attr("capacity").i(),
                        attr("memory_limit").i()});
    }
  }
  return stages;
}

/// What the queue runners of a graph work with.
struct Inputs {
  /// A queue stands before those that it is filled from.
  std::vector<const Node*> with_runner, others;
  std::vector<const Node*> readers;
  /// Variables that runners' steps may change.
  std::vector<const Node*> variables;
  /// What names staging areas and maps, barriers and accumulators: those of all steps.
  std::vector<ResourcePlace> stages;
};

absl::StatusOr<Inputs> InputsOf(const Graph& graph) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<QueueRunner> runners, QueueRunner::OfGraph(graph));
  std::vector<std::pair<const Node*, Nodes>> queues;  // And what fills it.
  Nodes all, awaited;
  for (const QueueRunner& runner : runners) {
    const Node* const queue = graph.FindNode(runner.queue_node());
    if (queue == nullptr || !IsQueue(*queue)) {
      return absl::UnimplementedError(
          StrCat("'", runner.name(), "', which a queue runner fills, is no queue of the graph"));
    }
    Nodes needed = NeededBy(runner.enqueues());
    if (std::any_of(needed.begin(), needed.end(), [](auto* n) { return WaitsForSteps(*n); })) {
      awaited.merge(needed);
      continue;
    }
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
  for (StageNode& stage : StagesOf(graph)) inputs.stages.push_back(std::move(stage.place));
  for (const Node* node : graph.nodes()) {
    // What runners have taken from an accumulator is on its way.
    if (IsBarrier(*node) || (IsAccumulator(*node) && awaited.count(node) == 0)) {
      inputs.stages.push_back(PlaceOf(*node));
    }
  }
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

bool CanBeSaved(const Tensor& tensor) {
  return (IsPlain(tensor.type()) || tensor.type() == ElementType::kString) &&
         tensor.space() == MemorySpace::kHost;
}

absl::Status CheckCanBeSaved(const std::string& name, absl::Span<const Tuple> tuples) {
  for (const Tuple& tuple : tuples) {
    for (const Tensor& component : tuple) {
      if (!component.valid() || CanBeSaved(component)) continue;
      return absl::UnimplementedError(StrCat(
          "'", name, "' holds tensors of a type, or in a memory, from which they cannot be saved"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCanBeSaved(const KeptResource& resource) {
  ResourceStateDef def;
  return CheckCanBeSaved(resource.place.node, StateToDef(resource.state, &def));
}

}  // namespace

HeldQueues::~HeldQueues() {
  for (const auto& runner : held_) runner->Release();
}

absl::StatusOr<QueueState> HeldQueues::Settle(const Node& node, absl::Time deadline, bool* there) {
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
    auto found = session_.impl_->SaveResources({PlaceOf(node)});
    // A step has put its element in between two parts.
    const bool changed = absl::IsDeadlineExceeded(found.status());
    if (!found.ok() && !changed) return found.status();
    QueueState state;
    *there = !changed && !found->empty() && std::holds_alternative<QueueState>((*found)[0].state);
    if (*there) state = std::get<QueueState>(std::move((*found)[0].state));
    // No step begins and nobody takes anything: if so many wait, all of them do.
    if (!changed && num_steps == state.num_waiting_calls) return state;
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
  const absl::Time deadline = absl::Now() + patience;
  // Whoever takes from a queue is held before whoever fills it: it may wait for an element.
  for (const auto* nodes : {&inputs.with_runner, &inputs.others}) {
    for (const Node* node : *nodes) {
      bool there = false;
      TROUPE_ASSIGN_OR_RETURN(QueueState queue, Settle(*node, deadline, &there));
      TROUPE_RETURN_IF_ERROR(CheckCanBeSaved(node->name(), queue.elements));
      TROUPE_RETURN_IF_ERROR(CheckCanBeSaved(node->name(), queue.waiting));
      if (there) state->queues[node->name()] = std::move(queue);
    }
  }
  std::vector<ResourcePlace> places;
  for (const auto* nodes : {&inputs.readers, &inputs.variables}) {
    for (const Node* node : *nodes) places.push_back(PlaceOf(*node));
  }
  for (const ResourcePlace& place : inputs.stages) {
    places.push_back(place);
    // What was restored is saved again, before a step has used it.
    if (place.device.empty()) places.back().device = session_.impl_->RestoredOn(place.node);
  }
  // The end that queues have come to with it is not that of the input.
  TROUPE_RETURN_IF_ERROR(session_.impl_->queue_runners()->failure());
  if (places.empty()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(std::vector<KeptResource> saved, session_.impl_->SaveResources(places));
  for (KeptResource& one : saved) {
    TROUPE_RETURN_IF_ERROR(CheckCanBeSaved(one));
    if (auto* reader = std::get_if<ReaderPosition>(&one.state)) {
      state->readers[one.place.node] = std::move(reader->message);
    } else if (auto* variable = std::get_if<VariableValue>(&one.state)) {
      if (variable->value.valid()) state->variables[one.place.node] = std::move(variable->value);
    } else {
      state->resources.push_back(std::move(one));
    }
  }
  return absl::OkStatus();
}

namespace {

/// Gives a session's resources their states.
class Restorer {
 public:
  explicit Restorer(Session& session, SessionInterface* impl) : session_(session), impl_(impl) {}

  /// What a node makes: it is run first.
  absl::Status Made(const std::string& name, bool (*fits)(const Node&), ResourceState state) {
    Node* const node = session_.graph()->FindNode(name);
    if (node == nullptr || !fits(*node)) return Warn(name, "the graph has no such node");
    TROUPE_RETURN_IF_ERROR(session_.RunTargets({node}));
    TROUPE_ASSIGN_OR_RETURN(auto places, impl_->FindResources({PlaceOf(*node)}));
    if (places.empty()) return absl::InternalError(StrCat("'", name, "' is nowhere"));
    return Give({std::move(places[0]), std::move(state)});
  }

  /// A variable, which local initialization has made.
  absl::Status Variable(const std::string& name, Tensor value) {
    const Node* const node = session_.graph()->FindNode(name);
    if (node == nullptr || !IsVariable(*node)) return Warn(name, "the graph has no such node");
    TROUPE_ASSIGN_OR_RETURN(auto places, impl_->FindResources({PlaceOf(*node)}));
    if (places.empty()) return Warn(name, "nobody has initialized it");
    return Give({std::move(places[0]), VariableValue{std::move(value)}});
  }

  /// A staging area or map, which whoever comes first makes, on the device where it was.
  absl::Status Stage(KeptResource stage) {
    StageLimits<TupleStage> limits;
    bool known = false, same = false;
    const auto is = [&](const auto& options) {
      return limits.capacity == options.capacity && limits.memory_limit == options.memory_limit;
    };
    const auto each = [&](auto& options) {
      for (const auto& [place, capacity, memory_limit] : StagesOf(*session_.graph())) {
        if (same) break;
        if (place.container != stage.place.container || place.name != stage.place.name) continue;
        limits.capacity = capacity;
        limits.memory_limit = memory_limit;
        known = true;
        same = is(options);
      }
      if (!same) options = {limits.capacity, limits.memory_limit};
    };
    if (auto* area = std::get_if<StagingAreaState>(&stage.state)) each(area->options);
    if (auto* map = std::get_if<StagingMapState>(&stage.state)) each(map->options);
    if (!known) return Warn(stage.place.node, "the graph has no such node");
    const ResourcePlace place = stage.place;
    TROUPE_RETURN_IF_ERROR(Give(std::move(stage)));
    impl_->SetRestoredOn(place.node, place.device);
    return absl::OkStatus();
  }

 private:
  static absl::Status Warn(const std::string& name, const std::string& why) {
    WriteLog(LogLevel::kWarning, "", {"state not restored"}, "'", name, "' begins anew: ", why);
    return absl::OkStatus();
  }
  absl::Status Give(KeptResource resource) {
    const std::string name = resource.place.node;
    absl::Status restored = impl_->RestoreResource(std::move(resource));
    if (!absl::IsInvalidArgument(restored) && !absl::IsNotFound(restored)) return restored;
    return Warn(name, std::string(restored.message()));
  }

  Session& session_;
  SessionInterface* const impl_;
};

}  // namespace

absl::Status RestoreQueues(Session& session, TrainingState state) {
  return HeldQueues(session).Restore(std::move(state));
}

absl::Status HeldQueues::Restore(TrainingState state) {
  Restorer restorer(session_, session_.impl_.get());
  for (auto& [name, queue] : state.queues) {
    TROUPE_RETURN_IF_ERROR(restorer.Made(name, IsQueue, std::move(queue)));
  }
  for (auto& [name, reader] : state.readers) {
    TROUPE_RETURN_IF_ERROR(restorer.Made(name, IsReader, ReaderPosition{std::move(reader)}));
  }
  for (auto& [name, value] : state.variables) {
    TROUPE_RETURN_IF_ERROR(restorer.Variable(name, std::move(value)));
  }
  for (KeptResource& one : state.resources) {
    if (std::holds_alternative<BarrierState>(one.state)) {
      TROUPE_RETURN_IF_ERROR(restorer.Made(one.place.node, IsBarrier, std::move(one.state)));
    } else if (std::holds_alternative<AccumulatorState>(one.state)) {
      TROUPE_RETURN_IF_ERROR(restorer.Made(one.place.node, IsAccumulator, std::move(one.state)));
    } else {
      TROUPE_RETURN_IF_ERROR(restorer.Stage(std::move(one)));
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
