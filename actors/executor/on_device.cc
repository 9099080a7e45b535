#include "actors/executor/on_device.h"

#include <algorithm>
#include <new>

#include "actors/executor/flow.h"
#include "devices/exceptions.h"
#include "devices/memory_use.h"
#include "devices/status_macros.h"

namespace troupe {

void ExecutorRole::BeginOnDevice(const StepContext& step) {
  OnDevice& device = *on_device_;
  device.step = step;
  device.step.allocator = step.device->allocator(MemorySpace::kDevice);
  device.step.stream = step.device->stream(StreamUse::kCompute);
  device.step.late_errors = &device.errors;
  device.polled = dynamic_cast<Pollable*>(step.device);
  device.errors.Clear();
  device.errors.set_outer(step.late_errors);
  device.since_mark = 0;
  device.timings.clear();
  if (!timed_) return;
  device.beginning_ns = clock_->NowNs();
  device.beginning = device.step.stream->Record();
}

KernelContext ExecutorRole::ContextOnDevice(const StepContext& step, const PlanNode& plan_node,
                                            Slot* slots) {
  // Outputs in the device's memory take over what is there, and lists lists.
  const uint64_t forwardable = LastUses(plan_node, slots, [](const Tensor& input) {
    return input.space() == MemorySpace::kDevice || input.type() == ElementType::kVariant;
  });
  return KernelContext(&step, slots, input_slots_ + plan_node.first_input, plan_node.num_inputs,
                       slots + plan_node.first_output, plan_node.num_outputs, forwardable);
}

KernelContext ExecutorRole::AsyncContextOnDevice(PendingKernel* pending_kernel,
                                                 const PlanNode& plan_node, Slot* slots) {
  std::unique_ptr<AsyncOnDevice>& own = pending_kernel->on_device;
  if (own == nullptr) own = std::make_unique<AsyncOnDevice>(&on_device_->errors);
  own->errors.Calling(pending_kernel->node);
  own->step = on_device_->step;
  own->step.late_errors = &own->errors;
  return ContextOnDevice(own->step, plan_node, slots);
}

void ExecutorRole::BeginAsyncOnDevice(PendingKernel* pending_kernel, const PlanNode& plan_node) {
  const int32_t node = pending_kernel->node;
  const ScopedAllocationPurpose for_node({&plan_->node_texts, node});
  Stream* const stream = on_device_->step.stream;
  RefPtr<DeviceEvent> before;
  if (timed_) before = stream->Record();
  pending_kernel->BeginAsync(plan_node.kernel);
  // What it enqueues later stands among others' work.
  if (timed_ && pending_kernel->phase.load() == PendingKernel::Phase::kDone) {
    on_device_->timings.push_back(
        {node, pending_kernel->start_ns, std::move(before), stream->Record()});
  }
}

void ExecutorRole::RateFinished() noexcept {
  OnDevice& device = *on_device_;
  if (device.timings.empty() || !device.beginning->Reached()) return;
  for (; !device.timings.empty() && device.timings.front().after->Reached();
       device.timings.pop_front()) {
    const OnDevice::Timing& timing = device.timings.front();
    const auto ns_between = [](const DeviceEvent& from, const DeviceEvent& to) {
      return static_cast<uint64_t>(1e9 * std::max(0.0, to.SecondsSince(from)));
    };
    const uint64_t ns = ns_between(*timing.before, *timing.after);
    plan_->RecordCost(timing.node, ns);
    if (trace_ == nullptr) continue;
    const uint64_t late = ns_between(*device.beginning, *timing.before);
    device.beginning_ns =
        std::max(device.beginning_ns, timing.called_ns - std::min(late, timing.called_ns));
    const uint64_t start = device.beginning_ns + late;
    try {
      Trace({timing.node, NodeTrace::kDeviceStream, start, start + ns});
    } catch (const std::bad_alloc&) {  // Then it is not traced.
    }
  }
}

void ExecutorRole::EnqueuedBy(PendingKernel* pending_kernel) {
  // One that leaves all it has on the host has waited for it.
  const int32_t node = pending_kernel->node;
  bool leaves_work = nodes_[node].num_outputs == 0;
  for (int i = 0; i < nodes_[node].num_outputs; ++i) {
    leaves_work |= plan_->output_space(node, i) == MemorySpace::kDevice;
  }
  if (leaves_work) ++on_device_->since_mark;
  if (!pending_kernel->status.ok()) return;
  const Iteration* iteration = pending_kernel->iteration;
  pending_kernel->status =
      CheckOutputs(node, iteration != nullptr ? iteration->slots : slots_.get());
}

absl::Status ExecutorRole::CheckOutputs(int32_t node, Slot* slots) const {
  const PlanNode& plan_node = nodes_[node];
  for (int i = 0; i < plan_node.num_outputs; ++i) {
    const Tensor& output = slots[plan_node.first_output + i].tensor;
    const bool there = output.space() == MemorySpace::kDevice;
    // A variant is on the host, wherever that is what it holds.
    if (output.type() == ElementType::kVariant) continue;
    if (output.valid() && there != (plan_->output_space(node, i) == MemorySpace::kDevice)) {
      return absl::InternalError(
          StrCat("output ", i, " is in the wrong memory: ", there ? "the device's" : "the host's"));
    }
  }
  return absl::OkStatus();
}

bool ExecutorRole::RunOnDevice(int32_t node, const PlanNode& plan_node, Slot* slots,
                               Iteration* iteration) {
  OnDevice& device = *on_device_;
  device.errors.Calling(node);
  const ScopedAllocationPurpose for_node({&plan_->node_texts, node});
  // Before the call: what fails or throws may have enqueued something.
  ++device.since_mark;
  KernelContext ctx = ContextOnDevice(device.step, plan_node, slots);
  const uint64_t start = timed_ ? clock_->NowNs() : 0;
  RefPtr<DeviceEvent> before;
  if (timed_) before = device.step.stream->Record();
  absl::Status status = plan_node.kernel->Compute(ctx);
  if (timed_) {
    plan_->RecordOutputs(node, ctx);
    Trace({node, 0, start, clock_->NowNs()});
    device.timings.push_back({node, start, std::move(before), device.step.stream->Record()});
  }
  if (status.ok()) status = CheckOutputs(node, slots);
  if (!status.ok()) [[unlikely]] {
    if (!FailedLate()) Fail(node, status);
    return false;
  }
  if (device.since_mark < OnDevice::kKernelsPerMark) return true;
  if (device.free_mark != nullptr) {
    SendMark();
    return true;
  }
  device.held.emplace_back(node, iteration);
  return false;
}

void ExecutorRole::SendMark() noexcept {
  OnDevice& device = *on_device_;
  PendingKernel* mark = device.free_mark;
  if (mark == nullptr) return;
  device.free_mark = mark->next_free;
  device.since_mark = 0;
  ++outstanding_;
  try {
    device.step.stream->WhenDone([mark](absl::Status reached) {
      mark->status = std::move(reached);
      mark->executor->Send(mark, Player::kHandsOn);
    });
  } catch (...) {
    // The stream has no memory for it: this thread waits.
    while (!device.step.stream->Done()) ThreadParker::Yield();
    --outstanding_;
    mark->next_free = device.free_mark;
    device.free_mark = mark;
  }
}

void ExecutorRole::HandleMark(PendingKernel* mark) {
  OnDevice& device = *on_device_;
  mark->next_free = device.free_mark;
  device.free_mark = mark;
  if (!mark->status.ok()) {
    FailStep(
        absl::UnavailableError(StrCat(step_.device->name(), " is lost: ", mark->status.message())));
  }
  if (FailedLate() || failed_) return;
  if (timed_) RateFinished();
  if (device.since_mark >= OnDevice::kKernelsPerMark) SendMark();
  for (const auto& [node, iteration] : device.held) {
    if (iteration != nullptr) {
      CompleteFlow(node, iteration, /*dead=*/false);
    } else {
      Complete(nodes_[node]);
    }
  }
  device.held.clear();
}

bool ExecutorRole::WaitForDevice() noexcept {
  if (on_device_->since_mark > 0) {
    SendMark();
    return true;
  }
  FailedLate();
  if (timed_) RateFinished();
  on_device_->held.clear();
  on_device_->timings.clear();
  on_device_->beginning.reset();
  return false;
}

bool ExecutorRole::FailedLate() noexcept {
  if (failed_ || !on_device_->errors.any()) return false;
  const auto [node, status] = on_device_->errors.first();
  Fail(node, status);
  return true;
}

}  // namespace troupe
