#include "kernels/summary/summary_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "devices/half.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/protos/summary.pb.h"
#include "kernels/image/png_codec.h"
#include "kernels/summary/histogram.h"
#include "kernels/summary/wav.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

template <typename F>
absl::Status SwitchReal(ElementType type, F&& f) {
  return SwitchType<float, double, int32_t, uint8_t, int16_t, int8_t, int64_t, bfloat16, uint16_t,
                    half, uint32_t, uint64_t, bool>(type, f);
}

/// "tag/kind/3", or "tag/kind" where there is room for one only.
std::string NumberedTag(const std::string& tag, const char* kind, int64_t most, int64_t i) {
  return most > 1 ? StrCat(tag, "/", kind, "/", i) : StrCat(tag, "/", kind);
}

}  // namespace

absl::StatusOr<std::string> ScalarText(const Tensor& tensor, const char* what) {
  if (tensor.rank() != 0) {
    return InvalidArgument(what, " must be a scalar, got shape ", tensor.shape().ToString());
  }
  return tensor.unchecked_scalar<std::string>();
}

absl::Status AddScalars(const Tensor& tags, const Tensor& values, Summary* summary) {
  if (tags.shape() != values.shape()) {
    std::string tag;
    if (tags.num_elements() == 1)
      tag = StrCat(" (tag '", *tags.unchecked_data<std::string>(), "')");
    return InvalidArgument("tags and values must have the same shape, got ",
                           tags.shape().ToString(), " and ", values.shape().ToString(), tag);
  }
  return SwitchReal(values.type(), [&]<typename T>() {
    const std::string* tag = tags.unchecked_data<std::string>();
    for (const T value : values.unchecked_values<T>()) {
      Summary::Value* added = summary->add_value();
      added->set_tag(*tag++);
      added->set_simple_value(static_cast<float>(value));
    }
    return absl::OkStatus();
  });
}

absl::Status AddHistogram(const std::string& tag, const Tensor& values, Summary* summary) {
  return SwitchReal(values.type(), [&]<typename T>() -> absl::Status {
    Histogram histogram;
    for (const T value : values.unchecked_values<T>()) {
      const auto number = static_cast<double>(value);
      if (std::isnan(number)) return InvalidArgument("NaN in the histogram '", tag, "'");
      if (std::isinf(number)) return InvalidArgument("Infinity in the histogram '", tag, "'");
      histogram.Add(number);
    }
    Summary::Value* added = summary->add_value();
    added->set_tag(tag);
    histogram.ToProto(added->mutable_histo());
    return absl::OkStatus();
  });
}

// --- images --------------------------------------------------------------------------------------

namespace {

/// A number of [0, 256) without its fraction; what lies outside gives 0. A half with a scale that
/// it cannot hold gets there.
uint8_t ToByte(double value) {
  return value >= 0 && value < 256 ? static_cast<uint8_t>(value) : uint8_t{0};
}

/// x -> x * scale + offset. Non-negative images are scaled so that the largest value becomes 255,
/// others around 128.
struct Range {
  float scale, offset;
};

Range RangeOf(float min, float max) {
  constexpr float kNothing = 1e-6f;  // Below that all is noise, and becomes one color.
  if (min < 0) {
    const float largest = std::max(std::abs(min), std::abs(max));
    return {largest < kNothing ? 0.0f : 127.0f / largest, 128.0f};
  }
  return {max < kNothing ? 0.0f : 255.0f / max, 0.0f};
}

/// Scales one image of `channels`; arithmetic is of type T, so that a half rounds as TensorFlow's.
template <typename T>
void ScaleImage(absl::Span<const T> from, int64_t channels, const uint8_t* bad_color, uint8_t* to) {
  const auto finite = [channels](const T* pixel) {
    return std::all_of(pixel, pixel + channels, [](T x) { return std::isfinite(double{x}); });
  };
  float min = std::numeric_limits<float>::infinity(), max = -min;
  for (size_t i = 0; i < from.size(); i += channels) {
    if (!finite(&from[i])) continue;
    for (int64_t c = 0; c < channels; ++c) {
      min = std::min(min, static_cast<float>(from[i + c]));
      max = std::max(max, static_cast<float>(from[i + c]));
    }
  }
  const Range range = RangeOf(min, max);
  const T scale(range.scale), offset(range.offset);
  for (size_t i = 0; i < from.size(); i += channels) {
    if (!finite(&from[i])) {
      std::copy(bad_color, bad_color + channels, to + i);
      continue;
    }
    for (int64_t c = 0; c < channels; ++c) {
      to[i + c] = ToByte(double{T(T(from[i + c] * scale) + offset)});
    }
  }
}

absl::Status CheckImages(const Tensor& images) {
  constexpr int64_t kMost = int64_t{1} << 31, kMostPixels = int64_t{1} << 29;
  const Shape& shape = images.shape();
  if (shape.rank() != 4 || (shape.dim(3) != 1 && shape.dim(3) != 3 && shape.dim(3) != 4)) {
    return InvalidArgument(
        "images must have the shape [images, height, width, channels] with 1, 3 or 4 channels, "
        "got ",
        shape.ToString());
  }
  if (shape.dim(0) >= kMost || shape.dim(1) >= kMost || shape.dim(2) >= kMost ||
      shape.dim(1) * shape.dim(2) >= kMostPixels) {
    return InvalidArgument("images must have fewer than ", kMostPixels, " pixels each, got ",
                           shape.ToString());
  }
  if (shape.dim(1) * shape.dim(2) == 0) {
    return InvalidArgument("images must have a height and a width, got ", shape.ToString());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddImages(const std::string& tag, const Tensor& images, int64_t most,
                       const Tensor& bad_color, Summary* summary) {
  TROUPE_RETURN_IF_ERROR(CheckImages(images));
  const int64_t height = images.dim(1), width = images.dim(2), channels = images.dim(3);
  if (bad_color.rank() != 1 ||
      (images.type() != ElementType::kUint8 && bad_color.dim(0) < channels)) {
    return InvalidArgument("bad_color must be a vector with a value for each of ", channels,
                           " channels, got shape ", bad_color.shape().ToString());
  }
  const auto size = static_cast<size_t>(height * width * channels);
  std::vector<uint8_t> scaled(images.type() == ElementType::kUint8 ? 0 : size);
  for (int64_t i = 0; i < std::min(most, images.dim(0)); ++i) {
    PngImage image{height, width, channels, scaled.data()};
    const absl::Status status =
        SwitchType<float, half, double, uint8_t>(images.type(), [&]<typename T>() {
          const auto from = images.unchecked_values<T>().subspan(i * size, size);
          if constexpr (std::is_same_v<T, uint8_t>) {
            image.pixels = from.data();
          } else {
            ScaleImage(from, channels, bad_color.unchecked_data<uint8_t>(), scaled.data());
          }
          return absl::OkStatus();
        });
    TROUPE_RETURN_IF_ERROR(status);
    Summary::Value* added = summary->add_value();
    added->set_tag(NumberedTag(tag, "image", most, i));
    added->mutable_image()->set_height(static_cast<int32_t>(height));
    added->mutable_image()->set_width(static_cast<int32_t>(width));
    added->mutable_image()->set_colorspace(static_cast<int32_t>(channels));
    TROUPE_RETURN_IF_ERROR(
        EncodePng(image, /*level=*/-1, added->mutable_image()->mutable_encoded_image_string()));
  }
  return absl::OkStatus();
}

// --- sounds --------------------------------------------------------------------------------------

absl::Status AddSounds(const std::string& tag, const Tensor& sounds, float rate, int64_t most,
                       Summary* summary) {
  if (sounds.rank() != 2 && sounds.rank() != 3) {
    return InvalidArgument(
        "sounds must have the shape [sounds, frames] or [sounds, frames, channels], got ",
        sounds.shape().ToString());
  }
  // The largest rate that WAV has is 2^32 - 1, which is no float.
  if (!(rate > 0 && rate < 0x1p32f)) {
    return InvalidArgument("sample_rate must be in (0, 2^32) hertz, got ", rate);
  }
  const int64_t frames = sounds.dim(1), channels = sounds.rank() == 2 ? 1 : sounds.dim(2);
  for (int64_t i = 0; i < std::min(most, sounds.dim(0)); ++i) {
    Summary::Value* added = summary->add_value();
    added->set_tag(NumberedTag(tag, "audio", most, i));
    Summary::Audio* audio = added->mutable_audio();
    audio->set_sample_rate(rate);
    audio->set_num_channels(channels);
    audio->set_length_frames(frames);
    audio->set_content_type("audio/wav");
    const auto samples =
        sounds.unchecked_values<float>().subspan(i * frames * channels, frames * channels);
    TROUPE_RETURN_IF_ERROR(
        EncodeWav({frames, channels, std::max<int64_t>(1, std::llrint(rate)), samples},
                  audio->mutable_encoded_audio_string()));
  }
  return absl::OkStatus();
}

// --- tensors -------------------------------------------------------------------------------------

void AddTensor(const Tensor& tensor, Summary* summary) {
  TensorProto* proto = summary->add_value()->mutable_tensor();
  if (!IsPlain(tensor.type())) return TensorToProto(tensor, proto);
  proto->set_dtype(static_cast<DataType>(tensor.type()));
  tensor.shape().ToProto(proto->mutable_tensor_shape());
  proto->set_tensor_content(tensor.raw_data(), tensor.bytes());
}

}  // namespace troupe
