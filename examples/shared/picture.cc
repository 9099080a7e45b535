#include "examples/shared/picture.h"

#include <cstdio>
#include <numeric>
#include <string>

namespace examples {

void DrawPicture(absl::Span<const uint8_t> pixels, int side, int channels) {
  static const char kInk[] = " .:-=+*#%@";
  const auto brightness = [&](int y, int x) {
    const auto pixel = pixels.subspan((y * side + x) * channels, channels);
    return std::accumulate(pixel.begin(), pixel.end(), 0);
  };
  for (int y = 0; y < side; y += 2) {
    std::string line;
    for (int x = 0; x < side; ++x) {
      line += kInk[(brightness(y, x) + brightness(y + 1, x)) * 9 / (510 * channels)];
    }
    std::printf("  %s\n", line.c_str());
  }
}

}  // namespace examples
