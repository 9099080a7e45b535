/// Sliding windows of convolutions and poolings: sizes and paddings.
#ifndef TROUPE_KERNELS_NN_WINDOW_H_
#define TROUPE_KERNELS_NN_WINDOW_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace troupe {

enum class PaddingMode { kSame, kValid, kExplicit };

/// One dimension of a window that slides over an input.
struct Window {
  int64_t input = 0, output = 0;
  int64_t size = 1, stride = 1, dilation = 1;
  int64_t pad_before = 0, pad_after = 0;

  int64_t effective_size() const { return (size - 1) * dilation + 1; }
};

/// Fills `output`, `pad_before` and `pad_after` of the windows over the rows and columns of images;
/// `paddings` are `ReadPadding`'s. InvalidArgument if an output's size would be negative, a window
/// has no elements, or the output, of `batch` images and depth `depth`, is too large. A window one
/// larger than the input gives an empty output.
absl::Status SlideBoth(PaddingMode padding, const std::vector<int64_t>& paddings, int64_t batch,
                       int64_t depth, Window* rows, Window* columns);

/// The same for any number of windows, slowest first.
absl::Status SlideAll(PaddingMode padding, const std::vector<int64_t>& paddings, int64_t batch,
                      int64_t depth, std::initializer_list<Window*> windows);

/// The attributes padding and explicit_paddings; `paddings` gets 8 numbers if the padding is
/// explicit, in the order of NHWC, of which those of the batch and the depth must be 0.
absl::Status ReadPadding(const KernelConstruction& construction, PaddingMode* padding,
                         std::vector<int64_t>* paddings);

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_WINDOW_H_
