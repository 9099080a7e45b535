#include "kernels/nn/conv_shape.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/common/integer_input.h"

namespace troupe {

absl::Status ConvAttributes::Read(const KernelConstruction& construction, ConvOp op,
                                  bool only_nhwc) {
  std::string format;
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("data_format", &format));
  channels_first_ = !only_nhwc && format == "NCHW";
  if (format != "NHWC" && !channels_first_) {
    const std::string message =
        absl::StrCat(construction.op(), " takes the data format NHWC ", only_nhwc ? "" : "or NCHW ",
                     "only on this device, got ", format);
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
  if (channels_first_) {
    std::rotate(strides.begin() + 1, strides.begin() + 2, strides.end());
    std::rotate(dilations.begin() + 1, dilations.begin() + 2, dilations.end());
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
  if (only_nhwc && op != ConvOp::kForward && (row_dilation_ != 1 || column_dilation_ != 1)) {
    return InvalidArgument(construction.op(), " on the CPU does not take dilations other than 1");
  }
  return ReadPadding(construction, &padding_, &paddings_);
}

absl::StatusOr<ConvShape> ConvAttributes::Resolve(const Shape& input, const Shape& filter) const {
  if (input.rank() != 4) {
    return InvalidArgument("the input must be of rank 4, got shape ", input.ToString());
  }
  if (filter.rank() != 4) {
    return InvalidArgument("the filter must be of rank 4, got shape ", filter.ToString());
  }
  ConvShape s;
  s.channels_first = channels_first_;
  s.batch = input.dim(0);
  s.in_depth = input.dim(channels_first_ ? 1 : 3);
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
  s.rows = {.input = input.dim(channels_first_ ? 2 : 1),
            .size = filter.dim(0),
            .stride = row_stride_,
            .dilation = row_dilation_};
  s.columns = {.input = input.dim(channels_first_ ? 3 : 2),
               .size = filter.dim(1),
               .stride = column_stride_,
               .dilation = column_dilation_};
  TROUPE_RETURN_IF_ERROR(SlideBoth(padding_, paddings_, s.batch, s.out_depth, &s.rows, &s.columns));
  return s;
}

absl::Status CheckConvGradient(const ConvShape& shape, const Shape& gradient) {
  const Shape want = shape.output_shape();
  if (gradient.rank() != want.rank()) {
    return InvalidArgument("out_backprop must be of rank ", want.rank(), ", got shape ",
                           gradient.ToString());
  }
  if (!(gradient == want)) {
    return InvalidArgument("out_backprop has shape ", gradient.ToString(),
                           ", the convolution's output ", want.ToString());
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> ReadConvInputSizes(const Tensor& sizes, const Shape& filter,
                                         const Shape& gradient, bool channels_first) {
  TROUPE_ASSIGN_OR_RETURN(Shape input, ReadShapeVector(sizes, "input_sizes"));
  if (input.rank() == 2 && gradient.rank() == 4 && filter.rank() == 4) {
    const int64_t batch = gradient.dim(0), depth = filter.dim(2);
    TROUPE_ASSIGN_OR_RETURN(input, channels_first
                                       ? Shape::Create({batch, depth, input.dim(0), input.dim(1)})
                                       : Shape::Create({batch, input.dim(0), input.dim(1), depth}));
  }
  if (input.rank() != 4) {
    return InvalidArgument("input_sizes must have 4 elements (or 2, the rows and columns), got ",
                           input.rank());
  }
  return input;
}

namespace {

// Whether each row of the result has a part in a sum: not where a window lies in the padding alone,
// or no window reads a row.
bool RowsCanBeCut(ConvOp op, const Window& w) {
  const int64_t last = (w.output - 1) * w.stride - w.pad_before;  // where the last window begins
  if (op == ConvOp::kBackwardInput) {
    return w.stride <= w.effective_size() && w.dilation == 1 &&
           last + w.effective_size() >= w.input;
  }
  return w.pad_before < w.effective_size() && last < w.input;
}

// The convolution that gives rows [first, end) of the output, and the first row of the input that
// it reads.
Window OutputRows(const Window& w, int64_t first, int64_t end, int64_t* input_row) {
  Window part = w;
  const int64_t begin = first * w.stride - w.pad_before;
  *input_row = std::max<int64_t>(0, begin);
  part.input =
      std::min(w.input, begin + (end - first - 1) * w.stride + w.effective_size()) - *input_row;
  part.output = end - first;
  part.pad_before = *input_row - begin;
  return part;
}

// The same for rows of the input's gradient and the first row of the output's gradient.
Window InputRows(const Window& w, int64_t first, int64_t end, int64_t* output_row) {
  Window part = w;
  // Window o reads `size` rows from o * stride - pad_before on.
  const int64_t before = std::max<int64_t>(0, first + w.pad_before - w.effective_size() + 1);
  *output_row = (before + w.stride - 1) / w.stride;
  const int64_t last = std::min(w.output - 1, (end - 1 + w.pad_before) / w.stride);
  part.input = end - first;
  part.output = last - *output_row + 1;
  part.pad_before = first + w.pad_before - *output_row * w.stride;
  return part;
}

}  // namespace

std::vector<ConvPiece> CutConv(ConvOp op, const ConvShape& shape, double wanted) {
  constexpr double kMostPieces = 32;
  constexpr int64_t kMostOfAnImage = 8;
  // Fewer pixels do not fill the blocks of a kernel, and each piece reads the whole filter. Two
  // pieces pay all the same: a second thread then does half of the work.
  constexpr int64_t kLeastPixels = 48;
  const int64_t number = static_cast<int64_t>(std::clamp(std::round(wanted), 1.0, kMostPieces));
  const int64_t batch = shape.batch;
  const bool by_input = op == ConvOp::kBackwardInput;
  // Of a volume planes are cut as rows of an image are.
  Window ConvShape::*const cut = shape.is_3d ? &ConvShape::planes : &ConvShape::rows;
  const Window& window = shape.*cut;
  int64_t input_row = shape.columns.input, output_row = shape.columns.output;  // in pixels
  if (shape.is_3d) {
    input_row *= shape.rows.input;
    output_row *= shape.rows.output;
  }
  const int64_t rows = by_input ? window.input : window.output;
  const int64_t columns = by_input ? input_row : output_row;
  input_row *= shape.in_depth;
  output_row *= shape.out_depth;
  int64_t blocks = 1;  // of an image: a power of two, so that two threads get equal shares
  if (number > batch && RowsCanBeCut(op, window)) {
    const int64_t most = std::min({rows, (number + batch - 1) / batch, kMostOfAnImage,
                                   std::max<int64_t>(2, rows * columns / kLeastPixels)});
    while (2 * blocks <= most) blocks *= 2;
  }
  std::vector<ConvPiece> pieces;
  const int64_t images =
      blocks > 1 ? 1 : (batch + std::min(number, batch) - 1) / std::min(number, batch);
  for (int64_t n = 0; n < batch; n += images) {
    for (int64_t b = 0; b < blocks; ++b) {
      ConvPiece piece{shape, n * window.input * input_row, n * window.output * output_row};
      piece.shape.batch = std::min(images, batch - n);
      if (blocks > 1) {
        const int64_t first = rows * b / blocks, end = rows * (b + 1) / blocks;
        int64_t other;
        piece.shape.*cut = by_input ? InputRows(window, first, end, &other)
                                    : OutputRows(window, first, end, &other);
        piece.input += (by_input ? first : other) * input_row;
        piece.output += (by_input ? other : first) * output_row;
      }
      pieces.push_back(piece);
    }
  }
  return pieces;
}

}  // namespace troupe
