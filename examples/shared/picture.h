// Pictures on a terminal.

#ifndef TROUPE_EXAMPLES_SHARED_PICTURE_H_
#define TROUPE_EXAMPLES_SHARED_PICTURE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace examples {

/// Draws a picture as characters, two rows of pixels in a line: `pixels` [height, width, channels],
/// a byte each; the mean of the channels is the brightness.
void DrawPicture(absl::Span<const uint8_t> pixels, int64_t width, int64_t channels = 1);

}  // namespace examples

#endif  // TROUPE_EXAMPLES_SHARED_PICTURE_H_
