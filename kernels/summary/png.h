/// PNG, written.
#ifndef TROUPE_KERNELS_SUMMARY_PNG_H_
#define TROUPE_KERNELS_SUMMARY_PNG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace troupe {

/// An image of bytes: gray (1 channel), gray with alpha (2), RGB (3) or RGB with alpha (4). All
/// sizes are positive.
struct ByteImage {
  int64_t height, width, channels;
  absl::Span<const uint8_t> pixels;  ///< [height, width, channels]
};

/// Sets `png` to the image as a file, compressed as zlib does by default. Internal if libpng
/// refuses, ResourceExhausted if there is no memory.
absl::Status EncodePng(const ByteImage& image, std::string* png);

}  // namespace troupe

#endif  // TROUPE_KERNELS_SUMMARY_PNG_H_
