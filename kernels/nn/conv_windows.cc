#include "kernels/nn/conv_windows.h"

#include <algorithm>
#include <string>

namespace troupe {

absl::Status ConvWindows::ReadVolume(const KernelConstruction& construction, bool is_cpu) {
  const std::string format = construction.attrs().GetOr<std::string>("data_format", "NDHWC");
  channels_first = format == "NCDHW";
  if (is_cpu && format != "NDHWC") {
    return InvalidArgument(construction.op(),
                           " takes the data format NDHWC only on this device, got ", format);
  }
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &strides));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("dilations", &dilations));
  if (strides.size() != 5) {
    return InvalidArgument("strides must have 5 elements, got ", strides.size());
  }
  TROUPE_RETURN_IF_ERROR(Check(is_cpu));
  return ReadPadding(construction, &padding, &paddings);
}

absl::Status ConvWindows::Check(bool is_cpu) const {
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
    const bool slides = channels_first ? d > 1 : d > 0 && d + 1 < rank;
    if (!slides && (strides[d] != 1 || dilations[d] != 1)) {
      return InvalidArgument("strides and dilations of batch and depth must be 1, got ", strides[d],
                             " and ", dilations[d]);
    }
    if (is_cpu && rank == 5 && dilations[d] != 1) {
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
  s.channels_first = channels_first;
  s.batch = input.dim(0);
  s.in_depth = input.dim(channels_first ? 1 : rank - 1);
  s.out_depth = filter.dim(rank - 1);
  if (filter.dim(rank - 2) != s.in_depth) {
    return InvalidArgument("the input of shape ", input.ToString(), " and the filter of shape ",
                           filter.ToString(), " must have the same depth");
  }
  const auto window = [&](int spatial) {
    const int d = spatial + (channels_first ? 2 : 1);
    return Window{.input = input.dim(d),
                  .size = filter.dim(spatial),
                  .stride = strides[d],
                  .dilation = dilations[d]};
  };
  s.rows = window(rank - 4);
  s.columns = window(rank - 3);
  if (s.is_3d) {
    s.planes = window(0);
    TROUPE_RETURN_IF_ERROR(
        SlideAll(padding, paddings, s.batch, s.out_depth, {&s.planes, &s.rows, &s.columns}));
  } else {
    TROUPE_RETURN_IF_ERROR(SlideBoth(padding, paddings, s.batch, s.out_depth, &s.rows, &s.columns));
  }
  return s;
}

absl::Status GeneralConv::Read(const KernelConstruction& construction, bool is_cpu) {
  int64_t groups;
  std::string format, padding;
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("groups", &groups));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("data_format", &format));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("padding", &padding));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("batch_dims", &batch_dims));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &windows.strides));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("dilations", &windows.dilations));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("explicit_paddings", &windows.paddings));
  if (groups != 1) return absl::UnimplementedError("Conv takes one group only");
  windows.channels_first = format == "CHANNELS_FIRST";
  if (is_cpu && format != "CHANNELS_LAST") {
    return absl::UnimplementedError("Conv takes channels last only on this device");
  }
  const size_t rank = windows.strides.size();
  if (rank != 4 && rank != 5) {
    return InvalidArgument("strides must have 4 or 5 elements, got ", rank);
  }
  if (windows.dilations.empty()) windows.dilations.assign(rank, 1);
  windows.padding = padding == "SAME"    ? PaddingMode::kSame
                    : padding == "VALID" ? PaddingMode::kValid
                                         : PaddingMode::kExplicit;
  std::vector<int64_t>& paddings = windows.paddings;
  if (windows.padding != PaddingMode::kExplicit) {
    if (!paddings.empty()) {
      return InvalidArgument("explicit_paddings go with the padding EXPLICIT only, not with ",
                             padding);
    }
  } else {
    if (paddings.size() != 2 * rank) {
      return InvalidArgument("explicit_paddings must have ", 2 * rank, " elements, got ",
                             paddings.size());
    }
    if (windows.channels_first) {
      std::rotate(paddings.begin() + 2, paddings.begin() + 4, paddings.end());
    }
    for (size_t i = 0; i < paddings.size(); ++i) {
      if (paddings[i] < 0) {
        return InvalidArgument("explicit_paddings must not be negative, got ", paddings[i]);
      }
      if (paddings[i] != 0 && (i < 2 || i + 2 >= paddings.size())) {
        return InvalidArgument("explicit_paddings of the batch and depth dimensions must be 0");
      }
    }
  }
  return windows.Check(is_cpu);
}

absl::StatusOr<std::pair<ConvShape, Shape>> GeneralConv::Resolve(const Shape& input,
                                                                 const Shape& filter) const {
  // All batch dimensions are as good as one.
  const int rank = static_cast<int>(windows.strides.size());
  const absl::Span<const int64_t> dims = input.dims();
  if (batch_dims < 0 || batch_dims > input.rank() || input.rank() - batch_dims != rank - 1) {
    return InvalidArgument("the input must have ", batch_dims, " batch dimensions, ", rank - 2,
                           " spatial ones and the channels, got shape ", input.ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape batch,
                          Shape::Create(dims.first(static_cast<size_t>(batch_dims))));
  std::vector<int64_t> sizes = {batch.num_elements()};
  sizes.insert(sizes.end(), dims.begin() + batch_dims, dims.end());
  TROUPE_ASSIGN_OR_RETURN(const Shape one_batch, Shape::Create(sizes));
  TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, windows.Resolve(one_batch, filter));
  std::vector<int64_t> result(dims.begin(), dims.begin() + batch_dims);
  const Shape output = shape.output_shape();
  result.insert(result.end(), output.dims().begin() + 1, output.dims().end());
  TROUPE_ASSIGN_OR_RETURN(Shape result_shape, Shape::Create(result));
  return std::pair(shape, std::move(result_shape));
}

}  // namespace troupe
