/// PNG files, read and written by libpng.
#ifndef TROUPE_KERNELS_IMAGE_PNG_CODEC_H_
#define TROUPE_KERNELS_IMAGE_PNG_CODEC_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/image/decoded_image.h"

namespace troupe {

/// Decodes to values of `bits`, 8 or 16, and `channels`: 1 (gray), 3 (RGB), 4 (RGB with alpha) or 0
/// (as in the file, where gray may have an alpha). 8 bits become 16 by repeating them.
/// InvalidArgument for a file that is broken.
absl::Status DecodePng(std::string_view file, int channels, int bits, PixelAllocator allocate);

/// An image to be written: gray (1 channel), gray with alpha (2), RGB (3) or RGB with alpha (4).
/// All sizes are positive.
struct PngImage {
  int64_t height, width, channels;
  const void* pixels;  ///< [height, width, channels], of `bits`.
  int bits = 8;        ///< 8 or 16.
};

/// Sets `file` to the image, compressed at zlib's `level` (-1: its default). Internal if libpng
/// refuses, ResourceExhausted if there is no memory.
absl::Status EncodePng(const PngImage& image, int level, std::string* file);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_PNG_CODEC_H_
