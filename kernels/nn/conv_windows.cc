#include "kernels/nn/conv_windows.h"

namespace troupe {

absl::Status ConvWindows::Check() const {
  const size_t rank = strides.size();
  if (dilations.size() != rank) {
    return InvalidArgument("strides and dilations must have as many elements, got ", rank, " and ",
                           dilations.size());
  }
  for (size_t d = 0; d < rank; ++d) {
    if (strides[d] <= 0 || dilations[d] <= 0) {
      return InvalidArgument("strides and dilations must be positive, got ", strides[d], " and ",
                             dilations[d]);
    }
    const bool slides = d > 0 && d + 1 < rank;
    if (!slides && (strides[d] != 1 || dilations[d] != 1)) {
      return InvalidArgument("strides and dilations of batch and depth must be 1, got ", strides[d],
                             " and ", dilations[d]);
    }
    if (rank == 5 && dilations[d] != 1) {
      return InvalidArgument("convolutions of volumes on the CPU do not take dilations other than ",
                             "1, got ", dilations[d]);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ConvShape> ConvWindows::Resolve(const Shape& input, const Shape& filter) const {
  const int rank = static_cast<int>(strides.size());
  if (input.rank() != rank || filter.rank() != rank) {
    return InvalidArgument("the input and the filter must be of rank ", rank, ", got shapes ",
                           input.ToString(), " and ", filter.ToString());
  }
  ConvShape s;
  s.is_3d = rank == 5;
  s.batch = input.dim(0);
  s.in_depth = input.dim(rank - 1);
  s.out_depth = filter.dim(rank - 1);
  if (filter.dim(rank - 2) != s.in_depth) {
    return InvalidArgument("the input of shape ", input.ToString(), " and the filter of shape ",
                           filter.ToString(), " must have the same depth");
  }
  const auto window = [&](int d) {
    return Window{.input = input.dim(d),
                  .size = filter.dim(d - 1),
                  .stride = strides[d],
                  .dilation = dilations[d]};
  };
  s.rows = window(rank - 3);
  s.columns = window(rank - 2);
  if (s.is_3d) {
    s.planes = window(1);
    TROUPE_RETURN_IF_ERROR(
        SlideAll(padding, paddings, s.batch, s.out_depth, {&s.planes, &s.rows, &s.columns}));
  } else {
    TROUPE_RETURN_IF_ERROR(SlideBoth(padding, paddings, s.batch, s.out_depth, &s.rows, &s.columns));
  }
  return s;
}

}  // namespace troupe
