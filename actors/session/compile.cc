#include "actors/session/compile.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "actors/session/fuse_kernels.h"
#include "actors/session/memory_spaces.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "graph/passes/frames.h"
#include "graph/passes/partition.h"
#include "graph/passes/place.h"
#include "graph/passes/step_graph.h"
#include "kernels/kernel_registry.h"
#include "kernels/node_kernel.h"
#include "kernels/queues/waiting_resource.h"
#include "kernels/registered_kernels.h"

namespace troupe {

namespace {

/// With one device there is nothing to choose, only to check.
absl::Status CheckDevice(const Node& node, const CompileOptions& options, const Runtime& runtime) {
  const std::string& requested = node.requested_device();
  if (requested.empty()) return absl::OkStatus();
  absl::StatusOr<DeviceName> name = DeviceName::Parse(requested);
  if (!name.ok()) {
    return InvalidArgument("node ", node.name(), " (", node.op(),
                           "): ", std::string(name.status().message()));
  }
  for (const auto& role : runtime.devices()) {
    if (role->device->parsed_name().Matches(*name)) return absl::OkStatus();
  }
  if (options.soft_placement) return absl::OkStatus();
  const auto device_name = [](std::string* out, const auto& role) { *out += role->device->name(); };
  return InvalidArgument("node ", node.name(), " (", node.op(), ") asks for device ", requested,
                         ", but there are only ",
                         absl::StrJoin(runtime.devices(), ", ", device_name),
                         "; name one of them, or allow soft placement");
}

bool IsNoOp(const Node& node) { return node.op() == "NoOp"; }

/// How a node's output reaches a consumer that takes a value although the output is a reference.
bool NeedsSnapshot(const Subgraph& subgraph, const SubOutput& input, bool consumer_takes_ref) {
  return IsRefType(subgraph.nodes[input.node].output_type(input.port)) && !consumer_takes_ref;
}

}  // namespace

std::unordered_map<std::string, std::string> StatefulKernels::devices() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return devices_;
}

void StatefulKernels::RememberDevices(const Subgraph& placed) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const SubNode& node : placed.nodes) {
    if (node.kind == SubNode::Kind::kOp && node.original->stateful()) {
      devices_.emplace(node.original->name(), node.device);
    }
  }
}

namespace {

void RestoreState(const std::string& name, const std::string& state, Kernel* kernel) {
  auto* resumable = dynamic_cast<ResumableKernel*>(kernel);
  const absl::Status status = resumable == nullptr
                                  ? InvalidArgument("this kernel has no such state")
                                  : resumable->RestoreState(state);
  if (!status.ok()) {
    WriteLog(LogLevel::kWarning, "", {"state not restored"}, "node '", name,
             "' begins anew: ", status.message());
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<Kernel>> StatefulKernels::FindOrCreate(const Node& node,
                                                                      DeviceRole* device) {
  std::lock_guard<std::mutex> lock(mutex_);
  Placed& placed = kernels_[node.name()];
  if (placed.kernel == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(placed.kernel, CreateKernel(node, device->device.get()));
    placed.device = device;
    const auto restored = restored_.extract(node.name());
    if (!restored.empty()) RestoreState(node.name(), restored.mapped(), placed.kernel.get());
  }
  return placed.kernel;
}

bool StatefulKernels::HasStates() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(kernels_.begin(), kernels_.end(), [](const auto& entry) {
    const Kernel* const kernel = entry.second.kernel.get();
    return dynamic_cast<const ResumableKernel*>(kernel) != nullptr ||
           dynamic_cast<const ResourceMaker*>(kernel) != nullptr;
  });
}

DeviceRole* StatefulKernels::DeviceOf(const std::string& node) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = kernels_.find(node);
  return found == kernels_.end() ? nullptr : found->second.device;
}

void StatefulKernels::SaveStates(const std::string& prefix, KernelStates* states,
                                 bool of_others) const {
  std::vector<std::pair<std::string, std::shared_ptr<Kernel>>> kernels;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, placed] : kernels_) kernels.emplace_back(name, placed.kernel);
    // A training that has been restored, and not run such a node, is saved again.
    for (const auto& [name, state] : restored_) {
      if (of_others) states->emplace(prefix + name, state);
    }
  }
  // Without the lock: an iterator's state waits for functions of its dataset.
  for (const auto& [name, kernel] : kernels) {
    if (const auto* resumable = dynamic_cast<const ResumableKernel*>(kernel.get())) {
      (*states)[prefix + name] = resumable->SaveState();
    }
  }
}

void StatefulKernels::RestoreStates(const std::string& prefix, const KernelStates& states) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto at = states.lower_bound(prefix);
       at != states.end() && absl::StartsWith(at->first, prefix); ++at) {
    // No node's name begins so: the state is of a node in a function.
    if (prefix.empty() && absl::StartsWith(at->first, "@")) continue;
    const std::string name = at->first.substr(prefix.size());
    const auto known = kernels_.find(name);
    if (known == kernels_.end() || known->second.kernel == nullptr) {
      restored_[name] = at->second;
    } else {
      RestoreState(name, at->second, known->second.kernel.get());
    }
  }
}

namespace {

/// The edge of a `_Send` or `_Recv`.
absl::StatusOr<RendezvousEdge> EdgeOf(const Node& node) {
  RendezvousEdge edge;
  TROUPE_RETURN_IF_ERROR(node.attrs().Get("tensor_name", &edge.name));
  TROUPE_RETURN_IF_ERROR(node.attrs().Get("send_device", &edge.send_device));
  TROUPE_RETURN_IF_ERROR(node.attrs().Get("recv_device", &edge.recv_device));
  edge.key = RendezvousKey(edge.name);
  TROUPE_ASSIGN_OR_RETURN(const DeviceName from, DeviceName::Parse(edge.send_device));
  TROUPE_ASSIGN_OR_RETURN(const DeviceName to, DeviceName::Parse(edge.recv_device));
  edge.remote = from.job != to.job || from.replica != to.replica || from.task != to.task;
  return edge;
}

/// Where the other end of an edge is, if the value need not go by way of the host.
Device* PeerOf(const RendezvousEdge& edge, bool sends, ElementType type, const Device& here,
               const Runtime& runtime) {
  // Integers are wanted on the host more often than not.
  if (edge.remote || !IsPlain(RemoveRef(type)) || type == ElementType::kInt32) return nullptr;
  const DeviceRole* other = runtime.FindDevice(sends ? edge.recv_device : edge.send_device);
  if (other == nullptr) return nullptr;
  Device* const there = other->device.get();
  const bool connected = sends ? DeviceRegistry::Global()->Connect(here, *there)
                               : DeviceRegistry::Global()->Connect(*there, here);
  return connected ? there : nullptr;
}

/// What there is to place on.
PlacementInput PlacementOn(const Graph& graph, const Runtime& runtime,
                           const CompileOptions& options) {
  PlacementInput input;
  for (const auto& role : runtime.devices()) {
    const Device& device = *role->device;
    PlacementDevice& to = input.devices.emplace_back();
    to.name = device.name();
    to.parsed = device.parsed_name();
    to.figures = DeviceRegistry::Global()->Figures(device);
    // The CPU devices of a process are one processor under several names; so is what says nothing.
    to.processor = to.figures.has_value() ? -1 : 0;
    if (device.memory_space() == MemorySpace::kDevice) {
      to.memory = device.attributes().memory_limit;
    }
  }
  input.allow_soft_placement = options.soft_placement;
  if (options.device != nullptr) input.default_device = options.device->device->name();
  input.lacks_kernel = RegisteredKernels(graph);
  input.explain_lack = [](const Node& node, const std::string& type) {
    return std::string(KernelRegistry::Global()->Find(type, node.def()).status().message());
  };
  return input;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Plan>> BuildPlan(const Subgraph& subgraph, DeviceRole* device,
                                                      StatefulKernels* stateful,
                                                      const Runtime* runtime, bool fuse,
                                                      const CompileOptions* body) {
  TROUPE_ASSIGN_OR_RETURN(const Frames frames, FindFrames(subgraph));
  PlanSpec spec;
  const bool own_memory = device->device->memory_space() == MemorySpace::kDevice;
  const auto place_of = [](ElementType type) {
    return MayBeOnDevice(type) ? MemorySpace::kDevice : MemorySpace::kHost;
  };
  if (frames.has_control_flow) spec.frames = frames.frames;
  spec.nodes.resize(subgraph.nodes.size());
  for (size_t i = 0; i < subgraph.nodes.size(); ++i) {
    const SubNode& from = subgraph.nodes[i];
    PlanSpec::Node& to = spec.nodes[i];
    const Node& node = *from.original;
    to.name = node.name();
    to.op = node.op();
    to.num_outputs = from.num_outputs();
    to.control_inputs.assign(from.control_inputs.begin(), from.control_inputs.end());
    to.frame = frames.frame_of[i];
    if (from.kind == SubNode::Kind::kConstant) {
      to.constants = from.values;
      continue;
    }
    if (from.kind == SubNode::Kind::kFeed) {
      if (own_memory && body != nullptr && body->args_in_place) {
        to.spaces.outputs = {place_of(from.output_type(0))};
      }
      continue;
    }
    for (size_t k = 0; k < from.inputs.size(); ++k) {
      const SubOutput& input = from.inputs[k];
      const bool takes_ref = IsRefType(node.input_type(static_cast<int>(k)));
      to.inputs.push_back(
          {input.node, input.port, NeedsSnapshot(subgraph, input, takes_ref), takes_ref});
    }
    if (IsNoOp(node)) continue;
    if (runtime != nullptr && (to.op == "_Send" || to.op == "_Recv")) {
      to.flow = to.op == "_Send" ? FlowOp::kSend : FlowOp::kRecv;
      to.edge = static_cast<int>(spec.edges.size());
      TROUPE_ASSIGN_OR_RETURN(RendezvousEdge edge, EdgeOf(node));
      const bool sends = to.flow == FlowOp::kSend;
      to.peer = PeerOf(edge, sends, sends ? node.input_type(0) : node.output_type(0),
                       *device->device, *runtime);
      spec.edges.push_back(std::move(edge));
      continue;
    }
    to.flow = FlowOpOf(node);
    if (to.flow != FlowOp::kNone) {
      to.enters = frames.enters[i];
      continue;
    }
    // A constant that nothing orders is known from the start; the others must wait for their turn.
    Tensor value;
    if (to.op == "Const" && to.control_inputs.empty() && node.attrs().Get("value", &value).ok() &&
        value.type() == node.output_type(0)) {
      to.constants.push_back(std::move(value));
      continue;
    }
    if (node.stateful()) {
      TROUPE_ASSIGN_OR_RETURN(to.kernel, stateful->FindOrCreate(node, device));
    } else {
      TROUPE_ASSIGN_OR_RETURN(to.kernel, CreateKernel(node, device->device.get()));
    }
    if (IsFunctionCall(node)) {
      if (own_memory) {
        TROUPE_ASSIGN_OR_RETURN(
            to.spaces, FindArgumentSpaces(node.op_def(), node.attrs(),
                                          KernelSpec(to.op).Device(std::string(kAnyDeviceType))));
      }
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const KernelRegistration* registration,
                            KernelRegistry::Global()->Find(device->device->type(), node.def()));
    to.cost = registration->spec.cost;
    if (own_memory) {
      TROUPE_ASSIGN_OR_RETURN(to.spaces,
                              FindArgumentSpaces(node.op_def(), node.attrs(), registration->spec));
    }
  }
  spec.device_name = device->device->name();
  spec.clock = device->clock;
  spec.feeds.assign(subgraph.feeds.begin(), subgraph.feeds.end());
  for (const SubOutput& fetch : subgraph.fetches) {
    spec.fetches.push_back({fetch.node, fetch.port, NeedsSnapshot(subgraph, fetch, false)});
    if (own_memory && body != nullptr && body->results_in_place) {
      spec.fetch_spaces.push_back(place_of(subgraph.nodes[fetch.node].output_type(fetch.port)));
    }
  }
  if (fuse) FuseKernels(&spec);
  if (own_memory) TROUPE_RETURN_IF_ERROR(MakeSpacesAgree(device->device.get(), &spec));
  return Plan::Build(std::move(spec));
}

absl::StatusOr<CutSignature> CutForDevices(const Graph& graph, const StepSignature& signature,
                                           const CompileOptions& options, const Runtime& runtime,
                                           StatefulKernels* stateful,
                                           absl::FunctionRef<void(const Subgraph&)> seen) {
  PlacementInput placement = PlacementOn(graph, runtime, options);
  const std::unordered_map<std::string, std::string> fixed = stateful->devices();
  placement.fixed = &fixed;
  placement.costs = &stateful->costs()->Update();
  TROUPE_ASSIGN_OR_RETURN(StepGraph prepared,
                          PrepareStep(graph, signature, options.simplify, /*several_devices=*/true,
                                      [&](const Subgraph& subgraph) {
                                        seen(subgraph);
                                        return CheckPlacement(placement, subgraph);
                                      }));
  ScheduleReceivesOptions schedule;  // Within a process a transfer hands a pointer on.
  schedule.latency_us = placement.within_process.latency_us;
  schedule.bytes_per_us = 1e9;
  CutSignature cut;
  TROUPE_ASSIGN_OR_RETURN(
      cut.parts, CutStep(placement, {}, schedule, std::move(prepared.subgraph),
                         [&](const Subgraph& placed) { stateful->RememberDevices(placed); }));
  cut.lowered = std::move(prepared.lowered);
  return cut;
}

absl::StatusOr<CompiledStep> Compile(const Graph& graph, const StepSignature& signature,
                                     const CompileOptions& options, Runtime* runtime,
                                     StatefulKernels* stateful) {
  CompiledStep step;
  step.num_fetches = static_cast<int>(signature.fetches.size());
  for (const Output& feed : signature.feeds) {
    step.feed_types.emplace_back(RemoveRef(feed.type()), feed.shape());
    step.feed_names.push_back(feed.name());
  }
  if (runtime->devices().size() == 1 || options.one_device) {
    auto check_devices = [&](const Subgraph& subgraph) {
      for (const SubNode& node : subgraph.nodes) {
        if (node.kind != SubNode::Kind::kOp) continue;
        TROUPE_RETURN_IF_ERROR(CheckDevice(*node.original, options, *runtime));
      }
      return absl::OkStatus();
    };
    TROUPE_ASSIGN_OR_RETURN(const StepGraph prepared,
                            PrepareStep(graph, signature, options.simplify,
                                        /*several_devices=*/false, check_devices));
    LocalPartition& all = step.partitions.emplace_back();
    all.device = options.device != nullptr ? options.device : runtime->devices().front().get();
    all.feeds.resize(signature.feeds.size());
    all.fetches.resize(signature.fetches.size());
    std::iota(all.feeds.begin(), all.feeds.end(), 0);
    std::iota(all.fetches.begin(), all.fetches.end(), 0);
    if (options.log_placement) LogPlacement(prepared.subgraph, all.device->device->name());
    TROUPE_ASSIGN_OR_RETURN(all.plan, BuildPlan(prepared.subgraph, all.device, stateful, nullptr,
                                                options.simplify, &options));
    step.num_nodes = all.plan->num_executed;
    return step;
  }
  TROUPE_ASSIGN_OR_RETURN(const CutSignature cut, CutForDevices(graph, signature, options, *runtime,
                                                                stateful, [](const Subgraph&) {}));
  for (const DevicePartition& part : cut.parts.partitions) {
    LocalPartition& local = step.partitions.emplace_back();
    local.device = runtime->FindDevice(part.device);
    if (local.device == nullptr) {
      return absl::InternalError(StrCat("a partition was placed on ", part.device));
    }
    if (options.log_placement) LogPlacement(part.subgraph, part.device);
    local.feeds.assign(part.feeds.begin(), part.feeds.end());
    local.fetches.assign(part.fetches.begin(), part.fetches.end());
    TROUPE_ASSIGN_OR_RETURN(
        local.plan, BuildPlan(part.subgraph, local.device, stateful, runtime, options.simplify));
    stateful->costs()->Watch(local.plan);
    step.num_nodes += local.plan->num_executed;
  }
  return step;
}

}  // namespace troupe
