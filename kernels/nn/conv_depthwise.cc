// Depthwise convolutions (`kernels/simd/depthwise.h`): forward, and the gradient of the input. Rows
// of the result are read from the images where they lie. Where channels do not fill vectors, the
// filter has several outputs of a channel, or elements are of 16 bits, some rows of an image are
// copied first: widened, with a border of zeros, and each channel as often as it has outputs.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/common/onednn.h"
#include "kernels/common/widen.h"
#include "kernels/math/cast.h"
#include "kernels/nn/conv_shape.h"
#include "kernels/simd/depthwise.h"

namespace troupe {
namespace {

// Multiplications of a piece: some 10 microseconds with AVX-512.
constexpr double kPieceProducts = 6e5;
// Of a part of a filter that is used for a whole image.
constexpr int64_t kFilterElements = 4 * 1024;
// Of images and results that do not stay in a core's caches.
constexpr int64_t kFarElements = 2 * 1024 * 1024;
// Of a copy of some rows of an image.
constexpr int64_t kCopiedElements = 32 * 1024;

// What a position of the result reads along one dimension: `count` elements from `in` on, times as
// many of the window from `tap` on.
struct Reads {
  int64_t in = 0, tap = 0, count = 0;

  bool SameWindow(const Reads& other) const { return tap == other.tap && count == other.count; }
};

// Positions of the result with the same elements of the window, `Line::position_step` apart; the
// first one's reads.
struct Run {
  int64_t first = 0, positions = 0;
  Reads reads;
};

// One dimension of a convolution, or of the gradient of its input.
struct Line {
  Line(const Window& window, bool is_backward)
      : w(window),
        backward(is_backward),
        positions(backward ? w.input : w.output),
        in_tap_step(backward ? -1 : w.dilation),
        filter_tap_step(backward ? w.stride : 1),
        position_step(backward ? w.stride : 1),
        in_position_step(backward ? 1 : w.stride) {}

  Reads At(int64_t position) const {
    const auto ceil_of = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    int64_t begin, end;
    Reads reads;
    if (backward) {
      const int64_t padded = position + w.pad_before, last = padded / w.stride;
      const int64_t first_tap = padded % w.stride;
      begin = std::max<int64_t>(0, last - w.output + 1);
      end = first_tap < w.size ? std::min(last + 1, ceil_of(w.size - first_tap, w.stride)) : 0;
      reads = {last - begin, first_tap + begin * w.stride, end - begin};
    } else {
      const int64_t first = position * w.stride - w.pad_before;
      begin = first < 0 ? ceil_of(-first, w.dilation) : 0;
      end = first < w.input ? std::min(w.size, ceil_of(w.input - first, w.dilation)) : 0;
      reads = {first + begin * w.dilation, begin, end - begin};
    }
    return reads.count > 0 ? reads : Reads();
  }

  std::vector<Run> Runs() const {
    std::vector<Run> runs;
    for (int64_t phase = 0; phase < std::min(position_step, positions); ++phase) {
      runs.push_back({phase, 1, At(phase)});
      for (int64_t i = phase + position_step; i < positions; i += position_step) {
        const Reads reads = At(i);
        if (reads.SameWindow(runs.back().reads)) {
          ++runs.back().positions;
        } else {
          runs.push_back({i, 1, reads});
        }
      }
    }
    return runs;
  }

  Window w;
  bool backward;
  int64_t positions;                     // of the result
  int64_t in_tap_step, filter_tap_step;  // between elements of a window
  int64_t position_step;                 // between positions with the same elements of the window
  int64_t in_position_step;              // between their first reads
};

// Rows of images where they lie.
void RunInPlace(KernelContext& ctx, const ConvShape& s, bool backward, const float* in,
                const float* filter, Tensor* out) {
  const Line rows(s.rows, backward), columns(s.columns, backward);
  const std::vector<Run> runs = columns.Runs();
  const int64_t depth = s.in_depth;
  const int64_t in_rows = backward ? s.rows.output : s.rows.input;
  const int64_t in_row = (backward ? s.columns.output : s.columns.input) * depth;
  const int64_t filter_row = s.columns.size * depth;
  // Channels of which the filter stays in the nearest cache.
  const int64_t taps = s.rows.size * s.columns.size;
  const int64_t channels = std::max<int64_t>(kFilterElements / taps / 64 * 64, 64);
  const int64_t chunks = depth <= channels * 3 / 2 ? 1 : (depth + channels - 1) / channels;
  const int64_t lines = chunks * rows.positions;  // of an image
  const double line_ns = 0.02 * s.image_products() / static_cast<double>(s.rows.output * chunks);
  const DepthwiseRun run_of_line = {
      .in_line_step = rows.in_position_step * in_row,
      .in_step = columns.in_position_step * depth,
      .in_row_step = rows.in_tap_step * in_row,
      .in_tap_step = columns.in_tap_step * depth,
      .filter_row_step = rows.filter_tap_step * filter_row,
      .filter_tap_step = columns.filter_tap_step * depth,
      .out_line_step = columns.positions * depth,
      .out_step = columns.position_step * depth,
      .is_far = s.input_elements() + s.output_elements() > kFarElements};
  ctx.ParallelFor(
      s.batch * lines, KernelContext::GrainFor(line_ns), [&](int64_t begin, int64_t end) {
        DepthwiseRun d = run_of_line;
        for (int64_t i = begin; i < end; i += d.lines) {
          const int64_t image = i / lines, y = i % rows.positions;
          const int64_t channel = i / rows.positions % chunks * channels;
          d.channels = chunks == 1 ? depth : std::min(channels, depth - channel);
          const Reads row = rows.At(y);
          const bool is_pair = i + 1 < end && y + 1 < rows.positions && rows.position_step == 1 &&
                               rows.At(y + 1).SameWindow(row);
          d.lines = is_pair ? 2 : 1;
          d.rows = row.count;
          for (const Run& run : runs) {
            d.in = in + (image * in_rows + row.in) * in_row + run.reads.in * depth + channel;
            d.filter = filter + row.tap * filter_row + run.reads.tap * depth + channel;
            d.taps = run.reads.count;
            d.pixels = run.positions;
            d.out = out->mutable_data<float>() + (image * rows.positions + y) * d.out_line_step +
                    run.first * depth + channel;
            Depthwise().run(d);
          }
        }
      });
}

// Several pixels beside each other as one with as many times the channels, so that fewer lanes of
// vectors stay empty. Their number, for rows of `columns` pixels.
int64_t PixelsAtOnce(int64_t columns, int64_t depth) {
  const int64_t lanes = Depthwise().lanes;
  int64_t best = 1, least = INT64_MAX;
  for (int64_t pixels = 1; pixels <= std::min(columns, lanes); ++pixels) {
    const int64_t channels = pixels * depth;
    const int64_t steps = channels < lanes ? channels : (channels + lanes - 1) / lanes;
    const int64_t all = (columns + pixels - 1) / pixels * steps;
    if (all < least) {
      least = all;
      best = pixels;
    }
  }
  return best;
}

// The gradient of the input of a convolution of stride 1 is a convolution itself, with the window
// turned around.
ConvShape Turned(const ConvShape& s) {
  ConvShape turned = s;
  for (Window* w : {&turned.rows, &turned.columns}) {
    std::swap(w->input, w->output);
    w->pad_before = w->size - 1 - w->pad_before;
  }
  return turned;
}

// The filter for `pixels` pixels at once, turned around if `turned`.
std::vector<float> Repeated(const ConvShape& s, const float* filter, bool turned, int64_t pixels) {
  const int64_t taps = s.rows.size * s.columns.size;
  std::vector<float> repeated(taps * pixels * s.out_depth);
  float* to = repeated.data();
  for (int64_t t = 0; t < taps; ++t) {
    const float* from = filter + (turned ? taps - 1 - t : t) * s.out_depth;
    for (int64_t i = 0; i < pixels; ++i) to = std::copy_n(from, s.out_depth, to);
  }
  return repeated;
}

// Copies the pixels that the windows of some rows of the result reach, with zeros around them.
class WindowedRows {
 public:
  WindowedRows(const ConvShape& s, ElementType type)
      : s_(s),
        bytes_(ElementSize(type)),
        outputs_(s.out_depth / s.in_depth),
        widen_(type == ElementType::kFloat ? nullptr : FindCast(type, ElementType::kFloat)),
        columns_((s.columns.output - 1) * s.columns.stride + s.columns.effective_size()) {}

  int64_t row_elements() const { return columns_ * s_.out_depth; }
  // For `count` rows of the result.
  int64_t rows(int64_t count) const {
    return (count - 1) * s_.rows.stride + s_.rows.effective_size();
  }

  void Copy(const char* image, int64_t first, int64_t count, float* to) const {
    const int64_t left = std::clamp<int64_t>(s_.columns.pad_before, 0, columns_);
    const int64_t column = left - s_.columns.pad_before;
    const int64_t pixels = std::clamp<int64_t>(s_.columns.input - column, 0, columns_ - left);
    const int64_t depth = s_.out_depth;
    std::vector<float> wide(widen_ != nullptr && outputs_ > 1 ? pixels * s_.in_depth : 0);
    for (int64_t r = 0; r < rows(count); ++r, to += row_elements()) {
      const int64_t y = first * s_.rows.stride - s_.rows.pad_before + r;
      if (y < 0 || y >= s_.rows.input) {
        std::fill_n(to, row_elements(), 0.0f);
        continue;
      }
      std::fill_n(to, left * depth, 0.0f);
      CopyPixels(image + (y * s_.columns.input + column) * s_.in_depth * bytes_, pixels,
                 wide.data(), to + left * depth);
      std::fill_n(to + (left + pixels) * depth, (columns_ - left - pixels) * depth, 0.0f);
    }
  }

 private:
  void CopyPixels(const void* from, int64_t pixels, float* wide, float* to) const {
    const int64_t elements = pixels * s_.in_depth;
    if (outputs_ == 1) {
      if (widen_ != nullptr) {
        widen_(from, to, elements);
      } else {
        std::memcpy(to, from, static_cast<size_t>(elements) * sizeof(float));
      }
      return;
    }
    if (widen_ != nullptr) {
      widen_(from, wide, elements);
      from = wide;
    }
    const float* in = static_cast<const float*>(from);
    switch (outputs_) {
      case 2:
        return Repeat<2>(in, elements, to);
      case 4:
        return Repeat<4>(in, elements, to);
      case 8:
        return Repeat<8>(in, elements, to);
      default:
        for (int64_t i = 0; i < elements; ++i) to = std::fill_n(to, outputs_, in[i]);
    }
  }
  template <int kTimes>
  static void Repeat(const float* in, int64_t elements, float* to) {
    for (int64_t i = 0; i < elements; ++i, to += kTimes) {
      for (int j = 0; j < kTimes; ++j) to[j] = in[i];
    }
  }

  ConvShape s_;
  int64_t bytes_, outputs_;
  simd::UnaryFn widen_;
  int64_t columns_;
};

// `count` rows of the result from rows that WindowedRows has copied, `row_elements` each.
void RunCopied(const ConvShape& s, const float* copied, int64_t row_elements, const float* filter,
               int64_t at_once, int64_t count, float* out) {
  const int64_t depth = s.out_depth, channels = at_once * depth;
  const int64_t columns = s.columns.output, rest = columns % at_once;
  DepthwiseRun d = {.in_line_step = s.rows.stride * row_elements,
                    .in_step = s.columns.stride * channels,
                    .in_row_step = s.rows.dilation * row_elements,
                    .in_tap_step = s.columns.dilation * depth,
                    .filter = filter,
                    .filter_row_step = s.columns.size * channels,
                    .filter_tap_step = channels,
                    .rows = s.rows.size,
                    .taps = s.columns.size,
                    .channels = channels,
                    .out_line_step = columns * depth,
                    .out_step = channels};
  for (int64_t y = 0; y < count; y += d.lines) {
    d.lines = std::min<int64_t>(2, count - y);
    d.in = copied + y * d.in_line_step;
    d.out = out + y * d.out_line_step;
    d.pixels = columns / at_once;
    Depthwise().run(d);
    if (rest == 0) continue;
    // The last ones together with some that are computed again.
    d.in += (columns - at_once) * depth;
    d.out += (columns - at_once) * depth;
    d.pixels = 1;
    Depthwise().run(d);
  }
}

// Convolutions of copies of images.
absl::Status RunOnCopies(KernelContext& ctx, const ConvShape& s, const Tensor& in,
                         const float* filter, bool turned, Tensor* out) {
  const int64_t at_once = s.columns.stride == 1 ? PixelsAtOnce(s.columns.output, s.out_depth) : 1;
  std::vector<float> repeated;
  if (at_once > 1 || turned) {
    repeated = Repeated(s, filter, turned, at_once);
    filter = repeated.data();
  }
  const ElementType type = in.type();
  const simd::UnaryFn narrow =
      type == ElementType::kFloat ? nullptr : FindCast(ElementType::kFloat, type);
  const std::vector<ConvPiece> pieces = CutConv(
      ConvOp::kForward, s, s.image_products() * static_cast<double>(s.batch) / kPieceProducts);
  return ForPieces(ctx, pieces, [&](const ConvPiece& piece, int64_t) -> absl::Status {
    const ConvShape& p = piece.shape;
    const WindowedRows windowed(p, type);
    // Rows of the result at once, of which the copy still lies in a near cache.
    const int64_t wanted = kCopiedElements / windowed.row_elements() / p.rows.stride;
    const int64_t most = std::max(std::min<int64_t>(wanted, 64), 2 * p.rows.size);
    const int64_t row = p.columns.output * p.out_depth;
    TROUPE_ASSIGN_OR_RETURN(
        Tensor copy, ctx.AllocateTemp(ElementType::kFloat,
                                      Shape({windowed.rows(most) * windowed.row_elements()})));
    Tensor wide;
    if (narrow != nullptr) {
      TROUPE_ASSIGN_OR_RETURN(wide, ctx.AllocateTemp(ElementType::kFloat, Shape({most * row})));
    }
    const char* image = static_cast<const char*>(in.raw_data()) + piece.input * ElementSize(type);
    char* result = static_cast<char*>(out->mutable_raw_data()) + piece.output * ElementSize(type);
    const int64_t image_bytes = p.rows.input * p.columns.input * p.in_depth * ElementSize(type);
    for (int64_t n = 0; n < p.batch; ++n, image += image_bytes) {
      for (int64_t y = 0; y < p.rows.output; y += most) {
        const int64_t count = std::min(most, p.rows.output - y);
        float* copied = copy.mutable_data<float>();
        float* to =
            narrow != nullptr ? wide.mutable_data<float>() : reinterpret_cast<float*>(result);
        windowed.Copy(image, y, count, copied);
        RunCopied(p, copied, windowed.row_elements(), filter, at_once, count, to);
        if (narrow != nullptr) narrow(to, result, count * row);
        result += count * row * ElementSize(type);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

// Measured against oneDNN: docs/benchmarks.md.
bool DepthwiseConvPays(ConvOp op, const ConvShape& s, ElementType type) {
  if (s.is_3d || s.channels_first || s.groups == 1 || s.groups != s.in_depth) return false;
  const int64_t outputs = s.out_depth / s.in_depth;  // of a channel
  const bool fills_vectors = s.out_depth >= Depthwise().lanes;
  const bool is_dense = s.rows.stride == 1 && s.columns.stride == 1;
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kHalf:
      break;
    case ElementType::kBfloat16:
      if (outputs == 1 && OneDnnHasBfloat16()) return false;
      break;
    default:
      return false;
  }
  switch (op) {
    case ConvOp::kForward:
      if (outputs % 8 == 0) return false;  // oneDNN's blocks of outputs
      // Copies of lines as long as the filter, most of it padding.
      for (const Window& axis : {s.rows, s.columns}) {
        if (axis.effective_size() > 2 * (axis.input + axis.size)) return false;
      }
      return fills_vectors || is_dense;
    case ConvOp::kBackwardInput:
      if (outputs != 1 || s.rows.dilation != 1 || s.columns.dilation != 1) return false;
      if (is_dense) return true;
      return type == ElementType::kFloat && fills_vectors && s.rows.size <= 2 * s.rows.stride;
    case ConvOp::kBackwardFilter:
      return false;
  }
  return false;
}

absl::Status DepthwiseConv(KernelContext& ctx, ConvOp op, const ConvShape& s, const Tensor& in,
                           const Tensor& filter, Tensor* out) {
  TROUPE_ASSIGN_OR_RETURN(const Tensor wide, Widened(ctx, filter));
  const float* elements = wide.unchecked_data<float>();
  const bool backward = op == ConvOp::kBackwardInput;
  if (in.type() == ElementType::kFloat && s.out_depth == s.in_depth &&
      s.in_depth >= Depthwise().lanes) {
    RunInPlace(ctx, s, backward, in.unchecked_data<float>(), elements, out);
    return absl::OkStatus();
  }
  return RunOnCopies(ctx, backward ? Turned(s) : s, in, elements, backward, out);
}

}  // namespace troupe
