#include "kernels/nn/depthwise_shape.h"

#include <algorithm>
#include <string>

namespace troupe {

absl::Status DepthwiseAttributes::Read(const KernelConstruction& construction, bool only_nhwc) {
  channels_first_ = construction.Attr<std::string>("data_format") != "NHWC";
  if (channels_first_ && only_nhwc) {
    return absl::UnimplementedError(
        absl::StrCat(construction.op(), " takes the data format NHWC only on this device"));
  }
  std::vector<int64_t> strides, dilations;
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &strides));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("dilations", &dilations));
  if (strides.size() != 4 || dilations.size() != 4) {
    return InvalidArgument("strides and dilations must have 4 elements, got ", strides.size(),
                           " and ", dilations.size());
  }
  for (std::vector<int64_t>* steps : {&strides, &dilations}) {
    if (channels_first_) std::rotate(steps->begin() + 1, steps->begin() + 2, steps->end());
    if ((*steps)[0] != 1 || (*steps)[3] != 1) {
      return InvalidArgument("strides and dilations of batch and depth must be 1");
    }
  }
  if (strides[1] != strides[2]) {
    return InvalidArgument("the strides of rows and columns must be equal, got ", strides[1],
                           " and ", strides[2]);
  }
  stride_ = strides[1];
  row_dilation_ = dilations[1];
  column_dilation_ = dilations[2];
  if (stride_ <= 0 || row_dilation_ <= 0 || column_dilation_ <= 0) {
    return InvalidArgument("strides and dilations must be positive, got ", stride_, ", ",
                           row_dilation_, " and ", column_dilation_);
  }
  return ReadPadding(construction, &padding_, &paddings_);
}

absl::StatusOr<ConvShape> DepthwiseAttributes::Resolve(const Shape& input,
                                                       const Shape& filter) const {
  if (input.rank() != 4 || filter.rank() != 4) {
    return InvalidArgument("the input and the filter must be of rank 4, got shapes ",
                           input.ToString(), " and ", filter.ToString());
  }
  ConvShape s;
  s.channels_first = channels_first_;
  s.batch = input.dim(0);
  s.in_depth = input.dim(channels_first_ ? 1 : 3);
  if (filter.dim(2) != s.in_depth) {
    return InvalidArgument("the input of shape ", input.ToString(), " and the filter of shape ",
                           filter.ToString(), " must have the same depth");
  }
  s.out_depth = MultiplyWithoutOverflow(s.in_depth, filter.dim(3));
  if (s.out_depth < 0) {
    return InvalidArgument("the filter of shape ", filter.ToString(), " is too large");
  }
  s.groups = std::max<int64_t>(1, s.in_depth);
  s.rows = {.input = input.dim(channels_first_ ? 2 : 1),
            .size = filter.dim(0),
            .stride = stride_,
            .dilation = row_dilation_};
  s.columns = {.input = input.dim(channels_first_ ? 3 : 2),
               .size = filter.dim(1),
               .stride = stride_,
               .dilation = column_dilation_};
  TROUPE_RETURN_IF_ERROR(SlideBoth(padding_, paddings_, s.batch, s.out_depth, &s.rows, &s.columns));
  return s;
}

}  // namespace troupe
