/// JPEG files, read and written by libjpeg-turbo.
#ifndef TROUPE_KERNELS_IMAGE_JPEG_CODEC_H_
#define TROUPE_KERNELS_IMAGE_JPEG_CODEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/image/decoded_image.h"

namespace troupe {

/// A part of an image, in pixels.
struct ImageWindow {
  int64_t y = 0, x = 0, height = 0, width = 0;
};

struct JpegDecodeOptions {
  int channels = 0;  ///< 1: gray; 3: RGB; 0: as in the file.
  int ratio = 1;     ///< 1, 2, 4 or 8: the decoded image is smaller by it.
  bool fancy_upscaling = true;
  /// A file that ends early counts as complete: what is missing is made up by libjpeg.
  bool recover_truncated = false;
  /// If at least this part of the rows can be read, the others become black.
  float acceptable_fraction = 1;
  bool accurate_dct = false;
  /// Of the image as it is decoded. What lies below it is not read.
  std::optional<ImageWindow> window;
};

/// Decodes to bytes. InvalidArgument for a file that is broken, or for options that do not fit it.
absl::Status DecodeJpeg(std::string_view file, const JpegDecodeOptions& options,
                        PixelAllocator allocate);

/// The form of the image that `DecodeJpeg` gives by default (four channels for CMYK), from the
/// file's header alone. InvalidArgument if that is broken.
absl::StatusOr<ImageForm> ReadJpegForm(std::string_view file);

struct JpegEncodeOptions {
  int quality = 95;
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  bool per_centimeter = false;  ///< The densities, else per inch.
  int x_density = 300, y_density = 300;
  std::string xmp_metadata;
};

/// Sets `file` to an image of bytes [height, width, channels], 1 (gray) or 3 (RGB) of them.
/// InvalidArgument if libjpeg refuses it.
absl::Status EncodeJpeg(const uint8_t* pixels, const ImageForm& form,
                        const JpegEncodeOptions& options, std::string* file);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_JPEG_CODEC_H_
