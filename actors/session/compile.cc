#include "actors/session/compile.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/session/lower.h"
#include "devices/cpu/cpu_device.h"
#include "devices/status_macros.h"
#include "graph/passes/frames.h"
#include "graph/passes/loosen_constants.h"
#include "graph/passes/prune.h"
#include "graph/passes/read_late.h"
#include "kernels/cancellation.h"
#include "kernels/function_runner.h"
#include "kernels/kernel_registry.h"

namespace troupe {

namespace {

std::string Text(const absl::Status& status) { return std::string(status.message()); }

/// The device that a node runs on. With one device there is nothing to choose, only to check.
absl::StatusOr<DeviceRole*> Place(const Node& node, const CompileOptions& options,
                                  const Runtime& runtime) {
  DeviceRole* fallback = runtime.devices().front().get();
  const std::string& requested = node.requested_device();
  if (requested.empty()) return fallback;
  absl::StatusOr<DeviceName> name = DeviceName::Parse(requested);
  if (!name.ok()) {
    return InvalidArgument("node ", node.name(), " (", node.op(), "): ", Text(name.status()));
  }
  for (const auto& role : runtime.devices()) {
    if (role->device->parsed_name().Matches(*name)) return role.get();
  }
  if (options.soft_placement) return fallback;
  std::string available;
  for (const auto& role : runtime.devices()) {
    if (!available.empty()) available += ", ";
    available += role->device->name();
  }
  return InvalidArgument("node ", node.name(), " (", node.op(), ") asks for device ", requested,
                         ", but there are only ", available,
                         "; name one of them, or allow soft placement");
}

/// True for a node whose op is a function of its graph's library.
bool IsFunctionCall(const Node& node) {
  return !node.graph()->ops()->LookUp(node.op()).ok();
}

bool IsNoOp(const Node& node) { return node.op() == "NoOp"; }

/// How a node's output reaches a consumer that takes a value although the output is a reference.
bool NeedsSnapshot(const Subgraph& subgraph, const SubOutput& input, bool consumer_takes_ref) {
  return IsRefType(subgraph.nodes[input.node].output_type(input.port)) && !consumer_takes_ref;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const Node& node, Device* device) {
  std::vector<ElementType> inputs, outputs;
  for (int i = 0; i < node.num_inputs(); ++i) inputs.push_back(node.input_type(i));
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(node.output_type(i));
  KernelConstruction construction(&node.def(), &node.op_def(), device, inputs, outputs);
  if (IsFunctionCall(node)) return MakeFunctionCall(construction);
  absl::StatusOr<std::unique_ptr<Kernel>> kernel =
      KernelRegistry::Global()->Create(construction, device->type());
  // A graph that asks for what no device can do is a wrong graph (TensorFlow's placer says the
  // same).
  if (absl::IsNotFound(kernel.status())) return InvalidArgument(Text(kernel.status()));
  return kernel;
}

absl::StatusOr<std::shared_ptr<Kernel>> StatefulKernels::FindOrCreate(const Node& node,
                                                                      DeviceRole* device) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Kernel>& kernel = kernels_[node.name()];
  if (kernel == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(kernel, CreateKernel(node, device->device.get()));
  }
  return kernel;
}

absl::StatusOr<CompiledStep> Compile(const Graph& graph, const StepSignature& signature,
                                     const CompileOptions& options, Runtime* runtime,
                                     StatefulKernels* stateful) {
  TROUPE_ASSIGN_OR_RETURN(Subgraph subgraph, Prune(graph, signature.feeds, signature.fetches,
                                                   absl::MakeConstSpan(signature.targets)));
  StepSignature in_lowered;
  TROUPE_ASSIGN_OR_RETURN(const std::shared_ptr<Graph> lowered,
                          LowerForStep(graph, subgraph, signature, &in_lowered));
  if (lowered != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(subgraph,
                            Prune(*lowered, in_lowered.feeds, in_lowered.fetches,
                                  absl::MakeConstSpan(in_lowered.targets)));
  }
  // Before anything is folded away, so that an impossible device is always refused.
  for (const SubNode& node : subgraph.nodes) {
    if (node.kind != SubNode::Kind::kOp) continue;
    TROUPE_RETURN_IF_ERROR(Place(*node.original, options, *runtime).status());
  }
  // Likewise: loops must be well-formed as they were written.
  TROUPE_ASSIGN_OR_RETURN(Frames frames, FindFrames(subgraph));
  ReadLate(&subgraph);
  if (frames.has_control_flow) LoosenConstants(&subgraph);
  if (options.simplify) Simplify(SimplifyOptions(), EvaluateNode, &subgraph);

  CompiledStep step;
  PlanSpec spec;
  if (frames.has_control_flow) {
    TROUPE_ASSIGN_OR_RETURN(frames, FindFrames(subgraph));
    spec.frames = frames.frames;
  }
  spec.nodes.resize(subgraph.nodes.size());
  for (size_t i = 0; i < subgraph.nodes.size(); ++i) {
    SubNode& from = subgraph.nodes[i];
    PlanSpec::Node& to = spec.nodes[i];
    const Node& node = *from.original;
    to.name = node.name();
    to.op = node.op();
    to.num_outputs = from.num_outputs();
    to.control_inputs.assign(from.control_inputs.begin(), from.control_inputs.end());
    to.frame = frames.frame_of.empty() ? 0 : frames.frame_of[i];
    if (from.kind == SubNode::Kind::kConstant) {
      to.constants = std::move(from.values);
      continue;
    }
    if (from.kind == SubNode::Kind::kFeed) continue;
    for (size_t k = 0; k < from.inputs.size(); ++k) {
      const SubOutput& input = from.inputs[k];
      const bool takes_ref = IsRefType(node.input_type(static_cast<int>(k)));
      to.inputs.push_back({input.node, input.port, NeedsSnapshot(subgraph, input, takes_ref)});
    }
    TROUPE_ASSIGN_OR_RETURN(DeviceRole * device, Place(node, options, *runtime));
    if (IsNoOp(node)) continue;
    to.flow = FlowOpOf(node);
    if (to.flow != FlowOp::kNone) {
      to.enters = frames.enters[i];
      continue;
    }
    if (node.stateful()) {
      TROUPE_ASSIGN_OR_RETURN(to.kernel, stateful->FindOrCreate(node, device));
    } else {
      TROUPE_ASSIGN_OR_RETURN(to.kernel, CreateKernel(node, device->device.get()));
    }
    if (IsFunctionCall(node)) continue;
    TROUPE_ASSIGN_OR_RETURN(const KernelRegistration* registration,
                            KernelRegistry::Global()->Find(device->device->type(), node.def()));
    to.cost = registration->spec.cost;
  }
  // A constant that nothing orders is known from the start; the others must wait for their turn.
  for (PlanSpec::Node& node : spec.nodes) {
    if (node.op != "Const" || node.kernel == nullptr || !node.control_inputs.empty()) continue;
    Tensor value;
    const size_t index = &node - spec.nodes.data();
    if (subgraph.nodes[index].original->attrs().Get("value", &value).ok()) {
      node.kernel = nullptr;
      node.constants.push_back(std::move(value));
    }
  }
  // All CPU devices of a process share memory and threads: one plan runs them all, and its state
  // lives with the first.
  step.device = runtime->devices().front().get();
  spec.device_name = step.device->device->name();
  spec.feeds.assign(subgraph.feeds.begin(), subgraph.feeds.end());
  for (const SubOutput& fetch : subgraph.fetches) {
    spec.fetches.push_back({fetch.node, fetch.port, NeedsSnapshot(subgraph, fetch, false)});
  }
  for (const Output& feed : signature.feeds) {
    step.feed_types.emplace_back(RemoveRef(feed.type()), feed.shape());
    step.feed_names.push_back(feed.name());
  }
  TROUPE_ASSIGN_OR_RETURN(step.plan, Plan::Build(std::move(spec)));
  return step;
}

absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node,
                                                 absl::Span<const Tensor> inputs) {
  static Device* const device = MakeCpuDevice({"localhost", 0, 0, "CPU", 0}, nullptr).release();
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, CreateKernel(node, device));
  if (kernel->async() != nullptr) {
    return absl::UnimplementedError(StrCat("node ", node.name(), " is asynchronous"));
  }
  CancellationToken cancellation;
  StepContext step;
  step.device = device;
  step.allocator = HostAllocator();
  step.stream = device->stream(0);
  step.cancellation = &cancellation;
  const int num_inputs = static_cast<int>(inputs.size());
  std::vector<Slot> slots(num_inputs + node.num_outputs());
  std::vector<int32_t> input_slots;
  for (int i = 0; i < num_inputs; ++i) {
    slots[i].tensor = inputs[i];
    input_slots.push_back(i);
  }
  KernelContext ctx(&step, slots.data(), input_slots.data(), num_inputs, slots.data() + num_inputs,
                    node.num_outputs(), /*forwardable=*/0);
  TROUPE_RETURN_IF_ERROR(kernel->Compute(ctx));
  std::vector<Tensor> outputs;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!ctx.output(i).valid()) {
      return absl::InternalError(StrCat("node ", node.name(), " left output ", i, " empty"));
    }
    outputs.push_back(std::move(ctx.output(i)));
  }
  return outputs;
}

namespace {
// Graphs learn constants through the kernels that are linked with them.
[[maybe_unused]] const bool evaluator_installed = (Graph::SetEvaluator(EvaluateNode), true);
}  // namespace

}  // namespace troupe
