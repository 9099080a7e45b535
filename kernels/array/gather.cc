// Gather, GatherV2, GatherNd: slices of a tensor picked by index.
#include "kernels/array/gather.h"

#include <memory>

#include "kernels/array/indexing_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/array/scatter.h"
#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"

namespace troupe {
absl::Status GatherSlices(KernelContext& ctx, const Tensor& params, const Tensor& indices, int axis,
                          int batch_dims) {
  GatherSizes n;
  DimVector dims;
  for (int d = 0; d < batch_dims; ++d) {
    if (params.dim(d) != indices.dim(d)) {
      return InvalidArgument("params of shape ", params.shape().ToString(),
                             " and indices of shape ", indices.shape().ToString(),
                             " must agree in the first ", batch_dims, " dimensions");
    }
    n.batch *= params.dim(d);
    dims.push_back(params.dim(d));
  }
  for (int d = batch_dims; d < axis; ++d) {
    n.outer *= params.dim(d);
    dims.push_back(params.dim(d));
  }
  n.limit = params.dim(axis);
  for (int d = batch_dims; d < indices.rank(); ++d) {
    n.indices *= indices.dim(d);
    dims.push_back(indices.dim(d));
  }
  for (int d = axis + 1; d < params.rank(); ++d) {
    n.inner *= params.dim(d);
    dims.push_back(params.dim(d));
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, params.type(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  return GatherInto(ctx, n, params, indices, out);
}

absl::Status GatherNdSlices(KernelContext& ctx, const Tensor& params, const Tensor& indices,
                            bool ignore_bad) {
  if (params.rank() < 1 || indices.rank() < 1) {
    return InvalidArgument("params and indices must have at least one dimension, got shapes ",
                           params.shape().ToString(), " and ", indices.shape().ToString());
  }
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > params.rank()) {
    return InvalidArgument("an index has ", depth, " components (indices of shape ",
                           indices.shape().ToString(), "), but params has only ", params.rank(),
                           " dimensions (shape ", params.shape().ToString(), ")");
  }
  DimVector dims(indices.shape().dims().begin(), indices.shape().dims().end() - 1);
  int64_t rows = 1;
  for (const int64_t dim : dims) rows *= dim;
  for (int d = static_cast<int>(depth); d < params.rank(); ++d) dims.push_back(params.dim(d));
  if (rows > 0 && params.num_elements() == 0) {
    return InvalidArgument("there is nothing to gather ", rows, " slices from: params has ",
                           "the shape ", params.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, params.type(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  // Indices without components take no memory, but a row each would.
  if (depth == 0 && rows > (int64_t{1} << 32)) {
    return InvalidArgument("indices of shape ", indices.shape().ToString(),
                           " ask for too many copies of params");
  }
  return GatherNdInto(ctx, params, indices, ignore_bad, out);
}

}  // namespace troupe

namespace troupe::layout {

absl::Status Gather(KernelContext& ctx) {
  if (ctx.input(0).rank() < 1) return InvalidArgument("params must have at least one dimension");
  return GatherSlices(ctx, ctx.input(0), ctx.input(1), 0, 0);
}

absl::Status GatherV2(KernelContext& ctx, int64_t given_batch_dims) {
  const int params_rank = ctx.input(0).rank(), indices_rank = ctx.input(1).rank();
  if (params_rank < 1) return InvalidArgument("params must have at least one dimension");
  TROUPE_ASSIGN_OR_RETURN(const int64_t dim, ReadIntegerScalar(ctx.input(2), "axis"));
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, params_rank, "axis"));
  if (given_batch_dims < -indices_rank || given_batch_dims > indices_rank) {
    return InvalidArgument("batch_dims must be in [", -indices_rank, ", ", indices_rank, "], got ",
                           given_batch_dims);
  }
  const int64_t batch_dims =
      given_batch_dims < 0 ? given_batch_dims + indices_rank : given_batch_dims;
  if (batch_dims >= params_rank || batch_dims > axis) {
    return InvalidArgument("batch_dims, ", batch_dims, ", must be less than the rank of params, ",
                           params_rank, ", and not more than the axis, ", axis);
  }
  return GatherSlices(ctx, ctx.input(0), ctx.input(1), axis, static_cast<int>(batch_dims));
}

namespace {

class GatherNdKernel : public Kernel {
 public:
  GatherNdKernel(KernelConstruction& construction, absl::Status* status) {
    *status = ReadBadIndicesPolicy(construction, &ignore_bad_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    return GatherNdSlices(ctx, ctx.input(0), ctx.input(1), ignore_bad_);
  }

 private:
  bool ignore_bad_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> GatherNd(KernelConstruction& construction) {
  return MakeKernel<GatherNdKernel>(construction);
}

}  // namespace troupe::layout
