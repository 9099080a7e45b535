// Convolutions by loops, for types without a library. The innermost loop runs over the output's
// depth, where both the filter and the result are contiguous.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/nn/conv_shape.h"

namespace troupe {
namespace {

// Integers wrap.
template <typename T>
using Term = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                         std::type_identity<T>>::type;

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

// Calls `visit(input row, input column, filter row, filter column)` for the elements of the window
// at (row, column) that lie inside the input.
template <typename Visit>
void ForWindow(const ConvShape& s, int64_t row, int64_t column, Visit visit) {
  for (int64_t r = 0; r < s.rows.size; ++r) {
    const int64_t y = row * s.rows.stride - s.rows.pad_before + r * s.rows.dilation;
    if (y < 0 || y >= s.rows.input) continue;
    for (int64_t c = 0; c < s.columns.size; ++c) {
      const int64_t x = column * s.columns.stride - s.columns.pad_before + c * s.columns.dilation;
      if (x >= 0 && x < s.columns.input) visit(y, x, r, c);
    }
  }
}

}  // namespace

template <typename T>
void DirectConvForward(KernelContext& ctx, const ConvShape& s, const T* input, const T* filter,
                       T* output) {
  const int64_t depth = s.filter_depth(), group_out = s.out_depth / s.groups;
  const double row_ns = s.image_products() / static_cast<double>(s.rows.output);
  ctx.ParallelFor(
      s.batch * s.rows.output, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* image = input + i / s.rows.output * s.rows.input * s.columns.input * s.in_depth;
          for (int64_t column = 0; column < s.columns.output; ++column) {
            T* out = output + (i * s.columns.output + column) * s.out_depth;
            std::fill(out, out + s.out_depth, T(0));
            ForWindow(s, i % s.rows.output, column,
                      [&](int64_t y, int64_t x, int64_t r, int64_t c) {
                        const T* in = image + (y * s.columns.input + x) * s.in_depth;
                        const T* f = filter + (r * s.columns.size + c) * depth * s.out_depth;
                        for (int64_t g = 0; g < s.groups; ++g) {
                          for (int64_t d = 0; d < depth; ++d) {
                            AddScaled(in[g * depth + d], f + d * s.out_depth + g * group_out,
                                      group_out, out + g * group_out);
                          }
                        }
                      });
          }
        }
      });
}

template <typename T>
void DirectConvBackwardInput(KernelContext& ctx, const ConvShape& s, const T* filter,
                             const T* output_gradient, T* input_gradient) {
  const int64_t depth = s.filter_depth(), group_out = s.out_depth / s.groups;
  const int64_t image_size = s.rows.input * s.columns.input * s.in_depth;
  ctx.ParallelFor(
      s.batch, KernelContext::GrainFor(s.image_products()), [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          T* image = input_gradient + n * image_size;
          std::fill(image, image + image_size, T(0));
          for (int64_t row = 0; row < s.rows.output; ++row) {
            for (int64_t column = 0; column < s.columns.output; ++column) {
              const T* out = output_gradient +
                             ((n * s.rows.output + row) * s.columns.output + column) * s.out_depth;
              ForWindow(s, row, column, [&](int64_t y, int64_t x, int64_t r, int64_t c) {
                T* in = image + (y * s.columns.input + x) * s.in_depth;
                const T* f = filter + (r * s.columns.size + c) * depth * s.out_depth;
                for (int64_t g = 0; g < s.groups; ++g) {
                  for (int64_t d = 0; d < depth; ++d) {
                    in[g * depth + d] +=
                        Dot(f + d * s.out_depth + g * group_out, out + g * group_out, group_out);
                  }
                }
              });
            }
          }
        }
      });
}

template <typename T>
void DirectConvBackwardFilter(KernelContext& ctx, const ConvShape& s, const T* input,
                              const T* output_gradient, T* filter_gradient) {
  const int64_t depth = s.filter_depth(), group_out = s.out_depth / s.groups;
  const int64_t tap_size = depth * s.out_depth;
  const double tap_ns = s.image_products() * static_cast<double>(s.batch) /
                        static_cast<double>(s.rows.size * s.columns.size);
  // Every element of the window is a sum of its own.
  ctx.ParallelFor(
      s.rows.size * s.columns.size, KernelContext::GrainFor(tap_ns),
      [&](int64_t begin, int64_t end) {
        for (int64_t tap = begin; tap < end; ++tap) {
          T* f = filter_gradient + tap * tap_size;
          std::fill(f, f + tap_size, T(0));
          for (int64_t i = 0; i < s.batch * s.rows.output; ++i) {
            const int64_t y = i % s.rows.output * s.rows.stride - s.rows.pad_before +
                              tap / s.columns.size * s.rows.dilation;
            if (y < 0 || y >= s.rows.input) continue;
            for (int64_t column = 0; column < s.columns.output; ++column) {
              const int64_t x = column * s.columns.stride - s.columns.pad_before +
                                tap % s.columns.size * s.columns.dilation;
              if (x < 0 || x >= s.columns.input) continue;
              const T* in = input + ((i / s.rows.output * s.rows.input + y) * s.columns.input + x) *
                                        s.in_depth;
              const T* out = output_gradient + (i * s.columns.output + column) * s.out_depth;
              for (int64_t g = 0; g < s.groups; ++g) {
                for (int64_t d = 0; d < depth; ++d) {
                  AddScaled(in[g * depth + d], out + g * group_out, group_out,
                            f + d * s.out_depth + g * group_out);
                }
              }
            }
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
