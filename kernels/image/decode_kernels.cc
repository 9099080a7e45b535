// DecodeJpeg, DecodeAndCropJpeg, DecodePng, DecodeGif, DecodeBmp, DecodeImage, ExtractJpegShape.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/match.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/image/bmp_codec.h"
#include "kernels/image/gif_codec.h"
#include "kernels/image/jpeg_codec.h"
#include "kernels/image/png_codec.h"
#include "kernels/kernel.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

enum class FileFormat { kUnknown, kJpeg, kPng, kGif, kBmp };

/// By the first bytes.
FileFormat FormatOf(std::string_view file) {
  const absl::string_view bytes(file.data(), file.size());
  if (absl::StartsWith(bytes, "\xff\xd8\xff")) return FileFormat::kJpeg;
  if (absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n")) return FileFormat::kPng;
  if (absl::StartsWith(bytes, "GIF8")) return FileFormat::kGif;
  if (absl::StartsWith(bytes, "BM")) return FileFormat::kBmp;
  return FileFormat::kUnknown;
}

absl::StatusOr<std::string_view> FileInput(KernelContext& ctx) {
  const Tensor& contents = ctx.input(0);
  if (contents.rank() != 0) {
    return InvalidArgument("`contents` must be a scalar, got shape ", contents.shape().ToString());
  }
  return std::string_view(contents.unchecked_scalar<std::string>());
}

/// Bytes to uint16, times 256, or to floats in [0, 1].
template <typename T>
void ConvertBytes(KernelContext& ctx, const uint8_t* from, Tensor* to) {
  T* out = to->mutable_data<T>();
  ctx.ParallelFor(to->num_elements(), KernelContext::GrainFor(0.2),
                  [=](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      if constexpr (std::is_same_v<T, float>) {
                        out[i] = static_cast<float>(from[i]) * (1.0f / 255);
                      } else {
                        out[i] = static_cast<T>(from[i] * 256);
                      }
                    }
                  });
}

/// What an op takes besides the format that it is named after, and what it gives.
enum class DecodeOp { kJpeg, kCrop, kPng, kGif, kBmp, kImage };

class DecodeKernel final : public Kernel {
 public:
  DecodeKernel(KernelConstruction& c, absl::Status* status) : type_(c.output_type(0)) {
    *status = Read(c);
  }

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const std::string_view file, FileInput(ctx));
    const FileFormat format = FormatOf(file);
    TROUPE_RETURN_IF_ERROR(CheckFormat(format, file.size()));
    // libpng gives 16 bits itself.
    const bool from_bytes = format != FileFormat::kPng;
    if (type_ == ElementType::kUint8 || (type_ == ElementType::kUint16 && !from_bytes)) {
      return Decode(ctx, format, file, [&](const ImageForm& form) -> absl::StatusOr<void*> {
        TROUPE_ASSIGN_OR_RETURN(Tensor * image, Allocate(ctx, format, form));
        return image->mutable_raw_data();
      });
    }
    Tensor stored;
    TROUPE_RETURN_IF_ERROR(
        Decode(ctx, format, file, [&](const ImageForm& form) -> absl::StatusOr<void*> {
          TROUPE_ASSIGN_OR_RETURN(const Tensor* image, Allocate(ctx, format, form));
          TROUPE_ASSIGN_OR_RETURN(
              stored, ctx.AllocateTemp(from_bytes ? ElementType::kUint8 : ElementType::kUint16,
                                       image->shape()));
          return stored.mutable_raw_data();
        }));
    Convert(ctx, stored, &ctx.output(0));
    return absl::OkStatus();
  }

 private:
  absl::Status Read(KernelConstruction& c) {
    const std::string& op = c.op();
    op_ = op == "DecodeJpeg"          ? DecodeOp::kJpeg
          : op == "DecodeAndCropJpeg" ? DecodeOp::kCrop
          : op == "DecodePng"         ? DecodeOp::kPng
          : op == "DecodeGif"         ? DecodeOp::kGif
          : op == "DecodeBmp"         ? DecodeOp::kBmp
                                      : DecodeOp::kImage;
    const auto channels = op_ == DecodeOp::kGif ? 3 : c.Attr<int64_t>("channels");
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
      return InvalidArgument("`channels` must be 0, 1, 3 or 4, got ", channels);
    }
    channels_ = static_cast<int>(channels);
    if (op_ == DecodeOp::kImage) first_frame_only_ = !c.Attr<bool>("expand_animations");
    return op_ == DecodeOp::kJpeg || op_ == DecodeOp::kCrop ? ReadJpegOptions(c) : absl::OkStatus();
  }

  absl::Status ReadJpegOptions(KernelConstruction& c) {
    const auto ratio = c.Attr<int64_t>("ratio");
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
      return InvalidArgument("`ratio` must be 1, 2, 4 or 8, got ", ratio);
    }
    jpeg_.ratio = static_cast<int>(ratio);
    jpeg_.fancy_upscaling = c.Attr<bool>("fancy_upscaling");
    jpeg_.recover_truncated = c.Attr<bool>("try_recover_truncated");
    jpeg_.acceptable_fraction = c.Attr<float>("acceptable_fraction");
    const auto method = c.Attr<std::string>("dct_method");
    if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE") {
      return InvalidArgument("`dct_method` must be '', INTEGER_FAST or INTEGER_ACCURATE, got '",
                             method, "'");
    }
    jpeg_.accurate_dct = method == "INTEGER_ACCURATE";
    return absl::OkStatus();
  }

  absl::Status CheckFormat(FileFormat format, size_t size) const {
    const bool is_bmp = format == FileFormat::kBmp;
    if (format == FileFormat::kUnknown) {
      return InvalidArgument("`contents`, ", size, " bytes, is no JPEG, PNG, GIF or BMP");
    }
    if (op_ == DecodeOp::kCrop && format != FileFormat::kJpeg) {
      return InvalidArgument("`contents` is no JPEG");
    }
    if (op_ != DecodeOp::kImage && is_bmp != (op_ == DecodeOp::kBmp)) {
      return InvalidArgument("`contents` is ", is_bmp ? "a" : "no",
                             " BMP; DecodeImage decodes all formats");
    }
    const bool fits = format == FileFormat::kJpeg  ? channels_ != 4
                      : format == FileFormat::kGif ? channels_ == 0 || channels_ == 3
                                                   : !is_bmp || channels_ != 1;
    if (fits) return absl::OkStatus();
    return InvalidArgument("`channels` is ", channels_, "; ",
                           is_bmp                       ? "a BMP can be decoded to 3 or 4"
                           : format == FileFormat::kGif ? "a GIF is decoded to 3"
                                                        : "a JPEG can be decoded to 1 or 3");
  }

  absl::Status Decode(KernelContext& ctx, FileFormat format, std::string_view file,
                      PixelAllocator allocate) const {
    switch (format) {
      case FileFormat::kPng:
        return DecodePng(file, channels_, type_ == ElementType::kUint8 ? 8 : 16, allocate);
      case FileFormat::kGif:
        return DecodeGif(file, first_frame_only_, allocate);
      case FileFormat::kBmp:
        return DecodeBmp(file, channels_, allocate);
      default:
        break;
    }
    JpegDecodeOptions options = jpeg_;
    options.channels = channels_;
    if (op_ == DecodeOp::kCrop) {
      TROUPE_ASSIGN_OR_RETURN(const DimVector window,
                              ReadIntegerVector(ctx.input(1), "crop_window"));
      if (window.size() != 4) {
        return InvalidArgument("`crop_window` must have 4 numbers, got ", window.size());
      }
      options.window = ImageWindow{window[0], window[1], window[2], window[3]};
    }
    return DecodeJpeg(file, options, allocate);
  }

  absl::StatusOr<Tensor*> Allocate(KernelContext& ctx, FileFormat format,
                                   const ImageForm& form) const {
    if ((op_ == DecodeOp::kPng || op_ == DecodeOp::kJpeg) && form.frames > 1) {
      return InvalidArgument("`contents` is a GIF with ", form.frames,
                             " frames; DecodeGif and DecodeImage give all of them");
    }
    const bool has_frames =
        op_ == DecodeOp::kGif ||
        (op_ == DecodeOp::kImage && format == FileFormat::kGif && !first_frame_only_);
    return ctx.AllocateOutput(0, type_,
                              has_frames
                                  ? Shape({form.frames, form.height, form.width, form.channels})
                                  : Shape({form.height, form.width, form.channels}));
  }

  static void Convert(KernelContext& ctx, const Tensor& from, Tensor* to) {
    if (from.type() == ElementType::kUint8) {
      const auto* bytes = from.unchecked_data<uint8_t>();
      if (to->type() == ElementType::kFloat) return ConvertBytes<float>(ctx, bytes, to);
      return ConvertBytes<uint16_t>(ctx, bytes, to);
    }
    const auto* in = from.unchecked_data<uint16_t>();
    auto* out = to->mutable_data<float>();
    ctx.ParallelFor(to->num_elements(), KernelContext::GrainFor(0.3),
                    [=](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        out[i] = static_cast<float>(in[i]) * (1.0f / 65535);
                      }
                    });
  }

  const ElementType type_;
  DecodeOp op_ = DecodeOp::kImage;
  int channels_ = 0;
  bool first_frame_only_ = false;
  JpegDecodeOptions jpeg_;
};

KernelSpec Decoder(const char* op) { return KernelSpec(op).Cost(KernelCost::kExpensive); }

REGISTER_KERNELS(Decoder("DecodeJpeg"), MakeKernel<DecodeKernel>, "DecodeAndCropJpeg", "DecodePng",
                 "DecodeGif", "DecodeBmp", "DecodeImage");

absl::Status ExtractJpegShape(KernelContext& ctx, ElementType output_type) {
  TROUPE_ASSIGN_OR_RETURN(const std::string_view file, FileInput(ctx));
  TROUPE_ASSIGN_OR_RETURN(const ImageForm form, ReadJpegForm(file));
  return PutIntegers(ctx, 0, output_type, {form.height, form.width, form.channels});
}
REGISTER_KERNEL(KernelSpec("ExtractJpegShape"), (MakeAttrKernel<ExtractJpegShape, "output_type">));

}  // namespace
}  // namespace troupe
