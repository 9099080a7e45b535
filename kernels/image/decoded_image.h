/// What the decoders of image files have in common: where pixels go, and how many a file may claim
/// to hold.
#ifndef TROUPE_KERNELS_IMAGE_DECODED_IMAGE_H_
#define TROUPE_KERNELS_IMAGE_DECODED_IMAGE_H_

#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace troupe {

/// The shape of a decoded image. Only GIFs have frames.
struct ImageForm {
  int64_t frames = 1, height = 0, width = 0, channels = 0;
};

/// Gives memory for [frames, height, width, channels] values, once for each image; again if fewer
/// frames turn out to be whole. Called when the form has been found sound, before pixels are
/// decoded.
using PixelAllocator = absl::FunctionRef<absl::StatusOr<void*>(const ImageForm& form)>;

/// The most pixels that an image may have, those of all frames together.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 29;

/// InvalidArgument if a file of `format` with `file_bytes` bytes claims sizes that are not positive
/// or above kMaxImagePixels, or more pixels than it can hold: no format packs more than
/// `pixels_per_byte` into a byte.
absl::Status CheckClaim(std::string_view format, const ImageForm& form, size_t file_bytes,
                        double pixels_per_byte);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_DECODED_IMAGE_H_
