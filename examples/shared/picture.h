// Pictures on a terminal.

#ifndef TROUPE_EXAMPLES_SHARED_PICTURE_H_
#define TROUPE_EXAMPLES_SHARED_PICTURE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace examples {

/// Draws a square picture as characters, two rows of pixels in a line: `side` * `side` pixels of
/// `channels` bytes, whose mean is the brightness.
void DrawPicture(absl::Span<const uint8_t> pixels, int side, int channels = 1);

}  // namespace examples

#endif  // TROUPE_EXAMPLES_SHARED_PICTURE_H_
