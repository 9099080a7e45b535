#include "kernels/nn/batch_norm_shape.h"

#include <string>

#include "devices/status_macros.h"

namespace troupe {
namespace {

absl::StatusOr<ChannelLayout> LayoutOf(const Shape& shape, bool channels_first) {
  if (shape.rank() != 4 && shape.rank() != 5) {
    return InvalidArgument("the input must be of rank 4 or 5, got shape ", shape.ToString());
  }
  ChannelLayout layout;
  const int axis = channels_first ? 1 : shape.rank() - 1;
  layout.channels = shape.dim(axis);
  layout.outer = 1;
  for (int d = 0; d < axis; ++d) layout.outer *= shape.dim(d);
  for (int d = axis + 1; d < shape.rank(); ++d) layout.inner *= shape.dim(d);
  return layout;
}

absl::Status CheckVector(const char* name, const Tensor& t, int64_t channels) {
  if (t.rank() == 1 && t.dim(0) == channels) return absl::OkStatus();
  return InvalidArgument(name, " must be a vector of one element per channel, ", channels,
                         ", got shape ", t.shape().ToString());
}

}  // namespace

absl::Status BatchNormAttrs::Read(const KernelConstruction& construction) {
  std::string format;
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("data_format", &format));
  channels_first = format.size() > 1 && format[1] == 'C';
  factor = construction.attrs().GetOr<float>("exponential_avg_factor", 1.0f);
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("epsilon", &epsilon));
  return construction.GetAttr("is_training", &is_training);
}

absl::StatusOr<ChannelLayout> CheckBatchNorm(const KernelContext& ctx,
                                             const BatchNormAttrs& attrs) {
  TROUPE_ASSIGN_OR_RETURN(const ChannelLayout layout,
                          LayoutOf(ctx.input(0).shape(), attrs.channels_first));
  TROUPE_RETURN_IF_ERROR(CheckVector("scale", ctx.input(1), layout.channels));
  TROUPE_RETURN_IF_ERROR(CheckVector("offset", ctx.input(2), layout.channels));
  if (attrs.uses_given()) {
    TROUPE_RETURN_IF_ERROR(CheckVector("mean", ctx.input(3), layout.channels));
    TROUPE_RETURN_IF_ERROR(CheckVector("variance", ctx.input(4), layout.channels));
  } else if (ctx.input(3).rank() != 1 || ctx.input(4).rank() != 1) {
    return InvalidArgument("mean and variance must be vectors, got shapes ",
                           ctx.input(3).shape().ToString(), " and ",
                           ctx.input(4).shape().ToString());
  }
  return layout;
}

absl::StatusOr<ChannelLayout> CheckBatchNormGrad(const KernelContext& ctx,
                                                 const BatchNormAttrs& attrs) {
  const Shape &dy = ctx.input(0).shape(), &x = ctx.input(1).shape();
  TROUPE_ASSIGN_OR_RETURN(const ChannelLayout layout, LayoutOf(x, attrs.channels_first));
  if (!(dy == x)) {
    return InvalidArgument("y_backprop and x must have the same shape, got ", dy.ToString(),
                           " and ", x.ToString());
  }
  TROUPE_RETURN_IF_ERROR(CheckVector("scale", ctx.input(2), layout.channels));
  TROUPE_RETURN_IF_ERROR(CheckVector("the saved mean", ctx.input(3), layout.channels));
  TROUPE_RETURN_IF_ERROR(CheckVector("the saved variance", ctx.input(4), layout.channels));
  return layout;
}

namespace {

/// Inputs 1 to `vectors` are vectors of channels.
absl::Status CheckVectors(const KernelContext& ctx, int vectors) {
  const Shape& t = ctx.input(0).shape();
  if (t.rank() != 4) {
    return InvalidArgument("the input must be of rank 4, got shape ", t.ToString());
  }
  for (int i = 1; i <= vectors; ++i) {
    const Shape& vector = ctx.input(i).shape();
    if (vector.rank() == 1 && vector.dim(0) == t.dim(3)) continue;
    return InvalidArgument("input ", i, " must be a vector of one element for each of the ",
                           t.dim(3), " channels, got shape ", vector.ToString());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGlobalNorm(const KernelContext& ctx) { return CheckVectors(ctx, 4); }

absl::Status CheckGlobalNormGrad(const KernelContext& ctx) {
  TROUPE_RETURN_IF_ERROR(CheckVectors(ctx, 3));
  const Shape& shape = ctx.input(0).shape();
  if (ctx.input(4).shape() == shape) return absl::OkStatus();
  return InvalidArgument("t and backprop must have the same shape, got ", shape.ToString(), " and ",
                         ctx.input(4).shape().ToString());
}

}  // namespace troupe
