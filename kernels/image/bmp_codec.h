/// BMP files without compression.
#ifndef TROUPE_KERNELS_IMAGE_BMP_CODEC_H_
#define TROUPE_KERNELS_IMAGE_BMP_CODEC_H_

#include <string_view>

#include "absl/status/status.h"
#include "kernels/image/decoded_image.h"

namespace troupe {

/// Decodes pixels of 8 (taken as gray), 24 or 32 bits to bytes. `channels` is 3 (RGB), 4 (RGB with
/// alpha) or 0 (as in the file). InvalidArgument for a file that is broken; nothing may follow its
/// pixels.
absl::Status DecodeBmp(std::string_view file, int channels, PixelAllocator allocate);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_BMP_CODEC_H_
