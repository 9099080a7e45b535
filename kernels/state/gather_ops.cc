// ResourceGather, ResourceGatherNd: slices of variables, without a copy of the whole.
#include "absl/strings/str_cat.h"
#include "kernels/array/gather.h"
#include "kernels/state/element_ops.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {
namespace {

/// The slices are copied while the variable is borrowed: a share of its value that outlived the
/// call would make the next update copy all of it.
class GatherVariable : public VariableKernel {
 protected:
  explicit GatherVariable(KernelConstruction& construction)
      : VariableKernel(construction, 1), type_(construction.output_type(0)) {}

  absl::Status CheckVariable(const Variable::Lease& lease) const {
    const Tensor& value = lease.value();
    if (!value.valid()) {
      return absl::NotFoundError(StrCat("the variable '", lease.variable()->name(),
                                        "' is read before it has a value: run its initializer "
                                        "first"));
    }
    if (value.type() != type_) {
      return InvalidArgument("the variable '", lease.variable()->name(), "' is of type ",
                             ElementTypeName(value.type()), ", it is read as ",
                             ElementTypeName(type_));
    }
    if (value.rank() < 1) {
      return InvalidArgument("the variable '", lease.variable()->name(),
                             "' must have at least one dimension to gather from, it is a scalar");
    }
    return absl::OkStatus();
  }

 private:
  ElementType type_;
};

class ResourceGather : public GatherVariable {
 public:
  ResourceGather(KernelConstruction& construction, absl::Status* status)
      : GatherVariable(construction) {
    *status = construction.GetAttr("batch_dims", &batch_dims_);
    if (status->ok() && batch_dims_ < 0) {
      *status = InvalidArgument("batch_dims must not be negative, got ", batch_dims_);
    }
  }

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    TROUPE_RETURN_IF_ERROR(CheckVariable(leases[0]));
    const Tensor &value = leases[0].value(), &indices = ctx.input(1);
    if (batch_dims_ >= value.rank() || batch_dims_ > indices.rank()) {
      return InvalidArgument("batch_dims, ", batch_dims_, ", must be less than the rank of the ",
                             "variable, ", value.rank(),
                             ", and not more than that of the indices, ", indices.rank());
    }
    const int axis = static_cast<int>(batch_dims_);
    return GatherSlices(ctx, value, indices, axis, axis);
  }

 private:
  int64_t batch_dims_ = 0;
};

class ResourceGatherNd : public GatherVariable {
 public:
  ResourceGatherNd(KernelConstruction& construction, absl::Status*)
      : GatherVariable(construction) {}

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    TROUPE_RETURN_IF_ERROR(CheckVariable(leases[0]));
    return GatherNdSlices(ctx, leases[0].value(), ctx.input(1), /*ignore_bad=*/false);
  }
};

}  // namespace

void ForEachGatherOp(const UseKernel& use) {
  const auto spec = [](const char* op) {
    return KernelSpec(op).Types("dtype", AllTypes()).Types("Tindices", IndexTypes());
  };
  use(spec("ResourceGather"), MakeKernel<ResourceGather>);
  use(spec("ResourceGatherNd"), MakeKernel<ResourceGatherNd>);
}

}  // namespace troupe
