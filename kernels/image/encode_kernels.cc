// EncodeJpeg, EncodeJpegVariableQuality, EncodePng.
#include <string>

#include "kernels/common/registration.h"
#include "kernels/image/jpeg_codec.h"
#include "kernels/image/png_codec.h"
#include "kernels/kernel.h"

namespace troupe {
namespace {

class EncodeJpegKernel final : public Kernel {
 public:
  EncodeJpegKernel(KernelConstruction& c, absl::Status* status) {
    const auto quality = c.Attr<int64_t>("quality");
    const auto x_density = c.Attr<int64_t>("x_density"), y_density = c.Attr<int64_t>("y_density");
    format_ = c.Attr<std::string>("format");
    options_.quality = static_cast<int>(quality);
    options_.progressive = c.Attr<bool>("progressive");
    options_.optimize_size = c.Attr<bool>("optimize_size");
    options_.chroma_downsampling = c.Attr<bool>("chroma_downsampling");
    options_.per_centimeter = c.Attr<std::string>("density_unit") == "cm";
    options_.x_density = static_cast<int>(x_density);
    options_.y_density = static_cast<int>(y_density);
    options_.xmp_metadata = c.Attr<std::string>("xmp_metadata");
    if (quality < 0 || quality > 100) {
      *status = InvalidArgument("`quality` must be between 0 and 100, got ", quality);
    } else if (x_density < 0 || y_density < 0 || x_density > 0xffff || y_density > 0xffff) {
      *status = InvalidArgument("densities must be between 0 and 65535, got ", x_density, " and ",
                                y_density);
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    if (image.rank() != 3) {
      return InvalidArgument("`image` must be [height, width, channels], got shape ",
                             image.shape().ToString());
    }
    const int64_t channels = image.dim(2);
    const bool fits = format_ == "grayscale" ? channels == 1
                      : format_ == "rgb"     ? channels == 3
                                             : channels == 1 || channels == 3;
    if (!fits) {
      return InvalidArgument("`image` has ", channels, " channels; the format '", format_, "' has ",
                             format_.empty()    ? "1 or 3"
                             : format_ == "rgb" ? "3"
                                                : "1");
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * contents,
                            ctx.AllocateOutput(0, ElementType::kString, Shape()));
    return EncodeJpeg(image.unchecked_data<uint8_t>(), {1, image.dim(0), image.dim(1), channels},
                      options_, contents->mutable_data<std::string>());
  }

 private:
  std::string format_;
  JpegEncodeOptions options_;
};
REGISTER_KERNEL(KernelSpec("EncodeJpeg").Cost(KernelCost::kExpensive),
                MakeKernel<EncodeJpegKernel>);

absl::Status EncodeJpegOfQuality(KernelContext& ctx) {
  const Tensor& image = ctx.input(0);
  const Tensor& quality = ctx.input(1);
  if (image.rank() != 3 || (image.dim(2) != 1 && image.dim(2) != 3)) {
    return InvalidArgument("`images` must be [height, width, 1 or 3], got shape ",
                           image.shape().ToString());
  }
  if (quality.rank() != 0) {
    return InvalidArgument("`quality` must be a scalar, got shape ", quality.shape().ToString());
  }
  JpegEncodeOptions options;
  options.quality = quality.unchecked_scalar<int32_t>();
  if (options.quality < 0 || options.quality > 100) {
    return InvalidArgument("`quality` must be between 0 and 100, got ", options.quality);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * contents, ctx.AllocateOutput(0, ElementType::kString, Shape()));
  return EncodeJpeg(image.unchecked_data<uint8_t>(), {1, image.dim(0), image.dim(1), image.dim(2)},
                    options, contents->mutable_data<std::string>());
}
REGISTER_KERNEL(KernelSpec("EncodeJpegVariableQuality").Cost(KernelCost::kExpensive),
                MakeKernel<EncodeJpegOfQuality>);

absl::Status EncodePngs(KernelContext& ctx, int64_t compression) {
  if (compression < -1 || compression > 9) {
    return InvalidArgument("`compression` must be between -1 and 9, got ", compression);
  }
  const Tensor& images = ctx.input(0);
  const int rank = images.rank();
  if (rank < 3) {
    return InvalidArgument("`image` must be [..., height, width, channels], got shape ",
                           images.shape().ToString());
  }
  PngImage image{images.dim(rank - 3), images.dim(rank - 2), images.dim(rank - 1), nullptr};
  if (image.channels < 1 || image.channels > 4) {
    return InvalidArgument("`image` has ", image.channels, " channels; it must have 1 to 4");
  }
  if (image.height == 0 || image.width == 0 || image.height > INT32_MAX ||
      image.width > INT32_MAX) {
    return InvalidArgument("a PNG has 1 to ", INT32_MAX, " rows and columns, not ", image.height,
                           " x ", image.width);
  }
  image.bits = images.type() == ElementType::kUint16 ? 16 : 8;
  Shape batch;
  for (int d = 0; d < rank - 3; ++d) batch.AddDim(images.dim(d));
  TROUPE_ASSIGN_OR_RETURN(Tensor * contents, ctx.AllocateOutput(0, ElementType::kString, batch));
  const auto* pixels = static_cast<const uint8_t*>(images.raw_data());
  const int64_t size = image.height * image.width * image.channels * (image.bits / 8);
  for (std::string& file : contents->mutable_values<std::string>()) {
    image.pixels = pixels;
    TROUPE_RETURN_IF_ERROR(EncodePng(image, static_cast<int>(compression), &file));
    pixels += size;
  }
  return absl::OkStatus();
}
REGISTER_KERNEL(KernelSpec("EncodePng").Cost(KernelCost::kExpensive),
                (MakeAttrKernel<EncodePngs, "compression">));

}  // namespace
}  // namespace troupe
