// Assign, AssignVariableOp, CountUpTo, ResourceCountUpTo.
#include "absl/strings/str_cat.h"
#include "devices/device.h"
#include "kernels/common/strided_copy.h"
#include "kernels/kernel_registry.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {
namespace {

/// The variable's new value from input `i`: its buffer if that is to be had, else a copy, in the
/// variable's own buffer if that fits and nobody reads it.
absl::Status TakeValue(KernelContext& ctx, int i, Variable::Lease& lease) {
  const Tensor& input = ctx.input(i);
  // A view of a part of something larger would keep all of it alive.
  const bool compact = input.buffer() && input.buffer()->bytes() <= 2 * input.bytes() + 4096;
  if (ctx.CanForward(i) && compact) {
    lease.set_value(ctx.TakeInput(i));
    return absl::OkStatus();
  }
  const Tensor& old = lease.value();
  if (!old.valid() || !old.unique() || !(old.shape() == input.shape())) {
    TROUPE_ASSIGN_OR_RETURN(Tensor value, ctx.AllocateTemp(input.type(), input.shape()));
    lease.set_value(std::move(value));
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * value, lease.mutable_value());
  if (input.space() == MemorySpace::kDevice) {
    return ctx.step().device->Copy(input, *value, ctx.step().stream);
  }
  const int64_t count = input.num_elements();
  CopyRuns(ctx, input.type(), 1, count, value->mutable_raw_data(), count, input.raw_data(), count);
  return absl::OkStatus();
}

/// Assign, AssignVariableOp.
class Assign : public VariableKernel {
 public:
  Assign(KernelConstruction& construction, absl::Status*)
      : VariableKernel(construction, 1),
        validate_shape_(construction.Attr<bool>("validate_shape")),
        type_(construction.input_type(1)) {}

 protected:
  absl::StatusOr<RefPtr<Variable>> Resolve(KernelContext& ctx, int i) override {
    return FindOrMakeVariable(ctx, i, type_);
  }
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    const Shape& shape = ctx.input(1).shape();
    const Tensor& old = leases[0].value();
    const PartialShape& declared = leases[0].variable()->shape();
    // The first value behind a handle may have any shape.
    const bool fits =
        !validate_shape_ ||
        (old.valid() ? old.shape() == shape : !by_reference() || declared.IsCompatibleWith(shape));
    if (fits) return TakeValue(ctx, 1, leases[0]);
    return InvalidArgument("the variable '", leases[0].variable()->name(), "' has shape ",
                           old.valid() ? old.shape().ToString() : declared.ToString(),
                           ", the value ", shape.ToString(),
                           ": they must be the same; set validate_shape to false to change the "
                           "variable's shape");
  }

 private:
  bool validate_shape_;
  ElementType type_;
};

/// CountUpTo, ResourceCountUpTo.
class CountUpTo : public VariableKernel {
 public:
  CountUpTo(KernelConstruction& construction, absl::Status* status)
      : VariableKernel(construction, 1), type_(construction.output_type(0)) {
    *status = construction.GetAttr("limit", &limit_);
  }

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    TROUPE_ASSIGN_OR_RETURN(Tensor * value, leases[0].mutable_value());
    if (value->rank() != 0) {
      return InvalidArgument("CountUpTo needs a scalar variable, '", leases[0].variable()->name(),
                             "' has shape ", value->shape().ToString());
    }
    if (value->type() != type_) {
      return InvalidArgument("the variable '", leases[0].variable()->name(), "' is of type ",
                             ElementTypeName(value->type()), " but is used as one of ",
                             ElementTypeName(type_));
    }
    return value->type() == ElementType::kInt64 ? Count<int64_t>(ctx, value)
                                                : Count<int32_t>(ctx, value);
  }

 private:
  template <typename T>
  absl::Status Count(KernelContext& ctx, Tensor* value) {
    T* count = value->mutable_data<T>();
    if (*count >= limit_) return absl::OutOfRangeError(absl::StrCat("Reached limit of ", limit_));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, value->type(), Shape()));
    *out->mutable_data<T>() = (*count)++;
    return absl::OkStatus();
  }

  ElementType type_;
  int64_t limit_ = 0;
};

REGISTER_KERNEL(KernelSpec("Assign").Device("DEFAULT").Types("T", AllTypes()), MakeKernel<Assign>);
REGISTER_KERNEL(KernelSpec("AssignVariableOp").Device("DEFAULT").Types("dtype", AllTypes()),
                MakeKernel<Assign>);
REGISTER_KERNEL(KernelSpec("CountUpTo").Types("T", IndexTypes()).Cost(KernelCost::kCheap),
                MakeKernel<CountUpTo>);
REGISTER_KERNEL(KernelSpec("ResourceCountUpTo").Types("T", IndexTypes()).Cost(KernelCost::kCheap),
                MakeKernel<CountUpTo>);

}  // namespace
}  // namespace troupe
