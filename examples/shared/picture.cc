#include "examples/shared/picture.h"

#include <cstdio>
#include <numeric>
#include <string>

namespace examples {

void DrawPicture(absl::Span<const uint8_t> pixels, int64_t width, int64_t channels) {
  static const char kInk[] = " .:-=+*#%@";
  const int64_t height = static_cast<int64_t>(pixels.size()) / (width * channels);
  const auto brightness = [&](int64_t y, int64_t x) {
    const auto pixel = pixels.subspan((y * width + x) * channels, channels);
    return std::accumulate(pixel.begin(), pixel.end(), int64_t{0});
  };
  for (int64_t y = 0; y + 1 < height; y += 2) {
    std::string line;
    for (int64_t x = 0; x < width; ++x) {
      line += kInk[(brightness(y, x) + brightness(y + 1, x)) * 9 / (510 * channels)];
    }
    std::printf("  %s\n", line.c_str());
  }
}

}  // namespace examples
