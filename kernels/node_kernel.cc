#include "kernels/node_kernel.h"

#include <utility>

#include "devices/cpu/cpu_device.h"
#include "devices/cpu/flush_denormals.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/cancellation.h"
#include "kernels/function_runner.h"
#include "kernels/kernel_registry.h"

namespace troupe {

bool IsFunctionCall(const Node& node) { return !node.graph()->ops()->LookUp(node.op()).ok(); }

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
  if (absl::IsNotFound(kernel.status()))
    return InvalidArgument(std::string(kernel.status().message()));
  return kernel;
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
  step.stream = device->stream();
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
  const ScopedFlushDenormals flush;
  TROUPE_RETURN_IF_ERROR(CatchExceptions([&] { return kernel->Compute(ctx); }));
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
