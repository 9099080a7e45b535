/// GIF files, read by giflib.
#ifndef TROUPE_KERNELS_IMAGE_GIF_CODEC_H_
#define TROUPE_KERNELS_IMAGE_GIF_CODEC_H_

#include <string_view>

#include "absl/status/status.h"
#include "kernels/image/decoded_image.h"

namespace troupe {

/// Decodes to bytes of RGB. All frames are as large as the largest one; where a frame lies outside
/// of its part or is transparent, it is as the frame before it, the first one black. With
/// `first_frame_only` the others are looked at, but not decoded. InvalidArgument for a file that is
/// broken.
absl::Status DecodeGif(std::string_view file, bool first_frame_only, PixelAllocator allocate);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_GIF_CODEC_H_
