// ScatterNd, TensorScatterAdd and its kin: updates at given places of zeros or of a copy of a
// tensor.
#include <algorithm>
#include <memory>
#include <string>

#include "kernels/array/indexing_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/array/scatter.h"
#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"

namespace troupe {

absl::Status CheckScatterNd(const Tensor& indices, const Tensor& updates, const Shape& shape) {
  if (indices.rank() < 2 || updates.rank() < 1) {
    return InvalidArgument("indices must have at least two dimensions, updates one, got shapes ",
                           indices.shape().ToString(), " and ", updates.shape().ToString());
  }
  if (shape.num_elements() == 0 && (indices.num_elements() > 0 || updates.num_elements() > 0)) {
    return InvalidArgument("indices and updates are given for an output of shape ",
                           shape.ToString(), ", which is empty");
  }
  const int outer = indices.rank() - 1;
  const int64_t depth = indices.dim(outer);
  const auto& dims = indices.shape().dims();
  const bool no_rows = std::find(dims.begin(), dims.end() - 1, 0) != dims.end() - 1;
  if (depth < 1 && !no_rows) {
    return InvalidArgument("indices of shape ", indices.shape().ToString(),
                           " have no components: their last dimension must be at least 1");
  }
  bool fits = depth <= shape.rank() && updates.rank() - outer == shape.rank() - depth;
  for (int d = 0; fits && d < outer; ++d) fits = updates.dim(d) == indices.dim(d);
  for (int d = outer; fits && d < updates.rank(); ++d) {
    fits = updates.dim(d) == shape.dim(d - outer + static_cast<int>(depth));
  }
  if (!fits) {
    return InvalidArgument("updates of shape ", updates.shape().ToString(),
                           " must have the outer dimensions of indices of shape ",
                           indices.shape().ToString(), ", then those of the output of shape ",
                           shape.ToString(), " that an index leaves");
  }
  return absl::OkStatus();
}

int64_t SliceElements(const Shape& shape, int64_t depth) {
  int64_t elements = 1;
  for (int d = static_cast<int>(depth); d < shape.rank(); ++d) elements *= shape.dim(d);
  return elements;
}

absl::Status ReadBadIndicesPolicy(KernelConstruction& construction, bool* ignore) {
  const std::string policy = construction.Attr<std::string>("bad_indices_policy");
  *ignore = policy == "IGNORE";
  if (*ignore || policy.empty() || policy == "DEFAULT" || policy == "ERROR") {
    return absl::OkStatus();
  }
  return InvalidArgument("bad_indices_policy must be DEFAULT, ERROR or IGNORE, got ", policy);
}

}  // namespace troupe

namespace troupe::layout {
namespace {

/// Scatters into output 0.
absl::Status Scatter(KernelContext& ctx, ScatterOp op, const Tensor& indices, const Tensor& updates,
                     bool ignore_bad) {
  if (updates.num_elements() == 0) return absl::OkStatus();
  return ScatterNdInto(ctx, op, indices, updates, ignore_bad, &ctx.output(0));
}

class ScatterNdBase : public Kernel {
 public:
  ScatterNdBase(KernelConstruction& construction, absl::Status* status) {
    *status = ReadBadIndicesPolicy(construction, &ignore_bad_);
  }

 protected:
  bool ignore_bad_ = false;
};

class ScatterNdKernel : public ScatterNdBase {
 public:
  using ScatterNdBase::ScatterNdBase;
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(0), &updates = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(2), "shape"));
    TROUPE_RETURN_IF_ERROR(CheckScatterNd(indices, updates, shape));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, updates.type(), shape));
    ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
    return Scatter(ctx, ScatterOp::kAdd, indices, updates, ignore_bad_);
  }
};

template <ScatterOp kOp>
class TensorScatter : public ScatterNdBase {
 public:
  using ScatterNdBase::ScatterNdBase;
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(1), &updates = ctx.input(2);
    const Shape shape = ctx.input(0).shape();
    TROUPE_RETURN_IF_ERROR(CheckScatterNd(indices, updates, shape));
    TROUPE_RETURN_IF_ERROR(ForwardOrCopy(ctx));
    return Scatter(ctx, kOp, indices, updates, ignore_bad_);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> ScatterNd(KernelConstruction& construction) {
  return MakeKernel<ScatterNdKernel>(construction);
}
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterAdd(KernelConstruction& construction) {
  return MakeKernel<TensorScatter<ScatterOp::kAdd>>(construction);
}
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterSub(KernelConstruction& construction) {
  return MakeKernel<TensorScatter<ScatterOp::kSubtract>>(construction);
}
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterMin(KernelConstruction& construction) {
  return MakeKernel<TensorScatter<ScatterOp::kMin>>(construction);
}
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterMax(KernelConstruction& construction) {
  return MakeKernel<TensorScatter<ScatterOp::kMax>>(construction);
}
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterUpdate(KernelConstruction& construction) {
  return MakeKernel<TensorScatter<ScatterOp::kUpdate>>(construction);
}

}  // namespace troupe::layout
