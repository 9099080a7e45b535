// The kernels of the queue ops. The first versions have references to strings as handles, the
// second ones resources.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "devices/device.h"
#include "kernels/common/registration.h"
#include "kernels/queues/queue.h"

namespace troupe {
namespace {

using Kind = QueueOptions::Kind;

/// The device whose memory a kernel's elements are in; nullptr: the host's.
const Device* ElementDevice(const KernelContext& ctx) {
  const Device* const device = ctx.step().device;
  const bool own = device != nullptr && device->memory_space() == MemorySpace::kDevice;
  return own ? device : nullptr;
}

template <Kind kind>
class MakeQueue final : public ResourceMaker {
 public:
  MakeQueue(KernelConstruction& c, absl::Status* status) : ResourceMaker(c, TypeName(), status) {
    if (status->ok()) *status = Read(c);
  }

 private:
  static const char* TypeName() {
    constexpr const char* kNames[] = {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue",
                                      "PriorityQueue"};  // In the order of `Kind`.
    return kNames[static_cast<int>(kind)];
  }

  absl::Status Read(KernelConstruction& c) {
    options_.kind = kind;
    TROUPE_RETURN_IF_ERROR(c.GetAttr("component_types", &options_.types));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("shapes", &options_.shapes));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("capacity", &options_.capacity));
    if (options_.capacity < 0) options_.capacity = std::numeric_limits<int64_t>::max();
    const bool needs_shapes = kind == Kind::kPaddingFifo || kind == Kind::kPriority;
    if ((needs_shapes || !options_.shapes.empty()) &&
        options_.shapes.size() != options_.types.size()) {
      return InvalidArgument("there are ", options_.types.size(), " component types, but ",
                             options_.shapes.size(), " shapes",
                             needs_shapes ? ": all components need one" : "");
    }
    for (const PartialShape& shape : options_.shapes) {
      if (kind == Kind::kPaddingFifo ? shape.unknown_rank() : !shape.fully_known()) {
        return InvalidArgument("shape ", shape.ToString(), " of a component must ",
                               kind == Kind::kPaddingFifo ? "have known rank" : "be fully known");
      }
    }
    if (kind == Kind::kPriority) {
      options_.types.insert(options_.types.begin(), ElementType::kInt64);
      options_.shapes.insert(options_.shapes.begin(), PartialShape(Shape()));
    }
    if (kind == Kind::kRandomShuffle) {
      TROUPE_RETURN_IF_ERROR(c.GetAttr("min_after_dequeue", &options_.min_after_dequeue));
      TROUPE_RETURN_IF_ERROR(c.GetAttr("seed", &options_.seed));
      TROUPE_RETURN_IF_ERROR(c.GetAttr("seed2", &options_.seed2));
      if (options_.min_after_dequeue < 0 || options_.min_after_dequeue >= options_.capacity) {
        return InvalidArgument("min_after_dequeue must be >= 0 and less than the capacity ",
                               options_.capacity, ", got ", options_.min_after_dequeue);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<RefPtr<Resource>> Make(KernelContext& ctx, const std::string& name) override {
    QueueOptions options = options_;
    options.device = ElementDevice(ctx);
    return ctx.resources()->MakeQueue(name, options);
  }

  absl::Status Check(const WaitingResource& resource) override {
    const auto* queue = dynamic_cast<const Queue*>(&resource);
    const auto wrong = [&](const char* what) {
      return InvalidArgument("the shared ", resource.DebugString(), " differs from what this ",
                             TypeName(), " asks for in: ", what);
    };
    if (queue == nullptr || queue->options().kind != kind) return wrong("its kind");
    const QueueOptions& found = queue->options();
    if (found.types != options_.types) return wrong("component_types");
    if (found.shapes != options_.shapes) return wrong("shapes");
    if (found.capacity != options_.capacity) return wrong("capacity");
    if (found.min_after_dequeue != options_.min_after_dequeue) return wrong("min_after_dequeue");
    if (found.seed != options_.seed || found.seed2 != options_.seed2) {
      return wrong("seed, seed2");
    }
    return absl::OkStatus();
  }

  QueueOptions options_;
};

/// A kernel that may wait at a queue. What it puts out, if anything, must be what the queue holds.
template <typename Call, absl::Status (*kAsk)(KernelContext& ctx, Call* call)>
class QueueKernel final : public WaitingKernel<Queue, Call> {
 public:
  QueueKernel(KernelConstruction& c, absl::Status* status) {
    if (c.attrs().GetOr<int64_t>("timeout_ms", -1) != -1) {
      *status = InvalidArgument("timeout_ms is not supported: give the step a deadline instead");
    }
    for (int i = 0; i < c.num_outputs(); ++i) types_.push_back(c.output_type(i));
  }

 private:
  absl::Status Ask(const Queue& queue, KernelContext& ctx, Call* call) override {
    if (!types_.empty() && queue.options().types != types_) {
      return InvalidArgument("component_types is not what the ", queue.DebugString(), " holds");
    }
    TROUPE_RETURN_IF_ERROR(CheckDevice(queue, ctx));
    return kAsk(ctx, call);
  }

  /// Elements in the memory of a device are for its own kernels.
  static absl::Status CheckDevice(const Queue& queue, const KernelContext& ctx) {
    const Device *const made_by = queue.options().device, *const device = ElementDevice(ctx);
    if (made_by == device) return absl::OkStatus();
    const auto name = [](const Device* d) {
      return d == nullptr ? std::string("the host") : d->name();
    };
    return InvalidArgument("the ", queue.DebugString(), " was made on ", name(made_by),
                           ", and this node runs on ", name(device), ": they must be the same");
  }

  std::vector<ElementType> types_;
};

template <bool many>
absl::Status Enqueue(KernelContext& ctx, Queue::PutCall* call) {
  call->many = many;
  call->components.reserve(ctx.num_inputs() - 1);
  for (int i = 1; i < ctx.num_inputs(); ++i) call->components.push_back(ctx.TakeInput(i));
  return absl::OkStatus();
}

absl::Status Dequeue(KernelContext&, Queue::TakeCall*) { return absl::OkStatus(); }

template <bool up_to>
absl::Status DequeueMany(KernelContext& ctx, Queue::TakeCall* call) {
  const Tensor& n = ctx.input(1);
  if (n.num_elements() != 1) {
    return InvalidArgument("n must be a scalar, got shape ", n.shape().ToString());
  }
  call->many = true;
  call->up_to = up_to;
  call->n = n.unchecked_scalar<int32_t>();
  return absl::OkStatus();
}

class Close final : public WaitingKernel<Queue, Queue::PutCall> {
 public:
  Close(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("cancel_pending_enqueues", &cancel_pending_);
  }

 private:
  absl::Status Ask(const Queue&, KernelContext&, Queue::PutCall* call) override {
    using Close = Queue::PutCall::Close;
    call->close = cancel_pending_ ? Close::kNow : Close::kAfterPending;
    return absl::OkStatus();
  }

  bool cancel_pending_ = false;
};

template <bool many>
using EnqueueKernel = QueueKernel<Queue::PutCall, Enqueue<many>>;
using DequeueKernel = QueueKernel<Queue::TakeCall, Dequeue>;
template <bool up_to>
using DequeueManyKernel = QueueKernel<Queue::TakeCall, DequeueMany<up_to>>;

absl::Status Size(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Queue> queue, FindWaiting<Queue>(ctx));
  return ctx.SetScalar(0, static_cast<int32_t>(std::min<int64_t>(queue->Size(), INT32_MAX)));
}

absl::Status IsClosed(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Queue> queue, FindWaiting<Queue>(ctx));
  return ctx.SetScalar(0, queue->closed());
}

KernelSpec OfTypes(const char* op) { return Cheap(op).Types("component_types", AllTypes()); }
// A queue holds tensors: elements that are put in and taken out one by one are not looked at.
KernelSpec Anywhere(const KernelSpec& spec) { return KernelSpec(spec).Device("DEFAULT"); }

REGISTER_KERNEL(OfTypes("FIFOQueue"), MakeKernel<MakeQueue<Kind::kFifo>>);
REGISTER_KERNEL(Anywhere(OfTypes("FIFOQueueV2")), MakeKernel<MakeQueue<Kind::kFifo>>);
REGISTER_KERNELS(OfTypes("PaddingFIFOQueue"), MakeKernel<MakeQueue<Kind::kPaddingFifo>>,
                 "PaddingFIFOQueueV2");
REGISTER_KERNELS(OfTypes("PriorityQueue"), MakeKernel<MakeQueue<Kind::kPriority>>,
                 "PriorityQueueV2");
REGISTER_KERNELS(OfTypes("RandomShuffleQueue"), MakeKernel<MakeQueue<Kind::kRandomShuffle>>,
                 "RandomShuffleQueueV2");
REGISTER_KERNEL(Cheap("QueueEnqueue").Types("Tcomponents", AllTypes()),
                MakeKernel<EnqueueKernel<false>>);
REGISTER_KERNEL(Anywhere(Cheap("QueueEnqueueV2").Types("Tcomponents", AllTypes())),
                MakeKernel<EnqueueKernel<false>>);
REGISTER_KERNELS(Cheap("QueueEnqueueMany").Types("Tcomponents", AllTypes()),
                 MakeKernel<EnqueueKernel<true>>, "QueueEnqueueManyV2");
REGISTER_KERNEL(OfTypes("QueueDequeue"), MakeKernel<DequeueKernel>);
REGISTER_KERNEL(Anywhere(OfTypes("QueueDequeueV2")), MakeKernel<DequeueKernel>);
REGISTER_KERNELS(OfTypes("QueueDequeueMany"), MakeKernel<DequeueManyKernel<false>>,
                 "QueueDequeueManyV2");
REGISTER_KERNELS(OfTypes("QueueDequeueUpTo"), MakeKernel<DequeueManyKernel<true>>,
                 "QueueDequeueUpToV2");
REGISTER_KERNEL(Cheap("QueueClose"), MakeKernel<Close>);
REGISTER_KERNEL(Anywhere(Cheap("QueueCloseV2")), MakeKernel<Close>);
REGISTER_KERNEL(Cheap("QueueSize"), MakeKernel<Size>);
REGISTER_KERNEL(Anywhere(Cheap("QueueSizeV2")), MakeKernel<Size>);
REGISTER_KERNEL(Cheap("QueueIsClosed"), MakeKernel<IsClosed>);
REGISTER_KERNEL(Anywhere(Cheap("QueueIsClosedV2").HostMemory("is_closed")), MakeKernel<IsClosed>);

}  // namespace
}  // namespace troupe
