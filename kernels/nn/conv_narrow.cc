// Float convolutions of images with few channels (`kernels/simd/conv.h`). Images are copied into
// padded ones; the gradient of the input is one convolution for each phase of the stride.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/nn/conv_shape.h"
#include "kernels/simd/conv.h"

namespace troupe {
namespace {

int64_t PanelColumns(int64_t depth) {
  const int64_t lanes = NarrowConv().lanes;
  int64_t columns = 0;
  while (columns < depth) columns += ConvPanelWidth(depth - columns, lanes);
  return columns;
}

// An image with a border of zeros: element (y, x) of the original is element (y + top, x + left).
struct PaddedImage {
  int64_t rows, columns, depth, top, left;

  int64_t size() const { return rows * columns * depth; }
  // Copies what fits; the border stays as it is.
  void Copy(const float* image, int64_t image_rows, int64_t image_columns, float* to) const {
    const int64_t copied_columns = std::min(image_columns, columns - left);
    const int64_t copied_rows = std::min(image_rows, rows - top);
    for (int64_t y = 0; y < copied_rows; ++y) {
      std::memcpy(to + ((y + top) * columns + left) * depth, image + y * image_columns * depth,
                  static_cast<size_t>(copied_columns * depth) * sizeof(float));
    }
  }
};

PaddedImage PaddedInput(const ConvShape& s) {
  return {(s.rows.output - 1) * s.rows.stride + s.rows.size,
          (s.columns.output - 1) * s.columns.stride + s.columns.size, s.in_depth, s.rows.pad_before,
          s.columns.pad_before};
}

ConvWindow WindowOver(const PaddedImage& padded, const ConvShape& s) {
  return {.in_row_step = s.rows.stride * padded.columns * s.in_depth,
          .in_column_step = s.columns.stride * s.in_depth,
          .tap_step = padded.columns * s.in_depth,
          .taps = s.rows.size,
          .run = s.columns.size * s.in_depth,
          .rows = s.rows.output,
          .columns = s.columns.output,
          .depth = s.out_depth};
}

absl::StatusOr<Tensor> Floats(KernelContext& ctx, int64_t count) {
  return ctx.AllocateTemp(ElementType::kFloat, Shape({count}));
}

// Runs body(image number, padded image) for all images; the border of the padded image is zero.
template <typename Body>
absl::Status ForPadded(KernelContext& ctx, int64_t batch, const PaddedImage& padded,
                       const float* images, int64_t rows, int64_t columns, Body body) {
  TROUPE_ASSIGN_OR_RETURN(Tensor space, Floats(ctx, padded.size()));
  float* data = space.mutable_data<float>();
  std::fill(data, data + padded.size(), 0.0f);
  for (int64_t n = 0; n < batch; ++n) {
    padded.Copy(images + n * rows * columns * padded.depth, rows, columns, data);
    body(n, static_cast<const float*>(data));
  }
  return absl::OkStatus();
}

// One dimension of the gradient of an input, for positions that are `phase` modulo the stride:
// position phase + j * stride gets window elements first + t * stride, t < taps, from output j +
// shift - t.
struct Phase {
  Phase(const Window& w, int64_t phase) {
    first = (phase + w.pad_before) % w.stride;
    taps = first < w.size ? (w.size - first + w.stride - 1) / w.stride : 0;
    shift = (phase + w.pad_before - first) / w.stride;
    positions = phase < w.input ? (w.input - phase + w.stride - 1) / w.stride : 0;
  }
  // The first output that position 0 reads; outputs before 0 and past the end are zeros.
  int64_t first_output() const { return shift - taps + 1; }
  int64_t last_output() const { return positions - 1 + shift; }

  int64_t first, taps, shift, positions;
};

// Zeros needed before the first output and behind the last.
void Margins(const Window& w, int64_t* before, int64_t* behind) {
  *before = *behind = 0;
  for (int64_t p = 0; p < std::min(w.stride, w.input); ++p) {
    const Phase phase(w, p);
    if (phase.taps == 0) continue;
    *before = std::max(*before, -phase.first_output());
    *behind = std::max(*behind, phase.last_output() - (w.output - 1));
  }
}

// Multiplications of a piece: some 10 microseconds with AVX-512.
constexpr double kPieceProducts = 6e5;

double WantedPieces(const ConvShape& s) {
  return s.image_products() * static_cast<double>(s.batch) / kPieceProducts;
}

}  // namespace

// Measured against oneDNN: the table of docs/benchmarks.md.
bool NarrowConvPays(ConvOp op, const ConvShape& s) {
  constexpr int64_t kMostDepth = 32, kMostStride = 4, kMostFilterBytes = 128 * 1024;
  if (s.is_3d || s.groups != 1 || s.rows.dilation != 1 || s.columns.dilation != 1) return false;
  if (s.rows.stride > kMostStride || s.columns.stride > kMostStride) return false;
  if (s.rows.size == 1 && s.columns.size == 1) return false;  // a product
  if (s.filter_shape().num_elements() * 4 > kMostFilterBytes) return false;
  const int64_t lanes = NarrowConv().lanes;
  const bool is_avx512 = lanes == 16;
  const auto fills = [lanes](int64_t depth) { return 2 * depth > lanes; };
  switch (op) {
    case ConvOp::kForward:
      // oneDNN's blocks of one vector suit an odd number of whole vectors better than panels of
      // two.
      return s.out_depth <= kMostDepth &&
             (s.out_depth <= lanes || s.out_depth % lanes != 0 || s.out_depth / lanes % 2 == 0);
    case ConvOp::kBackwardInput:
      // With AVX-512 oneDNN is faster by a quarter.
      return !is_avx512 && s.in_depth <= lanes && fills(s.in_depth) &&
             s.out_depth * s.columns.size >= 12 * s.columns.stride;
    case ConvOp::kBackwardFilter:
      if (s.in_depth > kMostDepth || s.out_depth > kMostDepth || !fills(s.out_depth)) return false;
      // With AVX-512 where oneDNN leaves lanes empty and a row of the window gives work enough.
      return !is_avx512 ||
             (s.in_depth < lanes && s.out_depth % lanes != 0 && s.in_depth * s.columns.size >= 36);
  }
  return false;
}

absl::Status NarrowConvForward(KernelContext& ctx, const ConvShape& shape, const float* input,
                               const ConvFilter& filter, PackedFilters<NarrowLayout>* packed,
                               float* output) {
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor panels, packed->Get(filter, NarrowLayout(), [&]() -> absl::StatusOr<Tensor> {
        const int64_t filter_rows = shape.rows.size * shape.columns.size * shape.in_depth;
        TROUPE_ASSIGN_OR_RETURN(Tensor made,
                                Floats(ctx, filter_rows * PanelColumns(shape.out_depth)));
        NarrowConv().pack(filter.tensor.unchecked_data<float>(), filter_rows, shape.out_depth,
                          made.mutable_data<float>());
        return made;
      }));
  const auto run = [&](const ConvPiece& piece, int64_t) {
    const ConvShape& s = piece.shape;
    const PaddedImage padded = PaddedInput(s);
    ConvImage form{WindowOver(padded, s)};
    form.filter = panels.unchecked_data<float>();
    form.out_row_step = s.columns.output * s.out_depth;
    form.out_column_step = s.out_depth;
    return ForPadded(ctx, s.batch, padded, input + piece.input, s.rows.input, s.columns.input,
                     [&](int64_t n, const float* image) {
                       ConvImage conv = form;
                       conv.in = image;
                       conv.out = output + piece.output +
                                  n * shape.rows.output * s.columns.output * s.out_depth;
                       NarrowConv().image(conv);
                     });
  };
  return ForPieces(ctx, CutConv(ConvOp::kForward, shape, WantedPieces(shape)), run);
}

namespace {

// The gradient of an input as one convolution for each phase of the stride, each with a filter of
// its own: the window's elements backwards, depth and output depth exchanged.
struct PhaseConvs {
  struct PhaseConv {
    ConvImage form;
    int64_t in_offset, out_offset;
  };
  PaddedImage padded;
  Tensor panels;  // the filters
  std::vector<PhaseConv> convs;
  bool covers_all = true;
};

absl::StatusOr<PhaseConvs> MakePhaseConvs(KernelContext& ctx, const ConvShape& s,
                                          const float* filter) {
  PhaseConvs made{{s.rows.output, s.columns.output, s.out_depth, 0, 0}, {}, {}, true};
  PaddedImage& padded = made.padded;
  int64_t below, right;
  Margins(s.rows, &padded.top, &below);
  Margins(s.columns, &padded.left, &right);
  padded.rows += padded.top + below;
  padded.columns += padded.left + right;
  const int64_t panel_columns = PanelColumns(s.in_depth);
  TROUPE_ASSIGN_OR_RETURN(made.panels, Floats(ctx, s.rows.size * s.columns.size * s.out_depth *
                                                       std::max(panel_columns, s.in_depth)));
  TROUPE_ASSIGN_OR_RETURN(Tensor turned, Floats(ctx, s.filter_shape().num_elements()));
  float* next_panels = made.panels.mutable_data<float>();
  for (int64_t py = 0; py < std::min(s.rows.stride, s.rows.input); ++py) {
    for (int64_t px = 0; px < std::min(s.columns.stride, s.columns.input); ++px) {
      const Phase row(s.rows, py), column(s.columns, px);
      if (row.taps == 0 || column.taps == 0) {
        made.covers_all = false;
        continue;
      }
      float* to = turned.mutable_data<float>();
      for (int64_t t = row.taps - 1; t >= 0; --t) {
        for (int64_t u = column.taps - 1; u >= 0; --u) {
          const float* from = filter + ((row.first + t * s.rows.stride) * s.columns.size +
                                        column.first + u * s.columns.stride) *
                                           s.in_depth * s.out_depth;
          for (int64_t k = 0; k < s.out_depth; ++k) {
            for (int64_t c = 0; c < s.in_depth; ++c) *to++ = from[c * s.out_depth + k];
          }
        }
      }
      const int64_t filter_rows = row.taps * column.taps * s.out_depth;
      NarrowConv().pack(turned.unchecked_data<float>(), filter_rows, s.in_depth, next_panels);
      PhaseConvs::PhaseConv conv;
      conv.form.in_row_step = padded.columns * s.out_depth;
      conv.form.in_column_step = s.out_depth;
      conv.form.tap_step = padded.columns * s.out_depth;
      conv.form.taps = row.taps;
      conv.form.run = column.taps * s.out_depth;
      conv.form.filter = next_panels;
      conv.form.out_row_step = s.rows.stride * s.columns.input * s.in_depth;
      conv.form.out_column_step = s.columns.stride * s.in_depth;
      conv.form.rows = row.positions;
      conv.form.columns = column.positions;
      conv.form.depth = s.in_depth;
      conv.in_offset = ((padded.top + row.first_output()) * padded.columns + padded.left +
                        column.first_output()) *
                       s.out_depth;
      conv.out_offset = (py * s.columns.input + px) * s.in_depth;
      made.convs.push_back(conv);
      next_panels += filter_rows * panel_columns;
    }
  }
  return made;
}

}  // namespace

absl::Status NarrowConvBackwardInput(KernelContext& ctx, const ConvShape& shape,
                                     const float* filter, const float* output_gradient,
                                     float* input_gradient) {
  const std::vector<ConvPiece> pieces = CutConv(ConvOp::kBackwardInput, shape, WantedPieces(shape));
  const bool cuts_rows = pieces[0].shape.rows.input != shape.rows.input;
  PhaseConvs whole;
  if (!cuts_rows) {
    TROUPE_ASSIGN_OR_RETURN(whole, MakePhaseConvs(ctx, shape, filter));
  }
  return ForPieces(ctx, pieces, [&](const ConvPiece& piece, int64_t) -> absl::Status {
    const ConvShape& s = piece.shape;
    PhaseConvs own;
    if (cuts_rows) {
      TROUPE_ASSIGN_OR_RETURN(own, MakePhaseConvs(ctx, s, filter));
    }
    const PhaseConvs& phases = cuts_rows ? own : whole;
    const int64_t image_size = s.rows.input * s.columns.input * s.in_depth;
    return ForPadded(ctx, s.batch, phases.padded, output_gradient + piece.output, s.rows.output,
                     s.columns.output, [&](int64_t n, const float* image) {
                       float* out = input_gradient + piece.input + n * image_size;
                       if (!phases.covers_all) std::fill(out, out + image_size, 0.0f);
                       for (const PhaseConvs::PhaseConv& phase : phases.convs) {
                         ConvImage conv = phase.form;
                         conv.in = image + phase.in_offset;
                         conv.out = out + phase.out_offset;
                         NarrowConv().image(conv);
                       }
                     });
  });
}

absl::Status NarrowConvBackwardFilter(KernelContext& ctx, const ConvShape& shape,
                                      const float* input, const float* output_gradient,
                                      float* filter_gradient) {
  // Every piece has a sum of its own.
  const std::vector<ConvPiece> pieces =
      CutConv(ConvOp::kBackwardFilter, shape, std::min(WantedPieces(shape) / 2, 16.0));
  const int64_t filter_size = shape.filter_shape().num_elements();
  const int64_t count = static_cast<int64_t>(pieces.size());
  TROUPE_ASSIGN_OR_RETURN(Tensor sums, Floats(ctx, count * filter_size));
  float* sum = sums.mutable_data<float>();
  std::fill(sum, sum + count * filter_size, 0.0f);
  const auto run = [&](const ConvPiece& piece, int64_t i) -> absl::Status {
    const ConvShape& s = piece.shape;
    const PaddedImage padded = PaddedInput(s);
    const int64_t pixels = s.rows.output * s.columns.output;
    TROUPE_ASSIGN_OR_RETURN(Tensor panels, Floats(ctx, pixels * PanelColumns(s.out_depth)));
    float* gradient = panels.mutable_data<float>();
    ConvFilterImage conv{WindowOver(padded, s)};
    conv.gradient = gradient;
    conv.filter = sum + i * filter_size;
    return ForPadded(ctx, s.batch, padded, input + piece.input, s.rows.input, s.columns.input,
                     [&](int64_t n, const float* image) {
                       NarrowConv().pack(output_gradient + piece.output + n * pixels * s.out_depth,
                                         pixels, s.out_depth, gradient);
                       conv.in = image;
                       NarrowConv().filter(conv);
                     });
  };
  TROUPE_RETURN_IF_ERROR(ForPieces(ctx, pieces, run));
  for (int64_t i = 0; i < filter_size; ++i) {
    float total = sum[i];
    for (int64_t p = 1; p < count; ++p) total += sum[p * filter_size + i];
    filter_gradient[i] = total;
  }
  return absl::OkStatus();
}

}  // namespace troupe
