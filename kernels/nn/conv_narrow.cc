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

absl::StatusOr<Tensor> Floats(KernelContext& ctx, int64_t count) {
  return ctx.AllocateTemp(ElementType::kFloat, Shape({count}));
}

// Runs body(image number, padded image) for all images; the border of the padded image is zero.
template <typename Body>
absl::Status ForPadded(KernelContext& ctx, int64_t batch, int64_t grain, const PaddedImage& padded,
                       const float* images, int64_t rows, int64_t columns, Body body) {
  const int64_t pieces = (batch + grain - 1) / grain;
  std::vector<absl::Status> failed(pieces);
  ctx.ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      absl::StatusOr<Tensor> space = Floats(ctx, padded.size());
      if (!space.ok()) {
        failed[p] = space.status();
        continue;
      }
      float* data = space->mutable_data<float>();
      std::fill(data, data + padded.size(), 0.0f);
      for (int64_t n = p * grain; n < std::min(batch, (p + 1) * grain); ++n) {
        padded.Copy(images + n * rows * columns * padded.depth, rows, columns, data);
        body(n, static_cast<const float*>(data));
      }
    }
  });
  for (absl::Status& status : failed) {
    if (!status.ok()) return std::move(status);
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

int64_t ImagesPerPiece(const ConvShape& s) {
  return KernelContext::GrainFor(s.image_products() / 30);
}

}  // namespace

bool NarrowConvPays(ConvOp op, const ConvShape& s) {
  if (s.groups != 1 || s.rows.dilation != 1 || s.columns.dilation != 1) return false;
  if (s.rows.stride > 4 || s.columns.stride > 4) return false;
  const int64_t filter_bytes = s.filter_shape().num_elements() * 4;
  if (filter_bytes > 128 * 1024) return false;
  // Measured against oneDNN (tests/benchmarks/conv_benchmark): its blocks of one vector suit an odd
  // number of whole vectors better than panels of two, and it copes better with mostly empty
  // vectors of gradients.
  const int64_t lanes = NarrowConv().lanes;
  const auto suits = [lanes](int64_t depth) {
    return depth <= 32 && (depth <= lanes || depth % lanes != 0 || depth / lanes % 2 == 0);
  };
  const auto fills = [lanes](int64_t depth) { return 2 * depth > lanes; };
  switch (op) {
    case ConvOp::kForward:
      return suits(s.out_depth);
    case ConvOp::kBackwardInput:
      return s.in_depth <= lanes && fills(s.in_depth) &&
             s.out_depth * s.columns.size >= 12 * s.columns.stride;
    case ConvOp::kBackwardFilter:
      return s.in_depth <= 32 && s.out_depth <= 32 && fills(s.out_depth);
  }
  return false;
}

absl::Status NarrowConvForward(KernelContext& ctx, const ConvShape& s, const float* input,
                               const float* filter, float* output) {
  const PaddedImage padded = PaddedInput(s);
  const int64_t filter_rows = s.rows.size * s.columns.size * s.in_depth;
  TROUPE_ASSIGN_OR_RETURN(Tensor panels, Floats(ctx, filter_rows * PanelColumns(s.out_depth)));
  NarrowConv().pack(filter, filter_rows, s.out_depth, panels.mutable_data<float>());
  ConvImage form;
  form.in_row_step = s.rows.stride * padded.columns * s.in_depth;
  form.in_column_step = s.columns.stride * s.in_depth;
  form.tap_step = padded.columns * s.in_depth;
  form.taps = s.rows.size;
  form.run = s.columns.size * s.in_depth;
  form.filter = panels.unchecked_data<float>();
  form.out_row_step = s.columns.output * s.out_depth;
  form.out_column_step = s.out_depth;
  form.rows = s.rows.output;
  form.columns = s.columns.output;
  form.depth = s.out_depth;
  return ForPadded(ctx, s.batch, ImagesPerPiece(s), padded, input, s.rows.input, s.columns.input,
                   [&](int64_t n, const float* image) {
                     ConvImage conv = form;
                     conv.in = image;
                     conv.out = output + n * s.rows.output * s.columns.output * s.out_depth;
                     NarrowConv().image(conv);
                   });
}

absl::Status NarrowConvBackwardInput(KernelContext& ctx, const ConvShape& s, const float* filter,
                                     const float* output_gradient, float* input_gradient) {
  PaddedImage padded{s.rows.output, s.columns.output, s.out_depth, 0, 0};
  int64_t below, right;
  Margins(s.rows, &padded.top, &below);
  Margins(s.columns, &padded.left, &right);
  padded.rows += padded.top + below;
  padded.columns += padded.left + right;
  // A filter for each phase: the window's elements backwards, depth and output depth exchanged.
  struct PhaseConv {
    ConvImage form;
    int64_t in_offset, out_offset;
  };
  std::vector<PhaseConv> convs;
  const int64_t panel_columns = PanelColumns(s.in_depth);
  TROUPE_ASSIGN_OR_RETURN(Tensor panels, Floats(ctx, s.rows.size * s.columns.size * s.out_depth *
                                                         std::max(panel_columns, s.in_depth)));
  TROUPE_ASSIGN_OR_RETURN(Tensor turned, Floats(ctx, s.filter_shape().num_elements()));
  float* next_panels = panels.mutable_data<float>();
  bool covers_all = true;
  for (int64_t py = 0; py < std::min(s.rows.stride, s.rows.input); ++py) {
    for (int64_t px = 0; px < std::min(s.columns.stride, s.columns.input); ++px) {
      const Phase row(s.rows, py), column(s.columns, px);
      if (row.taps == 0 || column.taps == 0) {
        covers_all = false;
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
      PhaseConv conv;
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
      convs.push_back(conv);
      next_panels += filter_rows * panel_columns;
    }
  }
  const int64_t image_size = s.rows.input * s.columns.input * s.in_depth;
  return ForPadded(ctx, s.batch, ImagesPerPiece(s), padded, output_gradient, s.rows.output,
                   s.columns.output, [&](int64_t n, const float* image) {
                     float* out = input_gradient + n * image_size;
                     if (!covers_all) std::fill(out, out + image_size, 0.0f);
                     for (const PhaseConv& phase : convs) {
                       ConvImage conv = phase.form;
                       conv.in = image + phase.in_offset;
                       conv.out = out + phase.out_offset;
                       NarrowConv().image(conv);
                     }
                   });
}

absl::Status NarrowConvBackwardFilter(KernelContext& ctx, const ConvShape& s, const float* input,
                                      const float* output_gradient, float* filter_gradient) {
  const PaddedImage padded = PaddedInput(s);
  const int64_t pixels = s.rows.output * s.columns.output;
  const int64_t filter_size = s.filter_shape().num_elements();
  const int64_t panel_size = pixels * PanelColumns(s.out_depth);
  // Every piece of the batch has a sum of its own. Their number depends on the sizes only.
  const int64_t wanted = std::clamp<int64_t>(
      static_cast<int64_t>(s.image_products() * static_cast<double>(s.batch) / 4e6), 1, 16);
  const int64_t images = (s.batch + wanted - 1) / wanted;
  const int64_t pieces = (s.batch + images - 1) / images;
  TROUPE_ASSIGN_OR_RETURN(Tensor sums, Floats(ctx, pieces * filter_size));
  TROUPE_ASSIGN_OR_RETURN(Tensor panels, Floats(ctx, pieces * panel_size));
  float* sum = sums.mutable_data<float>();
  std::fill(sum, sum + pieces * filter_size, 0.0f);
  ConvFilterImage form;
  form.in_row_step = s.rows.stride * padded.columns * s.in_depth;
  form.in_column_step = s.columns.stride * s.in_depth;
  form.tap_step = padded.columns * s.in_depth;
  form.taps = s.rows.size;
  form.run = s.columns.size * s.in_depth;
  form.rows = s.rows.output;
  form.columns = s.columns.output;
  form.depth = s.out_depth;
  TROUPE_RETURN_IF_ERROR(ForPadded(ctx, s.batch, images, padded, input, s.rows.input,
                                   s.columns.input, [&](int64_t n, const float* image) {
                                     const int64_t piece = n / images;
                                     float* gradient =
                                         panels.mutable_data<float>() + piece * panel_size;
                                     NarrowConv().pack(output_gradient + n * pixels * s.out_depth,
                                                       pixels, s.out_depth, gradient);
                                     ConvFilterImage conv = form;
                                     conv.in = image;
                                     conv.gradient = gradient;
                                     conv.filter = sum + piece * filter_size;
                                     NarrowConv().filter(conv);
                                   }));
  for (int64_t i = 0; i < filter_size; ++i) {
    float total = sum[i];
    for (int64_t p = 1; p < pieces; ++p) total += sum[p * filter_size + i];
    filter_gradient[i] = total;
  }
  return absl::OkStatus();
}

}  // namespace troupe
