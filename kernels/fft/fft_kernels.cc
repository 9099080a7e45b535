// FFT, IFFT, RFFT, IRFFT and their two- and three-dimensional forms: transforms of lines, one
// dimension after the other. Several lines are transformed at once, so that registers are full.
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/strided_copy.h"
#include "kernels/fft/plan.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// The lines along one dimension of a tensor of shape [outer, n, inner]. Of one element of a line
/// to the next it is `inner` elements.
struct Lines {
  /// Dimension d of `dims`.
  static Lines Along(absl::Span<const int64_t> dims, int d) {
    Lines lines;
    for (int i = 0; i < d; ++i) lines.outer *= dims[i];
    for (int i = d + 1; i < static_cast<int>(dims.size()); ++i) lines.inner *= dims[i];
    return lines;
  }
  int64_t outer = 1, inner = 1;
};

/// Some lines that are transformed at once: those from (outer, inner) on, along the dimension that
/// has several.
struct Block {
  /// Where the first line begins in a tensor whose lines have n elements, and how far the others
  /// are apart.
  int64_t Begin(const Lines& all, int64_t n) const { return outer * n * all.inner + inner; }
  int64_t Apart(const Lines& all, int64_t n) const { return all.inner == 1 ? n : 1; }
  int64_t outer, inner, lines;
};

/// The two parts of complex numbers.
template <typename R>
struct Parts {
  /// For the inverse transform.
  Parts Exchanged() const { return {im, re}; }
  R *re, *im;
};

/// Bytes of the buffers of a block: they should stay in the second-level cache.
constexpr int64_t kBlockBytes = 256 << 10;

/// Transforms all lines: `load(block, parts)` brings the lines of a block, number k of line l being
/// element k * block.lines + l, `store` takes the results from there.
template <typename R, typename Load, typename Store>
void TransformLines(KernelContext& ctx, const FftPlan<R>& plan, const Lines& all, Load load,
                    Store store) {
  const int64_t size = plan.BufferSize();
  const int64_t side_by_side = all.inner == 1 ? all.outer : all.inner;
  const int64_t most = 64 / static_cast<int64_t>(sizeof(R));  // A register, or a cache line.
  const int64_t fitting = kBlockBytes / (4 * static_cast<int64_t>(sizeof(R)) * size);
  const int64_t lines = std::min(side_by_side, std::clamp<int64_t>(fitting, 1, most));
  const int64_t blocks_in_row = (side_by_side + lines - 1) / lines;
  const int64_t blocks = all.inner == 1 ? blocks_in_row : all.outer * blocks_in_row;
  const double ns =
      20 + static_cast<double>(size * lines) * (1 + 0.3 * std::log2(static_cast<double>(size)));
  ctx.ParallelFor(blocks, KernelContext::GrainFor(ns), [&](int64_t begin, int64_t end) {
    const std::unique_ptr<R[]> buffer(new R[4 * size * lines]);
    const Parts<R> parts = {buffer.get(), buffer.get() + size * lines};
    const Parts<R> spare = {parts.im + size * lines, parts.im + 2 * size * lines};
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks_in_row * lines;
      const Block block = {all.inner == 1 ? first : b / blocks_in_row, all.inner == 1 ? 0 : first,
                           std::min(lines, side_by_side - first)};
      load(block, parts);
      plan.Run(block.lines, parts.re, parts.im, spare.re, spare.im);
      store(block, parts);
    }
  });
}

/// Complex numbers, from lines of n elements at `in` to lines at `out`, which may be `in`.
template <typename R>
void TransformComplex(KernelContext& ctx, const Lines& all, int64_t n, bool forward,
                      const std::complex<R>* in, std::complex<R>* out) {
  const auto plan = FftPlan<R>::For(n);
  const R scale = forward ? R(1) : static_cast<R>(1.0 / static_cast<double>(n));
  TransformLines(
      ctx, *plan, all,
      [&](const Block& block, Parts<R> to) {
        if (!forward) to = to.Exchanged();
        const std::complex<R>* from = in + block.Begin(all, n);
        const int64_t apart = block.Apart(all, n);
        for (int64_t k = 0; k < n; ++k) {
          for (int64_t l = 0; l < block.lines; ++l) {
            const std::complex<R> x = from[k * all.inner + l * apart];
            to.re[k * block.lines + l] = x.real();
            to.im[k * block.lines + l] = x.imag();
          }
        }
      },
      [&](const Block& block, Parts<R> from) {
        if (!forward) from = from.Exchanged();
        std::complex<R>* to = out + block.Begin(all, n);
        const int64_t apart = block.Apart(all, n);
        for (int64_t k = 0; k < n; ++k) {
          for (int64_t l = 0; l < block.lines; ++l) {
            const int64_t at = k * block.lines + l;
            to[k * all.inner + l * apart] = {from.re[at] * scale, from.im[at] * scale};
          }
        }
      });
}

/// `count` lines of an even number n of real numbers, from lines `in_step` apart. Even and odd ones
/// are the parts of n / 2 complex numbers.
template <typename R>
void TransformEvenReal(KernelContext& ctx, int64_t count, int64_t n, const R* in, int64_t in_step,
                       std::complex<R>* out) {
  const int64_t half = n / 2;
  const auto plan = FftPlan<R>::For(half);
  TransformLines(
      ctx, *plan, Lines{count, 1},
      [&](const Block& block, Parts<R> to) {
        for (int64_t k = 0; k < half; ++k) {
          for (int64_t l = 0; l < block.lines; ++l) {
            const R* from = in + (block.outer + l) * in_step + 2 * k;
            to.re[k * block.lines + l] = from[0];
            to.im[k * block.lines + l] = from[1];
          }
        }
      },
      [&](const Block& block, Parts<R> from) {
        for (int64_t k = 0; k <= half; ++k) {
          const R w_re = plan->half_root_re(k), w_im = plan->half_root_im(k);
          const int64_t a = (k == half ? 0 : k) * block.lines;
          const int64_t b = (k == 0 ? 0 : half - k) * block.lines;
          for (int64_t l = 0; l < block.lines; ++l) {
            // The transforms of the even and of the odd numbers.
            const R even_re = from.re[a + l] + from.re[b + l];
            const R even_im = from.im[a + l] - from.im[b + l];
            const R odd_re = from.im[a + l] + from.im[b + l];
            const R odd_im = from.re[b + l] - from.re[a + l];
            out[(block.outer + l) * (half + 1) + k] = {
                R(0.5) * (even_re + w_re * odd_re - w_im * odd_im),
                R(0.5) * (even_im + w_re * odd_im + w_im * odd_re)};
          }
        }
      });
}

/// The inverse, from lines of n / 2 + 1 complex numbers. Imaginary parts of the first and the last
/// one are not read.
template <typename R>
void InvertEvenReal(KernelContext& ctx, int64_t count, int64_t n, const std::complex<R>* in,
                    R* out) {
  const int64_t half = n / 2;
  const auto plan = FftPlan<R>::For(half);
  const R scale = static_cast<R>(1.0 / static_cast<double>(n));
  TransformLines(
      ctx, *plan, Lines{count, 1},
      [&](const Block& block, Parts<R> to) {
        to = to.Exchanged();
        for (int64_t k = 0; k < half; ++k) {
          const R w_re = plan->half_root_re(k), w_im = -plan->half_root_im(k);
          for (int64_t l = 0; l < block.lines; ++l) {
            const std::complex<R>* from = in + (block.outer + l) * (half + 1);
            std::complex<R> a = from[k], b = from[half - k];
            if (k == 0) {
              a = a.real();
              b = b.real();
            }
            const R even_re = a.real() + b.real(), even_im = a.imag() - b.imag();
            const R dif_re = a.real() - b.real(), dif_im = a.imag() + b.imag();
            const R odd_re = dif_re * w_re - dif_im * w_im, odd_im = dif_re * w_im + dif_im * w_re;
            to.re[k * block.lines + l] = even_re - odd_im;
            to.im[k * block.lines + l] = even_im + odd_re;
          }
        }
      },
      [&](const Block& block, Parts<R> from) {
        from = from.Exchanged();
        for (int64_t k = 0; k < half; ++k) {
          for (int64_t l = 0; l < block.lines; ++l) {
            R* to = out + (block.outer + l) * n + 2 * k;
            to[0] = from.re[k * block.lines + l] * scale;
            to[1] = from.im[k * block.lines + l] * scale;
          }
        }
      });
}

/// Two lines of an odd number n of real numbers are the parts of n complex ones.
template <typename R>
void TransformOddReal(KernelContext& ctx, int64_t count, int64_t n, const R* in, int64_t in_step,
                      std::complex<R>* out) {
  const int64_t half = n / 2;
  const auto plan = FftPlan<R>::For(n);
  TransformLines(
      ctx, *plan, Lines{(count + 1) / 2, 1},
      [&](const Block& block, Parts<R> to) {
        for (int64_t l = 0; l < block.lines; ++l) {
          const int64_t line = 2 * (block.outer + l);
          const R* from = in + line * in_step;
          for (int64_t k = 0; k < n; ++k) {
            to.re[k * block.lines + l] = from[k];
            to.im[k * block.lines + l] = line + 1 < count ? from[in_step + k] : R(0);
          }
        }
      },
      [&](const Block& block, Parts<R> from) {
        for (int64_t l = 0; l < block.lines; ++l) {
          const int64_t line = 2 * (block.outer + l);
          std::complex<R>* to = out + line * (half + 1);
          for (int64_t k = 0; k <= half; ++k) {
            const int64_t a = k * block.lines + l, b = (k == 0 ? 0 : n - k) * block.lines + l;
            to[k] = {R(0.5) * (from.re[a] + from.re[b]), R(0.5) * (from.im[a] - from.im[b])};
            if (line + 1 == count) continue;
            to[half + 1 + k] = {R(0.5) * (from.im[a] + from.im[b]),
                                R(0.5) * (from.re[b] - from.re[a])};
          }
        }
      });
}

template <typename R>
void InvertOddReal(KernelContext& ctx, int64_t count, int64_t n, const std::complex<R>* in,
                   R* out) {
  const int64_t half = n / 2;
  const auto plan = FftPlan<R>::For(n);
  const R scale = static_cast<R>(1.0 / static_cast<double>(n));
  TransformLines(
      ctx, *plan, Lines{(count + 1) / 2, 1},
      [&](const Block& block, Parts<R> to) {
        to = to.Exchanged();
        for (int64_t l = 0; l < block.lines; ++l) {
          const int64_t line = 2 * (block.outer + l);
          const std::complex<R>* from = in + line * (half + 1);
          for (int64_t k = 0; k <= half; ++k) {
            std::complex<R> x = from[k], y = line + 1 < count ? from[half + 1 + k] : R(0);
            if (k == 0) {
              x = x.real();
              y = y.real();
            }
            // x + i y, and the same of the conjugates.
            const int64_t a = k * block.lines + l, b = (k == 0 ? 0 : n - k) * block.lines + l;
            to.re[b] = x.real() + y.imag();
            to.im[b] = y.real() - x.imag();
            to.re[a] = x.real() - y.imag();
            to.im[a] = x.imag() + y.real();
          }
        }
      },
      [&](const Block& block, Parts<R> from) {
        from = from.Exchanged();
        for (int64_t l = 0; l < block.lines; ++l) {
          const int64_t line = 2 * (block.outer + l);
          for (int64_t k = 0; k < n; ++k) {
            out[line * n + k] = from.re[k * block.lines + l] * scale;
            if (line + 1 < count) out[(line + 1) * n + k] = from.im[k * block.lines + l] * scale;
          }
        }
      });
}

absl::Status CheckRank(const Shape& input, int rank) {
  if (input.rank() >= rank) return absl::OkStatus();
  return InvalidArgument("the input must have at least ", rank, " dimensions, got shape ",
                         input.ToString());
}

template <int kRank, bool kForward>
absl::Status ComplexTransform(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Shape shape = input.shape();
  TROUPE_RETURN_IF_ERROR(CheckRank(shape, kRank));
  const void* const from = input.raw_data();
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  if (shape.num_elements() == 0) return absl::OkStatus();
  return SwitchType<complex64, complex128>(out->type(), [&]<typename T>() -> absl::Status {
    const T* in = static_cast<const T*>(from);
    T* to = out->mutable_data<T>();
    for (int d = shape.rank() - 1; d >= shape.rank() - kRank; --d) {
      TransformComplex(ctx, Lines::Along(shape.dims(), d), shape.dim(d), kForward, in, to);
      in = to;
    }
    return absl::OkStatus();
  });
}

/// The sizes of the real side, from the input `fft_length`.
absl::StatusOr<DimVector> ReadLengths(const Tensor& lengths, int rank) {
  if (lengths.rank() != 1 || lengths.num_elements() != rank) {
    return InvalidArgument("fft_length must be a vector of ", rank, " sizes, got shape ",
                           lengths.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegers(lengths, "fft_length"));
  for (const int64_t size : sizes) {
    if (size < 0) return InvalidArgument("fft_length must not be negative, got ", size);
  }
  return sizes;
}

/// The batch dimensions of `input`, then `sizes`.
DimVector BatchAnd(const Shape& input, absl::Span<const int64_t> sizes) {
  DimVector dims(input.dims().begin(), input.dims().end() - sizes.size());
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  return dims;
}

/// The first elements of `input` along its innermost dimensions, of which it must have as many as
/// `dims` says, or, as in TensorFlow, none: the input itself, or a copy.
absl::StatusOr<Tensor> Cropped(KernelContext& ctx, const Tensor& input,
                               absl::Span<const int64_t> dims) {
  for (int d = 0; d < input.rank(); ++d) {
    if (input.dim(d) < dims[d] && input.dim(d) != 0) {
      return InvalidArgument("dimension ", d, " of the input of shape ", input.shape().ToString(),
                             " must have at least the ", dims[d],
                             " elements that fft_length asks for");
    }
  }
  if (input.shape().dims() == dims || input.num_elements() == 0) return input;
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(input.type(), shape));
  StridedCopy(ctx, input.type(), dims, copy.mutable_raw_data(), RowMajorStrides(dims),
              input.raw_data(), RowMajorStrides(input.shape().dims()));
  return copy;
}

template <int kRank>
absl::Status RealTransform(KernelContext& ctx, ElementType complex_type) {
  const Tensor& input = ctx.input(0);
  TROUPE_RETURN_IF_ERROR(CheckRank(input.shape(), kRank));
  TROUPE_ASSIGN_OR_RETURN(const DimVector sizes, ReadLengths(ctx.input(1), kRank));
  const DimVector in_dims = BatchAnd(input.shape(), sizes);
  const int64_t n = sizes.back();
  DimVector dims = in_dims;
  dims.back() = n == 0 ? 0 : n / 2 + 1;
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, complex_type, shape));
  TROUPE_ASSIGN_OR_RETURN(const Tensor cropped, Cropped(ctx, input, in_dims));
  if (input.num_elements() == 0) {
    ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
    return absl::OkStatus();
  }
  if (shape.num_elements() == 0) return absl::OkStatus();
  return SwitchType<float, double>(input.type(), [&]<typename R>() -> absl::Status {
    const R* in = cropped.template unchecked_data<R>();
    std::complex<R>* to = out->mutable_data<std::complex<R>>();
    const int64_t count = shape.num_elements() / dims.back();
    n % 2 == 0 ? TransformEvenReal(ctx, count, n, in, n, to)
               : TransformOddReal(ctx, count, n, in, n, to);
    for (int d = shape.rank() - 2; d >= shape.rank() - kRank; --d) {
      TransformComplex(ctx, Lines::Along(dims, d), dims[d], true, to, to);
    }
    return absl::OkStatus();
  });
}

template <int kRank>
absl::Status InverseRealTransform(KernelContext& ctx, ElementType real_type) {
  const Tensor& input = ctx.input(0);
  TROUPE_RETURN_IF_ERROR(CheckRank(input.shape(), kRank));
  TROUPE_ASSIGN_OR_RETURN(const DimVector sizes, ReadLengths(ctx.input(1), kRank));
  const DimVector dims = BatchAnd(input.shape(), sizes);
  const int64_t n = sizes.back();
  DimVector in_dims = dims;
  in_dims.back() = n == 0 ? 0 : n / 2 + 1;
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, real_type, shape));
  TROUPE_ASSIGN_OR_RETURN(const Tensor cropped, Cropped(ctx, input, in_dims));
  if (input.num_elements() == 0) {
    ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
    return absl::OkStatus();
  }
  if (shape.num_elements() == 0) return absl::OkStatus();
  return SwitchType<float, double>(real_type, [&]<typename R>() -> absl::Status {
    const std::complex<R>* in = cropped.template unchecked_data<std::complex<R>>();
    Tensor between;  // The outer dimensions' results, if there are any.
    if (kRank > 1) {
      TROUPE_ASSIGN_OR_RETURN(between, ctx.AllocateTemp(input.type(), cropped.shape()));
      std::complex<R>* to = between.template mutable_data<std::complex<R>>();
      for (int d = shape.rank() - 2; d >= shape.rank() - kRank; --d) {
        TransformComplex(ctx, Lines::Along(in_dims, d), dims[d], false, in, to);
        in = to;
      }
    }
    const int64_t count = shape.num_elements() / n;
    R* to = out->mutable_data<R>();
    n % 2 == 0 ? InvertEvenReal(ctx, count, n, in, to) : InvertOddReal(ctx, count, n, in, to);
    return absl::OkStatus();
  });
}

KernelSpec OfComplex(const char* op) {
  return KernelSpec(op)
      .Types("Tcomplex", {ElementType::kComplex64, ElementType::kComplex128})
      .Cost(KernelCost::kExpensive);
}
/// The two types must be of one precision.
KernelSpec OfReal(const char* op, ElementType real, ElementType complex) {
  return KernelSpec(op)
      .Types("Treal", {real})
      .Types("Tcomplex", {complex})
      .Cost(KernelCost::kExpensive);
}

REGISTER_KERNEL(OfComplex("FFT"), (MakeKernel<ComplexTransform<1, true>>));
REGISTER_KERNEL(OfComplex("FFT2D"), (MakeKernel<ComplexTransform<2, true>>));
REGISTER_KERNEL(OfComplex("FFT3D"), (MakeKernel<ComplexTransform<3, true>>));
REGISTER_KERNEL(OfComplex("IFFT"), (MakeKernel<ComplexTransform<1, false>>));
REGISTER_KERNEL(OfComplex("IFFT2D"), (MakeKernel<ComplexTransform<2, false>>));
REGISTER_KERNEL(OfComplex("IFFT3D"), (MakeKernel<ComplexTransform<3, false>>));

#define TROUPE_REGISTER_REAL_TRANSFORMS(REAL, COMPLEX)                        \
  REGISTER_KERNEL(OfReal("RFFT", ElementType::REAL, ElementType::COMPLEX),    \
                  (MakeAttrKernel<RealTransform<1>, "Tcomplex">));            \
  REGISTER_KERNEL(OfReal("RFFT2D", ElementType::REAL, ElementType::COMPLEX),  \
                  (MakeAttrKernel<RealTransform<2>, "Tcomplex">));            \
  REGISTER_KERNEL(OfReal("RFFT3D", ElementType::REAL, ElementType::COMPLEX),  \
                  (MakeAttrKernel<RealTransform<3>, "Tcomplex">));            \
  REGISTER_KERNEL(OfReal("IRFFT", ElementType::REAL, ElementType::COMPLEX),   \
                  (MakeAttrKernel<InverseRealTransform<1>, "Treal">));        \
  REGISTER_KERNEL(OfReal("IRFFT2D", ElementType::REAL, ElementType::COMPLEX), \
                  (MakeAttrKernel<InverseRealTransform<2>, "Treal">));        \
  REGISTER_KERNEL(OfReal("IRFFT3D", ElementType::REAL, ElementType::COMPLEX), \
                  (MakeAttrKernel<InverseRealTransform<3>, "Treal">))
TROUPE_REGISTER_REAL_TRANSFORMS(kFloat, kComplex64);
TROUPE_REGISTER_REAL_TRANSFORMS(kDouble, kComplex128);
#undef TROUPE_REGISTER_REAL_TRANSFORMS

}  // namespace
}  // namespace troupe
