// The kernels of the barrier ops, whose handle is a reference to a string.
#include <algorithm>
#include <utility>

#include "kernels/common/registration.h"
#include "kernels/sync/synchronizer_options.h"

namespace troupe {
namespace {

class MakeBarrier final : public ResourceMaker {
 public:
  MakeBarrier(KernelConstruction& c, absl::Status* status) : ResourceMaker(c, "Barrier", status) {
    if (status->ok()) *status = Read(c);
  }

 private:
  absl::Status Read(KernelConstruction& c) {
    TROUPE_RETURN_IF_ERROR(c.GetAttr("component_types", &options_.types));
    std::vector<PartialShape> shapes;
    TROUPE_RETURN_IF_ERROR(c.GetAttr("shapes", &shapes));
    int64_t capacity = -1;
    TROUPE_RETURN_IF_ERROR(c.GetAttr("capacity", &capacity));
    if (capacity != -1) {
      return InvalidArgument("a barrier has no capacity but -1, got ", capacity,
                             ": feed it by a queue to limit what it holds");
    }
    if (shapes.size() != options_.types.size()) {
      return InvalidArgument("there are ", options_.types.size(), " component types, but ",
                             shapes.size(), " shapes: all components need one");
    }
    for (const PartialShape& shape : shapes) {
      if (!shape.fully_known()) {
        return InvalidArgument("shape ", shape.ToString(), " of a component must be fully known");
      }
      TROUPE_ASSIGN_OR_RETURN(Shape known, shape.ToShape());
      options_.shapes.push_back(std::move(known));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<RefPtr<Resource>> Make(KernelContext&, const std::string& name) override {
    return MakeSynchronizer(name, {options_});
  }
  absl::Status Check(const WaitingResource& resource) override {
    const auto* barrier = dynamic_cast<const TupleBarrier*>(&resource);
    if (barrier != nullptr && barrier->options() == options_) return absl::OkStatus();
    return InvalidArgument("the shared ", resource.DebugString(),
                           " differs from what this Barrier asks for in ",
                           barrier == nullptr                           ? "its kind"
                           : barrier->options().types != options_.types ? "component_types"
                                                                        : "shapes");
  }

  BarrierOptions options_;
};

class InsertMany final : public WaitingKernel<TupleBarrier, TupleBarrier::InsertCall> {
 public:
  InsertMany(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("component_index", &component_);
  }

 private:
  absl::Status Ask(const TupleBarrier&, KernelContext& ctx,
                   TupleBarrier::InsertCall* call) override {
    call->component = component_;
    call->keys = ctx.input(1);
    call->values = ctx.TakeInput(2);
    return absl::OkStatus();
  }

  int64_t component_ = 0;
};

class TakeMany final : public WaitingKernel<TupleBarrier, TupleBarrier::TakeCall> {
 public:
  TakeMany(KernelConstruction& c, absl::Status* status)
      : small_(c.Attr<bool>("allow_small_batch")) {
    if (c.attrs().GetOr<int64_t>("timeout_ms", -1) != -1) {
      *status = InvalidArgument("timeout_ms is not supported: give the step a deadline instead");
    }
    for (int i = 2; i < c.num_outputs(); ++i) types_.push_back(c.output_type(i));
  }

 private:
  absl::Status Ask(const TupleBarrier& barrier, KernelContext& ctx,
                   TupleBarrier::TakeCall* call) override {
    if (barrier.options().types != types_) {
      return InvalidArgument("component_types is not what the ", barrier.DebugString(), " holds");
    }
    const Tensor& n = ctx.input(1);
    if (n.rank() != 0) {
      return InvalidArgument("num_elements must be a scalar, got shape ", n.shape().ToString());
    }
    call->n = n.unchecked_scalar<int32_t>();
    call->allow_small_batch = small_;
    return absl::OkStatus();
  }

  bool small_;
  std::vector<ElementType> types_;
};

class Close final : public WaitingKernel<TupleBarrier, TupleBarrier::CloseCall> {
 public:
  Close(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("cancel_pending_enqueues", &cancel_pending_);
  }

 private:
  absl::Status Ask(const TupleBarrier&, KernelContext&, TupleBarrier::CloseCall* call) override {
    call->cancel_pending = cancel_pending_;
    return absl::OkStatus();
  }

  bool cancel_pending_ = false;
};

template <int64_t (TupleBarrier::*kSize)() const>
absl::Status Size(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TupleBarrier> barrier, FindWaiting<TupleBarrier>(ctx));
  const int64_t size = (barrier.get()->*kSize)();
  return ctx.SetScalar(0, static_cast<int32_t>(std::min<int64_t>(size, INT32_MAX)));
}

REGISTER_KERNEL(Cheap("Barrier"), MakeKernel<MakeBarrier>);
REGISTER_KERNEL(KernelSpec("BarrierInsertMany").Types("T", AllTypes()), MakeKernel<InsertMany>);
REGISTER_KERNEL(KernelSpec("BarrierTakeMany"), MakeKernel<TakeMany>);
REGISTER_KERNEL(Cheap("BarrierClose"), MakeKernel<Close>);
REGISTER_KERNEL(Cheap("BarrierReadySize"), MakeKernel<Size<&TupleBarrier::ReadySize>>);
REGISTER_KERNEL(Cheap("BarrierIncompleteSize"), MakeKernel<Size<&TupleBarrier::IncompleteSize>>);

}  // namespace
}  // namespace troupe
