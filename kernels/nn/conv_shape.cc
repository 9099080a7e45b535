#include "kernels/nn/conv_shape.h"

#include <algorithm>
#include <string>

namespace troupe {

absl::Status ConvAttributes::Read(const KernelConstruction& construction, ConvOp op) {
  std::string format;
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("data_format", &format));
  if (format != "NHWC") {
    const std::string message = absl::StrCat(
        construction.op(), " on the CPU takes the data format NHWC only, got ", format);
    return op == ConvOp::kForward ? absl::UnimplementedError(message)
                                  : absl::InvalidArgumentError(message);
  }
  std::vector<int64_t> strides, dilations;
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &strides));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("dilations", &dilations));
  if (strides.size() != 4 || dilations.size() != 4) {
    return InvalidArgument("strides and dilations must have 4 elements, got ", strides.size(),
                           " and ", dilations.size());
  }
  if (strides[0] != 1 || strides[3] != 1) {
    const char* message = "strides in the batch and depth dimensions must be 1";
    return op == ConvOp::kBackwardFilter ? absl::InvalidArgumentError(message)
                                         : absl::UnimplementedError(message);
  }
  if (dilations[0] != 1 || dilations[3] != 1) {
    const char* message = "dilations in the batch and depth dimensions must be 1";
    return op == ConvOp::kForward ? absl::UnimplementedError(message)
                                  : absl::InvalidArgumentError(message);
  }
  row_stride_ = strides[1];
  column_stride_ = strides[2];
  row_dilation_ = dilations[1];
  column_dilation_ = dilations[2];
  if (row_stride_ <= 0 || column_stride_ <= 0 || row_dilation_ <= 0 || column_dilation_ <= 0) {
    return InvalidArgument("strides and dilations must be positive");
  }
  if (op != ConvOp::kForward && (row_dilation_ != 1 || column_dilation_ != 1)) {
    return InvalidArgument(construction.op(), " on the CPU does not take dilations other than 1");
  }
  TROUPE_RETURN_IF_ERROR(ReadPadding(construction, &padding_, &paddings_));
  if (padding_ == PaddingMode::kExplicit &&
      (paddings_[0] != 0 || paddings_[1] != 0 || paddings_[6] != 0 || paddings_[7] != 0)) {
    return InvalidArgument("explicit_paddings of the batch and depth dimensions must be 0");
  }
  return absl::OkStatus();
}

absl::StatusOr<ConvShape> ConvAttributes::Resolve(const Shape& input, const Shape& filter) const {
  if (input.rank() != 4) {
    return InvalidArgument("the input must be of rank 4, got shape ", input.ToString());
  }
  if (filter.rank() != 4) {
    return InvalidArgument("the filter must be of rank 4, got shape ", filter.ToString());
  }
  ConvShape s;
  s.batch = input.dim(0);
  s.in_depth = input.dim(3);
  s.out_depth = filter.dim(3);
  const int64_t filter_depth = filter.dim(2);
  if (filter_depth == 0 || s.in_depth % filter_depth != 0) {
    return InvalidArgument("the input's depth must be a multiple of the filter's, got ", s.in_depth,
                           " and ", filter_depth);
  }
  s.groups = std::max<int64_t>(1, s.in_depth / filter_depth);  // An empty input gives zeros.
  if (s.out_depth % s.groups != 0) {
    return InvalidArgument("the output's depth ", s.out_depth,
                           " must be a multiple of the number of groups, ", s.groups);
  }
  s.rows = {.input = input.dim(1),
            .size = filter.dim(0),
            .stride = row_stride_,
            .dilation = row_dilation_};
  s.columns = {.input = input.dim(2),
               .size = filter.dim(1),
               .stride = column_stride_,
               .dilation = column_dilation_};
  if (padding_ == PaddingMode::kExplicit) {
    s.rows.pad_before = paddings_[2];
    s.rows.pad_after = paddings_[3];
    s.columns.pad_before = paddings_[4];
    s.columns.pad_after = paddings_[5];
  }
  TROUPE_RETURN_IF_ERROR(Slide(padding_, &s.rows));
  TROUPE_RETURN_IF_ERROR(Slide(padding_, &s.columns));
  int64_t size = s.batch;
  for (int64_t d : {s.rows.output, s.columns.output, s.out_depth}) {
    size = MultiplyWithoutOverflow(size, d);
    if (size < 0) return InvalidArgument("the output of the convolution is too large");
  }
  return s;
}

}  // namespace troupe
