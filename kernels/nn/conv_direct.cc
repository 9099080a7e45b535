// Convolutions of several groups by loops, for types without a library. The innermost loop runs
// over the output's depth, where both the filter and the result are contiguous.
#include <algorithm>
#include <vector>

#include "kernels/nn/conv_loops.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {
namespace {

template <typename T>
void AddScaled(T x, const T* in, int64_t n, T* out) {
  using U = Term<T>;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<T>(static_cast<U>(out[i]) + static_cast<U>(x) * static_cast<U>(in[i]));
  }
}

template <typename T>
T Dot(const T* a, const T* b, int64_t n) {
  using U = Term<T>;
  U sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<U>(a[i]) * static_cast<U>(b[i]);
  return static_cast<T>(sum);
}

// What one element of the window adds: a pixel of depth in_depth, times its part of the filter, to
// one of depth out_depth.
template <typename T>
void AddToOutput(const ConvShape& s, const T* in, const T* filter, T* out) {
  using U = Term<T>;
  const int64_t depth = s.filter_depth(), group_out = s.out_depth / s.groups;
  if (depth == 1 && group_out == 1) {
    for (int64_t i = 0; i < s.out_depth; ++i) {
      out[i] = static_cast<T>(static_cast<U>(out[i]) +
                              static_cast<U>(in[i]) * static_cast<U>(filter[i]));
    }
    return;
  }
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t d = 0; d < depth; ++d) {
      AddScaled(in[g * depth + d], filter + d * s.out_depth + g * group_out, group_out,
                out + g * group_out);
    }
  }
}

// The same backwards: the gradient of the output's pixel, times the filter, to that of the input's.
template <typename T>
void AddToInput(const ConvShape& s, const T* out, const T* filter, T* in) {
  const int64_t depth = s.filter_depth(), group_out = s.out_depth / s.groups;
  if (depth == 1 && group_out == 1) return AddToOutput(s, out, filter, in);
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t d = 0; d < depth; ++d) {
      in[g * depth + d] +=
          Dot(filter + d * s.out_depth + g * group_out, out + g * group_out, group_out);
    }
  }
}

// And to the filter's.
template <typename T>
void AddToFilter(const ConvShape& s, const T* in, const T* out, T* filter) {
  const int64_t depth = s.filter_depth(), group_out = s.out_depth / s.groups;
  if (depth == 1 && group_out == 1) return AddToOutput(s, in, out, filter);
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t d = 0; d < depth; ++d) {
      AddScaled(in[g * depth + d], out + g * group_out, group_out,
                filter + d * s.out_depth + g * group_out);
    }
  }
}

}  // namespace

template <typename T>
void DirectConvForward(KernelContext& ctx, const ConvShape& s, const T* input, const T* filter,
                       T* output) {
  const int64_t pixels = s.output_pixels(), tap_size = s.filter_depth() * s.out_depth;
  const int64_t image_size = s.input_pixels() * s.in_depth;
  ctx.ParallelFor(s.batch * pixels,
                  KernelContext::GrainFor(s.image_products() / static_cast<double>(pixels)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const T* image = input + i / pixels * image_size;
                      T* out = output + i * s.out_depth;
                      std::fill(out, out + s.out_depth, T(0));
                      ForWindow(s, i % pixels, [&](int64_t from, int64_t tap) {
                        AddToOutput(s, image + from * s.in_depth, filter + tap * tap_size, out);
                      });
                    }
                  });
}

template <typename T>
void DirectConvBackwardInput(KernelContext& ctx, const ConvShape& s, const T* filter,
                             const T* output_gradient, T* input_gradient) {
  const int64_t pixels = s.output_pixels(), tap_size = s.filter_depth() * s.out_depth;
  const int64_t image_size = s.input_pixels() * s.in_depth;
  ctx.ParallelFor(s.batch, KernelContext::GrainFor(s.image_products()),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t n = begin; n < end; ++n) {
                      T* image = input_gradient + n * image_size;
                      std::fill(image, image + image_size, T(0));
                      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
                        const T* out = output_gradient + (n * pixels + pixel) * s.out_depth;
                        ForWindow(s, pixel, [&](int64_t to, int64_t tap) {
                          AddToInput(s, out, filter + tap * tap_size, image + to * s.in_depth);
                        });
                      }
                    }
                  });
}

template <typename T>
void DirectConvBackwardFilter(KernelContext& ctx, const ConvShape& s, const T* input,
                              const T* output_gradient, T* filter_gradient) {
  const int64_t pixels = s.output_pixels(), tap_size = s.filter_depth() * s.out_depth;
  const int64_t image_size = s.input_pixels() * s.in_depth;
  const int64_t rows = s.planes.size * s.rows.size;
  const double row_ns =
      s.image_products() * static_cast<double>(s.batch) / static_cast<double>(rows);
  // Every row of the window is a sum of its own.
  ctx.ParallelFor(rows, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      // The part of the window that is this row alone.
      ConvShape part = s;
      part.planes.pad_before -= row / s.rows.size * s.planes.dilation;
      part.rows.pad_before -= row % s.rows.size * s.rows.dilation;
      part.planes.size = part.rows.size = 1;
      T* f = filter_gradient + row * s.columns.size * tap_size;
      std::fill(f, f + s.columns.size * tap_size, T(0));
      for (int64_t i = 0; i < s.batch * pixels; ++i) {
        const T* image = input + i / pixels * image_size;
        ForWindow(part, i % pixels, [&](int64_t from, int64_t tap) {
          AddToFilter(s, image + from * s.in_depth, output_gradient + i * s.out_depth,
                      f + tap * tap_size);
        });
      }
    }
  });
}

#define TROUPE_INSTANTIATE(T)                                                                     \
  template void DirectConvForward<T>(KernelContext&, const ConvShape&, const T*, const T*, T*);   \
  template void DirectConvBackwardInput<T>(KernelContext&, const ConvShape&, const T*, const T*,  \
                                           T*);                                                   \
  template void DirectConvBackwardFilter<T>(KernelContext&, const ConvShape&, const T*, const T*, \
                                            T*);
TROUPE_INSTANTIATE(double)
TROUPE_INSTANTIATE(int32_t)
#undef TROUPE_INSTANTIATE

}  // namespace troupe
