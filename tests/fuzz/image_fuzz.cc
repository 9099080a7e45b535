// An image file from outside, told by its first bytes, as DecodeImage does: decoded in the ways
// that the first byte of the input says. A decoded image is as large as its form says.

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "kernels/image/bmp_codec.h"
#include "kernels/image/gif_codec.h"
#include "kernels/image/jpeg_codec.h"
#include "kernels/image/png_codec.h"

namespace {

/// What a small file may claim at most: more would only make the fuzzer slow.
constexpr int64_t kMostBytes = 16 << 20;

class Pixels {
 public:
  explicit Pixels(int64_t value_bytes) : value_bytes_(value_bytes) {}

  absl::StatusOr<void*> Allocate(const troupe::ImageForm& form) {
    if (form.frames <= 0 || form.height <= 0 || form.width <= 0 || form.channels <= 0) std::abort();
    const int64_t bytes = form.frames * form.height * form.width * form.channels * value_bytes_;
    if (bytes > kMostBytes) return absl::ResourceExhaustedError("large");
    bytes_.assign(static_cast<size_t>(bytes), 0);
    return bytes_.data();
  }

 private:
  const int64_t value_bytes_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const unsigned ways = data[0];
  const std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr int kChannels[] = {0, 1, 3, 4};
  const int channels = kChannels[ways & 3];
  Pixels pixels(1);
  const auto allocate = [&](const troupe::ImageForm& form) { return pixels.Allocate(form); };
  if (file.substr(0, 1) == "\x89") {
    const int bits = (ways & 4) != 0 ? 16 : 8;
    Pixels values(bits / 8);
    const auto allocate_values = [&](const troupe::ImageForm& form) {
      return values.Allocate(form);
    };
    troupe::DecodePng(file, channels, bits, allocate_values).IgnoreError();
  } else if (file.substr(0, 1) == "G") {
    troupe::DecodeGif(file, (ways & 4) != 0, allocate).IgnoreError();
  } else if (file.substr(0, 1) == "B") {
    troupe::DecodeBmp(file, channels == 1 ? 0 : channels, allocate).IgnoreError();
  } else {
    troupe::JpegDecodeOptions options;
    options.channels = channels == 4 ? 0 : channels;
    options.ratio = 1 << (ways >> 2 & 3);
    options.recover_truncated = (ways & 16) != 0;
    options.fancy_upscaling = (ways & 32) != 0;
    options.acceptable_fraction = (ways & 64) != 0 ? 0.3f : 1.0f;
    if ((ways & 128) != 0) options.window = troupe::ImageWindow{1, 2, 3, 3};
    troupe::DecodeJpeg(file, options, allocate).IgnoreError();
    troupe::ReadJpegForm(file).IgnoreError();
  }
  return 0;
}
