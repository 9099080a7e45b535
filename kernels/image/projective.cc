#include "kernels/image/projective.h"

#include <string>

#include "kernels/image/resize_shape.h"

namespace troupe {

ProjectiveKernel::ProjectiveKernel(KernelConstruction& construction, absl::Status* status) {
  const auto interpolation = construction.Attr<std::string>("interpolation");
  const auto fill_mode = construction.Attr<std::string>("fill_mode");
  bilinear_ = interpolation == "BILINEAR";
  outside_ = fill_mode == "REFLECT"   ? Outside::kReflect
             : fill_mode == "WRAP"    ? Outside::kWrap
             : fill_mode == "NEAREST" ? Outside::kNearest
                                      : Outside::kConstant;
  if (!bilinear_ && interpolation != "NEAREST") {
    *status =
        InvalidArgument("`interpolation` must be NEAREST or BILINEAR, got '", interpolation, "'");
  } else if (outside_ == Outside::kConstant && fill_mode != "CONSTANT") {
    *status = InvalidArgument("`fill_mode` must be REFLECT, WRAP, CONSTANT or NEAREST, got '",
                              fill_mode, "'");
  }
}

absl::Status ProjectiveKernel::Compute(KernelContext& ctx) {
  const Tensor& images = ctx.input(0);
  const Tensor& transforms = ctx.input(1);
  if (images.rank() != 4) {
    return InvalidArgument("`images` must be [batch, height, width, channels], got shape ",
                           images.shape().ToString());
  }
  if (transforms.rank() != 2 || transforms.dim(1) != 8 ||
      (transforms.dim(0) != 1 && transforms.dim(0) != images.dim(0))) {
    return InvalidArgument("`transforms` must be [1, 8] or [", images.dim(0), ", 8], got shape ",
                           transforms.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const HeightAndWidth size, ReadImageSize(ctx.input(2), "output_shape"));
  float fill_value = 0;
  if (ctx.num_inputs() > 3) {
    if (ctx.input(3).rank() != 0) {
      return InvalidArgument("`fill_value` must be a scalar, got shape ",
                             ctx.input(3).shape().ToString());
    }
    fill_value = ctx.input(3).unchecked_scalar<float>();
  }
  const Shape shape({images.dim(0), size.height, size.width, images.dim(3)});
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, images.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  return Project(ctx, {size.height, size.width, transforms.dim(0) == 1, fill_value}, out);
}

}  // namespace troupe
