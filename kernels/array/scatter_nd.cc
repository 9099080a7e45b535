// ScatterNd, TensorScatterAdd, TensorScatterUpdate: updates at given places of zeros or of a copy
// of a tensor.
#include "kernels/array/scatter.h"
#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

/// Scatters into output 0.
absl::Status Scatter(KernelContext& ctx, ScatterOp op, const Tensor& indices, const Tensor& updates,
                     bool ignore_bad) {
  Tensor& out = ctx.output(0);
  if (updates.num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                          NdOffsets(indices, out.shape(), ignore_bad));
  const int64_t inner = SliceElements(out.shape(), indices.dim(indices.rank() - 1));
  return ScatterSlices(ctx, op, updates, offsets, inner, &out);
}

class ScatterNdBase : public Kernel {
 public:
  ScatterNdBase(KernelConstruction& construction, absl::Status* status) {
    *status = ReadBadIndicesPolicy(construction, &ignore_bad_);
  }

 protected:
  bool ignore_bad_ = false;
};

class ScatterNd : public ScatterNdBase {
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

KernelSpec Spec(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op).Types("T", std::move(types)).Types("Tindices", IndexTypes());
}

REGISTER_KERNEL(Spec("ScatterNd", WithString(PlainTypes())), MakeKernel<ScatterNd>);
REGISTER_KERNEL(Spec("TensorScatterAdd", NumberTypes()),
                MakeKernel<TensorScatter<ScatterOp::kAdd>>);
REGISTER_KERNEL(Spec("TensorScatterUpdate", WithString(PlainTypes())),
                MakeKernel<TensorScatter<ScatterOp::kUpdate>>);

}  // namespace
}  // namespace troupe
