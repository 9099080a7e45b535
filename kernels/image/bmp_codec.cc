#include "kernels/image/bmp_codec.h"

#include <cstdint>
#include <cstring>

#include "devices/status_macros.h"

namespace troupe {
namespace {

/// A number of the header: little-endian.
template <typename T>
T NumberAt(std::string_view file, size_t at) {
  uint32_t value = 0;
  for (size_t i = sizeof(T); i-- > 0;) value = value << 8 | static_cast<uint8_t>(file[at + i]);
  return static_cast<T>(value);
}

// Where numbers are in the file, and where the last of them ends.
constexpr size_t kPixelsAt = 10, kWidthAt = 18, kHeightAt = 22, kBitsAt = 28, kHeaderSize = 32;

/// A row: blue comes first in the file, and gray is repeated.
void ConvertRow(const uint8_t* in, int64_t width, int from, int to, uint8_t* out) {
  for (int64_t x = 0; x < width; ++x, in += from, out += to) {
    out[0] = from == 1 ? in[0] : in[2];
    if (to == 1) continue;
    out[1] = from == 1 ? in[0] : in[1];
    out[2] = in[0];
    if (to == 4) out[3] = from == 4 ? in[3] : 0xff;
  }
}

}  // namespace

absl::Status DecodeBmp(std::string_view file, int channels, PixelAllocator allocate) {
  if (file.size() < kHeaderSize) {
    return InvalidArgument("a BMP of ", file.size(), " bytes has no header");
  }
  const int64_t pixels_at = NumberAt<int32_t>(file, kPixelsAt);
  const int64_t width = NumberAt<int32_t>(file, kWidthAt);
  const int64_t signed_height = NumberAt<int32_t>(file, kHeightAt);
  const int64_t height = signed_height < 0 ? -signed_height : signed_height;
  const int stored = NumberAt<int16_t>(file, kBitsAt) / 8;
  if (stored != 1 && stored != 3 && stored != 4) {
    return InvalidArgument("a BMP of ", stored, " bytes a pixel; 1, 3 and 4 can be decoded");
  }
  TROUPE_RETURN_IF_ERROR(CheckClaim("BMP", {1, height, width, 1}, file.size(), 1));
  const int64_t row_size = (stored * width + 3) / 4 * 4;
  if (pixels_at < 0 || pixels_at + row_size * height != static_cast<int64_t>(file.size())) {
    return InvalidArgument("a BMP of ", file.size(), " bytes whose ", height, " rows of ", row_size,
                           " bytes begin at ", pixels_at);
  }
  const int to = channels == 0 ? stored : channels;
  TROUPE_ASSIGN_OR_RETURN(void* pixels, allocate({1, height, width, to}));
  auto* out = static_cast<uint8_t*>(pixels);
  const auto* in = reinterpret_cast<const uint8_t*>(file.data()) + pixels_at;
  for (int64_t y = 0; y < height; ++y, out += width * to) {
    // A negative height: the first row comes first.
    ConvertRow(in + (signed_height < 0 ? y : height - 1 - y) * row_size, width, stored, to, out);
  }
  return absl::OkStatus();
}

}  // namespace troupe
