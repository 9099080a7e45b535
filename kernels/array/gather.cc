// Gather, GatherV2, GatherNd: slices of a tensor picked by index.
#include "kernels/array/gather.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/array/index_view.h"
#include "kernels/array/scatter.h"
#include "kernels/common/registration.h"
#include "kernels/kernel_registry.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// Sizes of a gather: `out[b, o, i, :] = params[b, o, indices[b, i], :]`.
struct Sizes {
  int64_t batch = 1, outer = 1, limit = 1, indices = 1, inner = 1;
};

template <typename T>
void CopySlices(KernelContext& ctx, const Sizes& n, const T* params, const int64_t* indices,
                T* out) {
  const double slice_ns =
      std::is_trivially_copyable_v<T> ? 2 + 0.1 * sizeof(T) * n.inner : 20.0 * n.inner;
  ctx.ParallelFor(n.batch * n.outer * n.indices, KernelContext::GrainFor(slice_ns),
                  [&](int64_t begin, int64_t end) {
                    int64_t i = begin % n.indices, row = begin / n.indices;
                    const int64_t* index = indices + row / n.outer * n.indices;
                    const T* block = params + row * n.limit * n.inner;
                    T* to = out + begin * n.inner;
                    for (int64_t at = begin; at < end; ++at) {
                      const T* from = block + index[i] * n.inner;
                      if (n.inner == 1) {
                        *to = *from;
                      } else if constexpr (std::is_trivially_copyable_v<T>) {
                        std::memcpy(to, from, n.inner * sizeof(T));
                      } else {
                        std::copy(from, from + n.inner, to);
                      }
                      to += n.inner;
                      if (++i == n.indices) {
                        i = 0;
                        ++row;
                        index = indices + row / n.outer * n.indices;
                        block = params + row * n.limit * n.inner;
                      }
                    }
                  });
}

}  // namespace

absl::Status GatherSlices(KernelContext& ctx, const Tensor& params, const Tensor& indices, int axis,
                          int batch_dims) {
  Sizes n;
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
  TROUPE_ASSIGN_OR_RETURN(const IndexView index, IndexView::Of(indices, "indices"));
  for (int64_t i = 0; i < n.batch * n.indices; ++i) {
    // One comparison for both ends.
    if (static_cast<uint64_t>(index[i]) >= static_cast<uint64_t>(n.limit)) {
      return IndexOutOfRange(indices, "indices", i, index[i], n.limit);
    }
  }
  return SwitchBySize(params.type(), [&]<typename T>() {
    CopySlices(ctx, n, static_cast<const T*>(params.raw_data()), index.data(),
               static_cast<T*>(out->mutable_raw_data()));
    return absl::OkStatus();
  });
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
  Sizes n;
  DimVector dims;
  for (int d = 0; d + 1 < indices.rank(); ++d) {
    n.indices *= indices.dim(d);
    dims.push_back(indices.dim(d));
  }
  for (int d = static_cast<int>(depth); d < params.rank(); ++d) {
    n.inner *= params.dim(d);
    dims.push_back(params.dim(d));
  }
  if (n.indices > 0 && params.num_elements() == 0) {
    return InvalidArgument("there is nothing to gather ", n.indices, " slices from: params has ",
                           "the shape ", params.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, params.type(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  // Indices without components take no memory, but a row each would.
  if (depth == 0 && n.indices > (int64_t{1} << 32)) {
    return InvalidArgument("indices of shape ", indices.shape().ToString(),
                           " ask for too many copies of params");
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<int64_t> rows,
                          NdOffsets(indices, params.shape(), ignore_bad));
  std::vector<int64_t> ignored;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0) ignored.push_back(static_cast<int64_t>(i));
    rows[i] = std::max<int64_t>(rows[i], 0) / n.inner;
  }
  TROUPE_RETURN_IF_ERROR(SwitchBySize(params.type(), [&]<typename T>() {
    CopySlices(ctx, n, static_cast<const T*>(params.raw_data()), rows.data(),
               static_cast<T*>(out->mutable_raw_data()));
    return absl::OkStatus();
  }));
  for (const int64_t i : ignored) {
    ZeroElements(ctx, out->type(), ElementAt(out->type(), out->mutable_raw_data(), i * n.inner),
                 n.inner);
  }
  return absl::OkStatus();
}

namespace {

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

class GatherNd : public Kernel {
 public:
  GatherNd(KernelConstruction& construction, absl::Status* status) {
    *status = ReadBadIndicesPolicy(construction, &ignore_bad_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    return GatherNdSlices(ctx, ctx.input(0), ctx.input(1), ignore_bad_);
  }

 private:
  bool ignore_bad_ = false;
};

KernelSpec Spec(const char* op) {
  return KernelSpec(op)
      .Types("Tparams", AllTypes())
      .Types("Tindices", {ElementType::kInt16, ElementType::kInt32, ElementType::kInt64});
}

REGISTER_KERNEL(Spec("Gather"), MakeKernel<Gather>);
REGISTER_KERNEL(Spec("GatherNd"), MakeKernel<GatherNd>);
REGISTER_KERNEL(Spec("GatherV2").Types("Taxis", IndexTypes()),
                (MakeAttrKernel<GatherV2, "batch_dims">));

}  // namespace
}  // namespace troupe
