#include "kernels/nn/window.h"

#include <algorithm>

namespace troupe {
namespace {

/// Fills `output` and, unless the padding is explicit, `pad_before` and `pad_after`.
absl::Status Slide(PaddingMode padding, Window* w) {
  if (w->size <= 0 || w->stride <= 0 || w->dilation <= 0) {
    return InvalidArgument("window sizes, strides and dilations must be positive, got ", w->size,
                           ", ", w->stride, " and ", w->dilation);
  }
  const int64_t extent = MultiplyWithoutOverflow(w->size - 1, w->dilation);
  // Sums below stay far from 63 bits.
  constexpr int64_t kMost = int64_t{1} << 60;
  if (extent < 0 || extent > kMost || w->stride > kMost || w->input > kMost ||
      w->pad_before > kMost || w->pad_after > kMost) {
    return InvalidArgument("a window of ", w->size, " elements, ", w->dilation,
                           " apart, is too large");
  }
  switch (padding) {
    case PaddingMode::kSame: {
      w->output = (w->input + w->stride - 1) / w->stride;
      const int64_t total =
          std::max<int64_t>(0, (w->output - 1) * w->stride + extent + 1 - w->input);
      w->pad_before = total / 2;
      w->pad_after = total - w->pad_before;
      break;
    }
    case PaddingMode::kValid:
      w->pad_before = w->pad_after = 0;
      [[fallthrough]];
    case PaddingMode::kExplicit:
      w->output = (w->input + w->pad_before + w->pad_after - (extent + 1) + w->stride) / w->stride;
      break;
  }
  if (w->output < 0) {
    return InvalidArgument("the output's size would be negative: ", w->output, " (input ", w->input,
                           ", window ", extent + 1, ", stride ", w->stride, ")");
  }
  // A larger one leaves one window, as this one does, but indices of libraries overflow.
  w->stride = std::min(w->stride, std::max<int64_t>(1, w->input + w->pad_before + w->pad_after));
  return absl::OkStatus();
}

}  // namespace

absl::Status SlideBoth(PaddingMode padding, const std::vector<int64_t>& paddings, int64_t batch,
                       int64_t depth, Window* rows, Window* columns) {
  return SlideAll(padding, paddings, batch, depth, {rows, columns});
}

absl::Status SlideAll(PaddingMode padding, const std::vector<int64_t>& paddings, int64_t batch,
                      int64_t depth, std::initializer_list<Window*> windows) {
  size_t at = 2;
  for (Window* w : windows) {
    if (padding == PaddingMode::kExplicit) {
      w->pad_before = paddings[at++];
      w->pad_after = paddings[at++];
    }
    TROUPE_RETURN_IF_ERROR(Slide(padding, w));
    batch = MultiplyWithoutOverflow(batch, w->output);
    if (batch < 0) break;
  }
  if (MultiplyWithoutOverflow(batch, depth) < 0) {
    return InvalidArgument("the output of the windows is too large");
  }
  return absl::OkStatus();
}

absl::Status ReadPadding(const KernelConstruction& construction, PaddingMode* padding,
                         std::vector<int64_t>* paddings) {
  std::string name;
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("padding", &name));
  if (construction.attrs().Has("explicit_paddings")) {
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("explicit_paddings", paddings));
  }
  if (name == "EXPLICIT") {
    *padding = PaddingMode::kExplicit;
    if (paddings->size() != 8) {
      return InvalidArgument("explicit_paddings must have 8 elements, got ", paddings->size());
    }
    for (int64_t p : *paddings) {
      if (p < 0) return InvalidArgument("explicit_paddings must not be negative, got ", p);
    }
    if (construction.attrs().GetOr<std::string>("data_format", "NHWC") == "NCHW") {
      std::rotate(paddings->begin() + 2, paddings->begin() + 4, paddings->end());
    }
    for (const int d : {0, 1, 6, 7}) {
      if ((*paddings)[d] == 0) continue;
      return InvalidArgument("explicit_paddings of the batch and depth dimensions must be 0");
    }
    return absl::OkStatus();
  }
  // MaxPoolGrad does not mind, in TensorFlow.
  if (!paddings->empty() && construction.op() != "MaxPoolGrad") {
    return InvalidArgument("explicit_paddings go with the padding EXPLICIT only, not with ", name);
  }
  *padding = name == "SAME" ? PaddingMode::kSame : PaddingMode::kValid;
  return absl::OkStatus();
}

}  // namespace troupe
