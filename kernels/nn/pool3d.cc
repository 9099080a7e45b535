// MaxPool3D, AvgPool3D and their gradients; ExtractVolumePatches. All slide windows over volumes
// [batch, planes, rows, columns, channels].
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel.h"
#include "kernels/math/cast.h"
#include "kernels/math/loops.h"
#include "kernels/nn/pool_shape.h"
#include "kernels/nn/volume_patches.h"
#include "kernels/nn/volume_windows.h"
#include "kernels/simd/dispatch.h"
#include "kernels/simd/volume_pool.h"

namespace troupe {
namespace {

// Nanoseconds that one output pixel takes.
double PixelNs(const VolumeWindows& w) {
  return 0.3 * static_cast<double>(w.channels) * static_cast<double>(w.window_pixels());
}

// Elements [begin, end) of the input in the window at `position`.
struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
Range Clipped(const Window& w, int64_t position) {
  const int64_t first = position * w.stride - w.pad_before;
  const int64_t begin = std::clamp<int64_t>(first, 0, w.input);
  return {begin, std::clamp<int64_t>(first + w.size, begin, w.input)};
}

// Outputs whose windows hold an element of the input.
Range Covering(const Window& w, int64_t position) {
  const int64_t padded = position + w.pad_before;
  const int64_t begin = padded < w.size ? 0 : (padded - w.size) / w.stride + 1;
  const int64_t end = std::min(w.output, padded / w.stride + 1);
  return {std::min(begin, end), end};
}

// The part of the input in the window at an output pixel, both numbered within a volume.
struct Box {
  Range planes, rows, columns;

  Box(const VolumeWindows& w, int64_t pixel)
      : planes(Clipped(w.planes, pixel / w.columns.output / w.rows.output)),
        rows(Clipped(w.rows, pixel / w.columns.output % w.rows.output)),
        columns(Clipped(w.columns, pixel % w.columns.output)) {}
  int64_t count() const { return planes.size() * rows.size() * columns.size(); }
  template <typename Visit>
  void ForPixels(const VolumeWindows& w, Visit visit) const {
    for (int64_t z = planes.begin; z < planes.end; ++z) {
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        for (int64_t x = columns.begin; x < columns.end; ++x) {
          visit((z * w.rows.input + y) * w.columns.input + x);
        }
      }
    }
  }
};

class VolumePoolKernel : public Kernel {
 public:
  VolumePoolKernel(KernelConstruction& construction, absl::Status* status) {
    *status = attributes_.Read(construction, "ksize", /*only_ndhwc=*/true);
  }

 protected:
  VolumeAttributes attributes_;
};

// Along one dimension: for each element of one side the range of the other that belongs to it.
std::vector<Range> Ranges(const Window& w, bool backward) {
  std::vector<Range> ranges(backward ? w.input : w.output);
  for (size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] =
        backward ? Covering(w, static_cast<int64_t>(i)) : Clipped(w, static_cast<int64_t>(i));
  }
  return ranges;
}

// Calls pool(boxes of `in`, where their results go) for all pixels of `out`, which are the outputs
// and the boxes their windows, or (`backward`) the inputs and the outputs that they belong to.
template <typename Pool>
void PoolBoxes(KernelContext& ctx, const VolumeWindows& w, bool backward, const Tensor& in,
               Tensor* out, Pool pool) {
  const std::vector<Range> planes = Ranges(w.planes, backward), rows = Ranges(w.rows, backward),
                           columns = Ranges(w.columns, backward);
  const int64_t in_rows = backward ? w.rows.output : w.rows.input;
  const int64_t row_step = w.channels * (backward ? w.columns.output : w.columns.input);
  const int64_t num_planes = static_cast<int64_t>(planes.size());
  const int64_t num_rows = static_cast<int64_t>(rows.size());
  const int64_t num_columns = static_cast<int64_t>(columns.size());
  const int64_t volume = (backward ? w.out_pixels() : w.in_pixels()) * w.channels;
  const int64_t size = ElementSize(in.type()), pixel_bytes = w.channels * ElementSize(out->type());
  // Inputs so far apart belong to as many outputs each.
  const int64_t period = backward ? w.columns.stride : 1;
  const double row_ns = 0.1 * PixelNs(w) * static_cast<double>(num_columns);
  ctx.ParallelFor(
      w.batch * num_planes * num_rows, KernelContext::GrainFor(row_ns),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Range z = planes[i / num_rows % num_planes], y = rows[i % num_rows];
          const int64_t first =
              i / num_rows / num_planes * volume + (z.begin * in_rows + y.begin) * row_step;
          for (int64_t phase = 0; phase < std::min(period, num_columns); ++phase) {
            for (int64_t x = phase, count; x < num_columns; x += count * period) {
              // Boxes of one size that lie at equal distances.
              const int64_t next = x + period;
              const int64_t step = next < num_columns ? columns[next].begin - columns[x].begin : 0;
              for (count = 1; x + count * period < num_columns; ++count) {
                const Range& other = columns[x + count * period];
                if (other.size() != columns[x].size()) break;
                if (other.begin != columns[x].begin + count * step) break;
              }
              pool(PixelBoxes{static_cast<const char*>(in.raw_data()) +
                                  (first + columns[x].begin * w.channels) * size,
                              z.size(), y.size(), columns[x].size(), in_rows * row_step, row_step,
                              w.channels, count, step * w.channels, period * w.channels},
                   static_cast<char*>(out->mutable_raw_data()) +
                       (i * num_columns + x) * pixel_bytes);
            }
          }
        }
      });
}

template <typename T>
void ScaledSums(const PixelBoxes& b, T factor, T* out) {
  for (int64_t i = 0; i < b.boxes; ++i, out += b.out_step) {
    std::fill_n(out, b.channels, T(0));
    for (int64_t z = 0; z < b.planes; ++z) {
      for (int64_t y = 0; y < b.rows; ++y) {
        const T* pixel =
            static_cast<const T*>(b.first) + i * b.box_step + z * b.plane_step + y * b.row_step;
        for (int64_t x = 0; x < b.columns; ++x, pixel += b.channels) {
          for (int64_t c = 0; c < b.channels; ++c) out[c] += pixel[c];
        }
      }
    }
    for (int64_t c = 0; c < b.channels; ++c) out[c] *= factor;
  }
}

class MaxPool3DKernel final : public VolumePoolKernel {
 public:
  using VolumePoolKernel::VolumePoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const VolumeWindows w, attributes_.Resolve(in.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, in.type(), w.output_shape(w.channels)));
    if (out->num_elements() == 0) return absl::OkStatus();
    const VolumePoolFunctions& functions = VolumePool(simd::TypeOf(in.type()));
    PoolBoxes(ctx, w, false, in, out,
              [&](const PixelBoxes& boxes, void* to) { functions.max(boxes, to); });
    return absl::OkStatus();
  }
};

// All elements of a window that equal the largest one get the gradient.
class MaxPool3DGradKernel final : public VolumePoolKernel {
 public:
  using VolumePoolKernel::VolumePoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &pooled = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const VolumeWindows w, attributes_.Resolve(in.shape()));
    const Shape want = w.output_shape(w.channels);
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("orig_output", pooled.shape(), want));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), want));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, gradient.type(), in.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    return SwitchType<float, half, bfloat16>(in.type(), [&]<typename In>() {
      return SwitchType<float, half, bfloat16>(gradient.type(), [&]<typename T>() {
        const double ns = 3 * PixelNs(w) * static_cast<double>(w.out_pixels());
        ctx.ParallelFor(w.batch, KernelContext::GrainFor(ns), [&](int64_t begin, int64_t end) {
          std::vector<float> sums(w.in_pixels() * w.channels);
          for (int64_t n = begin; n < end; ++n) {
            std::fill(sums.begin(), sums.end(), 0.0f);
            AddVolume(w, in.unchecked_data<In>() + n * w.in_pixels() * w.channels,
                      pooled.unchecked_data<In>() + n * w.out_pixels() * w.channels,
                      gradient.unchecked_data<T>() + n * w.out_pixels() * w.channels, sums.data());
            T* to = out->mutable_data<T>() + n * w.in_pixels() * w.channels;
            for (size_t i = 0; i < sums.size(); ++i) to[i] = T(sums[i]);
          }
        });
        return absl::OkStatus();
      });
    });
  }

 private:
  template <typename In, typename T>
  static void AddVolume(const VolumeWindows& w, const In* in, const In* pooled, const T* gradient,
                        float* sums) {
    for (int64_t o = 0; o < w.out_pixels(); ++o) {
      const In* largest = pooled + o * w.channels;
      const T* dy = gradient + o * w.channels;
      Box(w, o).ForPixels(w, [&](int64_t pixel) {
        const In* x = in + pixel * w.channels;
        float* dx = sums + pixel * w.channels;
        for (int64_t c = 0; c < w.channels; ++c) {
          dx[c] += x[c] == largest[c] ? static_cast<float>(dy[c]) : 0.0f;
        }
      });
    }
  }
};

// The first element of a window that equals the largest one gives its gradient.
class MaxPool3DGradGradKernel final : public VolumePoolKernel {
 public:
  using VolumePoolKernel::VolumePoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &pooled = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const VolumeWindows w, attributes_.Resolve(in.shape()));
    const Shape want = w.output_shape(w.channels);
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("orig_output", pooled.shape(), want));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), in.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), want));
    if (out->num_elements() == 0) return absl::OkStatus();
    return SwitchType<float, half, bfloat16>(in.type(), [&]<typename T>() {
      ctx.ParallelFor(w.batch * w.out_pixels(), KernelContext::GrainFor(3 * PixelNs(w)),
                      [&](int64_t begin, int64_t end) {
                        std::vector<char> found(w.channels);
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t volume = i / w.out_pixels() * w.in_pixels();
                          const T* largest = pooled.unchecked_data<T>() + i * w.channels;
                          T* to = out->mutable_data<T>() + i * w.channels;
                          std::fill_n(to, w.channels, T(0.0f));
                          std::fill(found.begin(), found.end(), 0);
                          Box(w, i % w.out_pixels()).ForPixels(w, [&](int64_t pixel) {
                            const int64_t at = (volume + pixel) * w.channels;
                            for (int64_t c = 0; c < w.channels; ++c) {
                              if (found[c] != 0 || in.unchecked_data<T>()[at + c] != largest[c])
                                continue;
                              to[c] = gradient.unchecked_data<T>()[at + c];
                              found[c] = 1;
                            }
                          });
                        }
                      });
      return absl::OkStatus();
    });
  }
};

class AvgPool3DKernel final : public VolumePoolKernel {
 public:
  using VolumePoolKernel::VolumePoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const VolumeWindows w, attributes_.Resolve(in.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, in.type(), w.output_shape(w.channels)));
    if (out->num_elements() == 0) return absl::OkStatus();
    PoolBoxes(ctx, w, false, in, out, [&](const PixelBoxes& boxes, void* to) {
      const int64_t count = boxes.planes * boxes.rows * boxes.columns;
      if (in.type() == ElementType::kDouble) {
        ScaledSums(boxes, 1.0 / static_cast<double>(count), static_cast<double*>(to));
      } else {
        VolumePool(simd::TypeOf(in.type())).scaled_sum(boxes, 1.0f / static_cast<float>(count), to);
      }
    });
    return absl::OkStatus();
  }
};

class AvgPool3DGradKernel final : public VolumePoolKernel {
 public:
  using VolumePoolKernel::VolumePoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& gradient = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "orig_input_shape"));
    TROUPE_ASSIGN_OR_RETURN(const VolumeWindows w, attributes_.Resolve(shape));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), w.output_shape(w.channels)));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, gradient.type(), shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (gradient.type() == ElementType::kDouble) return Spread<double>(ctx, w, gradient, out);
    if (!Overlap(w.planes) && !Overlap(w.rows) && !Overlap(w.columns)) {
      SpreadApart(ctx, w, gradient, out);
      return absl::OkStatus();
    }
    return Spread<float>(ctx, w, gradient, out);
  }

 private:
  static bool Overlap(const Window& w) { return w.stride < w.size; }

  // Where windows do not overlap an input has at most one output's gradient. Float and 16 bits.
  static void SpreadApart(KernelContext& ctx, const VolumeWindows& w, const Tensor& gradient,
                          Tensor* out) {
    const VolumePoolFunctions& functions = VolumePool(simd::TypeOf(out->type()));
    const int64_t pixel = w.channels * ElementSize(out->type());
    const int64_t row = w.columns.input * pixel;
    // Runs of outputs whose windows have as many columns, and whether these are all columns.
    const std::vector<Range> columns = Ranges(w.columns, false);
    int64_t covered = 0;
    for (const Range& range : columns) covered += range.size();
    ctx.ParallelFor(
        w.batch * w.planes.input * w.rows.input,
        KernelContext::GrainFor(0.05 * static_cast<double>(row)), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t y = i % w.rows.input, z = i / w.rows.input % w.planes.input;
            const int64_t n = i / w.rows.input / w.planes.input;
            char* to = static_cast<char*>(out->mutable_raw_data()) + i * row;
            const Range from_z = Covering(w.planes, z), from_y = Covering(w.rows, y);
            const bool reached = from_z.size() > 0 && from_y.size() > 0;
            if (!reached || covered < w.columns.input) {
              std::memset(to, 0, static_cast<size_t>(row));
            }
            if (!reached) continue;
            const int64_t pixels =
                Clipped(w.planes, from_z.begin).size() * Clipped(w.rows, from_y.begin).size();
            const char* from =
                static_cast<const char*>(gradient.raw_data()) +
                ((n * w.planes.output + from_z.begin) * w.rows.output + from_y.begin) *
                    w.columns.output * pixel;
            for (int64_t x = 0, count; x < w.columns.output; x += count) {
              const int64_t size = columns[x].size();
              for (count = 1; x + count < w.columns.output; ++count) {
                if (columns[x + count].size() != size) break;
              }
              if (size == 0) continue;
              functions.spread(from + x * pixel, 1.0f / static_cast<float>(pixels * size),
                               {size, w.channels, count, w.columns.stride * w.channels},
                               to + columns[x].begin * pixel);
            }
          }
        });
  }

  // Sums of T: each output's gradient is divided among its window, and each input adds up its
  // parts.
  template <typename T>
  static absl::Status Spread(KernelContext& ctx, const VolumeWindows& w, const Tensor& gradient,
                             Tensor* out) {
    TROUPE_ASSIGN_OR_RETURN(Tensor parts,
                            ctx.AllocateTemp(kElementType<T>, w.output_shape(w.channels)));
    const ElementType type = gradient.type();
    const simd::UnaryFn widen = type == kElementType<T> ? nullptr : FindCast(type, kElementType<T>);
    const simd::UnaryFn narrow =
        type == kElementType<T> ? nullptr : FindCast(kElementType<T>, type);
    const simd::BinaryFn multiply = FindBinary(simd::kMul, kElementType<T>).as;
    const std::vector<Range> columns = Ranges(w.columns, false);
    const int64_t row = w.columns.output * w.channels;
    ctx.ParallelFor(
        w.batch * w.planes.output * w.rows.output,
        KernelContext::GrainFor(static_cast<double>(row)), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t pixels = Clipped(w.rows, i % w.rows.output).size() *
                                   Clipped(w.planes, i / w.rows.output % w.planes.output).size();
            const void* from =
                static_cast<const char*>(gradient.raw_data()) + i * row * ElementSize(type);
            T* to = parts.mutable_data<T>() + i * row;
            if (widen != nullptr) {
              widen(from, to, row);
              from = to;
            }
            for (int64_t x = 0, count; x < w.columns.output; x += count) {
              for (count = 1; x + count < w.columns.output; ++count) {
                if (columns[x + count].size() != columns[x].size()) break;
              }
              const T factor = T(1) / static_cast<T>(pixels * columns[x].size());
              multiply(static_cast<const T*>(from) + x * w.channels, &factor, to + x * w.channels,
                       count * w.channels);
            }
          }
        });
    PoolBoxes(ctx, w, true, parts, out, [&](const PixelBoxes& boxes, void* to) {
      if constexpr (std::is_same_v<T, double>) {
        ScaledSums(boxes, 1.0, static_cast<double*>(to));
      } else if (narrow == nullptr) {
        VolumePool(simd::kF32).scaled_sum(boxes, 1, to);
      } else {
        const int64_t bytes = boxes.out_step * ElementSize(type);
        std::vector<float> wide(boxes.boxes * boxes.channels);
        PixelBoxes packed = boxes;
        packed.out_step = boxes.channels;
        VolumePool(simd::kF32).scaled_sum(packed, 1, wide.data());
        for (int64_t i = 0; i < boxes.boxes; ++i) {
          narrow(wide.data() + i * boxes.channels, static_cast<char*>(to) + i * bytes,
                 boxes.channels);
        }
      }
    });
    return absl::OkStatus();
  }
};

// The patch at an output pixel, numbered within a volume.
template <typename T>
void FillPatch(const VolumeWindows& w, int64_t pixel, const T* volume, T* out) {
  const auto first = [](const Window& window, int64_t position) {
    return position * window.stride - window.pad_before;
  };
  const auto is_inside = [](const Window& window, int64_t at) {
    return at >= 0 && at < window.input;
  };
  const int64_t z0 = first(w.planes, pixel / w.columns.output / w.rows.output);
  const int64_t y0 = first(w.rows, pixel / w.columns.output % w.rows.output);
  const int64_t x0 = first(w.columns, pixel % w.columns.output);
  for (int64_t z = z0; z < z0 + w.planes.size; ++z) {
    for (int64_t y = y0; y < y0 + w.rows.size; ++y) {
      for (int64_t x = x0; x < x0 + w.columns.size; ++x) {
        if (is_inside(w.planes, z) && is_inside(w.rows, y) && is_inside(w.columns, x)) {
          const int64_t at = (z * w.rows.input + y) * w.columns.input + x;
          out = std::copy_n(volume + at * w.channels, w.channels, out);
        } else {
          out = std::fill_n(out, w.channels, T());
        }
      }
    }
  }
}

const std::vector<ElementType>& MaxTypes() {
  static const auto* types =
      new std::vector<ElementType>{ElementType::kHalf, ElementType::kBfloat16, ElementType::kFloat};
  return *types;
}

REGISTER_KERNEL(KernelSpec("MaxPool3D").Types("T", MaxTypes()), MakeKernel<MaxPool3DKernel>);
REGISTER_KERNEL(KernelSpec("MaxPool3DGrad").Types("T", MaxTypes()).Types("TInput", MaxTypes()),
                MakeKernel<MaxPool3DGradKernel>);
REGISTER_KERNEL(KernelSpec("MaxPool3DGradGrad").Types("T", MaxTypes()),
                MakeKernel<MaxPool3DGradGradKernel>);
REGISTER_KERNEL(KernelSpec("AvgPool3D").Types("T", FloatTypes()), MakeKernel<AvgPool3DKernel>);
REGISTER_KERNEL(KernelSpec("AvgPool3DGrad").Types("T", FloatTypes()),
                MakeKernel<AvgPool3DGradKernel>);
REGISTER_KERNEL(KernelSpec("ExtractVolumePatches").Types("T", RealNumberTypes()),
                ExtractVolumePatches);

}  // namespace

absl::Status FillVolumePatches(KernelContext& ctx, const VolumeWindows& w, const Tensor& in,
                               Tensor* out) {
  const int64_t patch = w.window_pixels() * w.channels;
  return SwitchBySize(in.type(), [&]<typename T>() {
    const T* from = static_cast<const T*>(in.raw_data());
    T* to = static_cast<T*>(out->mutable_raw_data());
    ctx.ParallelFor(w.batch * w.out_pixels(), KernelContext::GrainFor(PixelNs(w)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        FillPatch(w, i % w.out_pixels(),
                                  from + i / w.out_pixels() * w.in_pixels() * w.channels,
                                  to + i * patch);
                      }
                    });
    return absl::OkStatus();
  });
}

}  // namespace troupe
