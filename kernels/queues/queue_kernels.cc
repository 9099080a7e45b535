// The kernels of the queue ops. The first versions have references to strings as handles, the
// second ones resources.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/common/registration.h"
#include "kernels/queues/queue.h"

namespace troupe {
namespace {

using Kind = QueueOptions::Kind;

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

  RefPtr<WaitingResource> Make(const std::string& name) override {
    return MakeRef<Queue>(name, options_);
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
template <void (*kCall)(Queue& queue, KernelContext& ctx, KernelDone done)>
class QueueKernel final : public AsyncKernel {
 public:
  QueueKernel(KernelConstruction& c, absl::Status* status) {
    if (c.attrs().GetOr<int64_t>("timeout_ms", -1) != -1) {
      *status = InvalidArgument("timeout_ms is not supported: give the step a deadline instead");
    }
    for (int i = 0; i < c.num_outputs(); ++i) types_.push_back(c.output_type(i));
  }
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<RefPtr<Queue>> found = FindWaiting<Queue>(ctx);
    if (!found.ok()) return done(found.status());
    Queue& queue = **found;
    if (!types_.empty() && queue.options().types != types_) {
      return done(
          InvalidArgument("component_types is not what the ", queue.DebugString(), " holds"));
    }
    kCall(queue, ctx, done);
  }

 private:
  std::vector<ElementType> types_;
};

template <bool many>
void Enqueue(Queue& queue, KernelContext& ctx, KernelDone done) {
  queue.Enqueue(ctx, done, many);
}

void Dequeue(Queue& queue, KernelContext& ctx, KernelDone done) { queue.Dequeue(ctx, done); }

template <bool up_to>
void DequeueMany(Queue& queue, KernelContext& ctx, KernelDone done) {
  const Tensor& n = ctx.input(1);
  if (n.num_elements() != 1) {
    return done(InvalidArgument("n must be a scalar, got shape ", n.shape().ToString()));
  }
  queue.DequeueMany(ctx, done, n.unchecked_scalar<int32_t>(), up_to);
}

class Close final : public AsyncKernel {
 public:
  Close(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("cancel_pending_enqueues", &cancel_pending_);
  }
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<RefPtr<Queue>> queue = FindWaiting<Queue>(ctx);
    if (!queue.ok()) return done(queue.status());
    (*queue)->Close(ctx, done, cancel_pending_);
  }

 private:
  bool cancel_pending_ = false;
};

absl::Status Size(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Queue> queue, FindWaiting<Queue>(ctx));
  return ctx.SetScalar(0, static_cast<int32_t>(std::min<int64_t>(queue->Size(), INT32_MAX)));
}

absl::Status IsClosed(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Queue> queue, FindWaiting<Queue>(ctx));
  return ctx.SetScalar(0, queue->closed());
}

KernelSpec OfTypes(const char* op) { return Cheap(op).Types("component_types", AllTypes()); }

REGISTER_KERNELS(OfTypes("FIFOQueue"), MakeKernel<MakeQueue<Kind::kFifo>>, "FIFOQueueV2");
REGISTER_KERNELS(OfTypes("PaddingFIFOQueue"), MakeKernel<MakeQueue<Kind::kPaddingFifo>>,
                 "PaddingFIFOQueueV2");
REGISTER_KERNELS(OfTypes("PriorityQueue"), MakeKernel<MakeQueue<Kind::kPriority>>,
                 "PriorityQueueV2");
REGISTER_KERNELS(OfTypes("RandomShuffleQueue"), MakeKernel<MakeQueue<Kind::kRandomShuffle>>,
                 "RandomShuffleQueueV2");
REGISTER_KERNELS(Cheap("QueueEnqueue").Types("Tcomponents", AllTypes()),
                 MakeKernel<QueueKernel<Enqueue<false>>>, "QueueEnqueueV2");
REGISTER_KERNELS(Cheap("QueueEnqueueMany").Types("Tcomponents", AllTypes()),
                 MakeKernel<QueueKernel<Enqueue<true>>>, "QueueEnqueueManyV2");
REGISTER_KERNELS(OfTypes("QueueDequeue"), MakeKernel<QueueKernel<Dequeue>>, "QueueDequeueV2");
REGISTER_KERNELS(OfTypes("QueueDequeueMany"), MakeKernel<QueueKernel<DequeueMany<false>>>,
                 "QueueDequeueManyV2");
REGISTER_KERNELS(OfTypes("QueueDequeueUpTo"), MakeKernel<QueueKernel<DequeueMany<true>>>,
                 "QueueDequeueUpToV2");
REGISTER_KERNELS(Cheap("QueueClose"), MakeKernel<Close>, "QueueCloseV2");
REGISTER_KERNELS(Cheap("QueueSize"), MakeKernel<Size>, "QueueSizeV2");
REGISTER_KERNELS(Cheap("QueueIsClosed"), MakeKernel<IsClosed>, "QueueIsClosedV2");

}  // namespace
}  // namespace troupe
