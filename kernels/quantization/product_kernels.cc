// QuantizedMatMul, with a bias and what follows it, and QuantizedConv2D.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/nn/window.h"
#include "kernels/quantization/quantized_product.h"
#include "kernels/quantization/quantized_range.h"
#include "kernels/simd/bytes.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// The integer that stands for 0 in a range, if there were no smallest or largest one.
template <typename Q>
int32_t ZeroPoint(const QuantizedRange& range) {
  return static_cast<int32_t>(QuantizeUnclamped<Q>(0.0f, range));
}

/// Whether integers of the type, less their zero point, may be multiplied as floats: all ranges
/// that hold 0 have such a zero point.
template <typename Q>
bool IsExact(int32_t zero) {
  return zero >= kLowestOf<Q> && zero <= kHighestOf<Q>;
}

/// `q` less the zero point, modulo 2^32.
template <typename Q>
uint32_t Centered(Q q, int32_t zero) {
  return static_cast<uint32_t>(static_cast<int32_t>(q.value)) - static_cast<uint32_t>(zero);
}

/// All elements less the zero point, which is exact.
template <typename Q>
absl::StatusOr<Tensor> CenteredFloats(KernelContext& ctx, const Tensor& input, int32_t zero) {
  TROUPE_ASSIGN_OR_RETURN(Tensor floats, ctx.AllocateTemp(ElementType::kFloat, input.shape()));
  const Q* from = input.unchecked_data<Q>();
  float* to = floats.mutable_data<float>();
  ctx.ParallelFor(input.num_elements(), KernelContext::GrainFor(0.5),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      to[i] = static_cast<float>(static_cast<int32_t>(from[i].value) - zero);
                    }
                  });
  return floats;
}

/// Calls `f.template operator()<A, B>()` for the types of two operands.
template <typename F>
absl::Status SwitchOperands(ElementType a, ElementType b, F&& f) {
  return SwitchType<quint8, qint8>(a, [&]<typename A>() {
    return SwitchType<quint8, qint8>(b,
                                     [&]<typename B>() { return f.template operator()<A, B>(); });
  });
}

struct MatrixForm {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0;  ///< Strides.
};

/// InvalidArgument unless the shapes are those of matrices that fit.
absl::StatusOr<MatrixForm> FormOf(const Shape& a, const Shape& b, bool transpose_a,
                                  bool transpose_b) {
  if (a.rank() != 2 || b.rank() != 2) {
    return InvalidArgument("QuantizedMatMul multiplies matrices, got shapes ", a.ToString(),
                           " and ", b.ToString());
  }
  MatrixForm form;
  form.m = a.dim(transpose_a ? 1 : 0);
  form.k = a.dim(transpose_a ? 0 : 1);
  form.n = b.dim(transpose_b ? 0 : 1);
  form.a_row = transpose_a ? 1 : a.dim(1);
  form.a_column = transpose_a ? a.dim(1) : 1;
  form.b_row = transpose_b ? 1 : b.dim(1);
  form.b_column = transpose_b ? b.dim(1) : 1;
  if (b.dim(transpose_b ? 1 : 0) != form.k) {
    return InvalidArgument("QuantizedMatMul: the matrices' sizes do not fit: ", a.ToString(),
                           transpose_a ? " (transposed)" : "", " times ", b.ToString(),
                           transpose_b ? " (transposed)" : "");
  }
  return form;
}

/// The product by definition, for zero points far outside of the type.
template <typename A, typename B>
void MultiplyByLoops(KernelContext& ctx, const MatrixForm& f, const A* a, int32_t a_zero,
                     const B* b, int32_t b_zero, qint32* c) {
  const double row_ns = 2.0 * static_cast<double>(f.n) * static_cast<double>(f.k);
  ctx.ParallelFor(f.m, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < f.n; ++j) {
        uint32_t sum = 0;
        for (int64_t l = 0; l < f.k; ++l) {
          sum += Centered(a[i * f.a_row + l * f.a_column], a_zero) *
                 Centered(b[l * f.b_row + j * f.b_column], b_zero);
        }
        c[i * f.n + j] = qint32(static_cast<int32_t>(sum));
      }
    }
  });
}

/// Inputs 0 and 1 multiplied; `c` is of qint32.
template <typename A, typename B>
absl::Status Multiply(KernelContext& ctx, const MatrixForm& f, int32_t a_zero, int32_t b_zero,
                      Tensor* c) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  qint32* to = c->mutable_data<qint32>();
  if (c->num_elements() == 0) return absl::OkStatus();
  if (BytesProductPays(f.m, f.n, f.k)) {
    return MultiplyBytes(
        ctx, f.m, f.n, f.k, {a.raw_data(), f.a_row, f.a_column, std::is_same_v<A, qint8>, a_zero},
        {b.raw_data(), f.b_row, f.b_column, std::is_same_v<B, qint8>, b_zero}, &to->value);
  }
  if (!IsExact<A>(a_zero) || !IsExact<B>(b_zero)) {
    MultiplyByLoops(ctx, f, a.unchecked_data<A>(), a_zero, b.unchecked_data<B>(), b_zero, to);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const Tensor a_floats, CenteredFloats<A>(ctx, a, a_zero));
  TROUPE_ASSIGN_OR_RETURN(const Tensor b_floats, CenteredFloats<B>(ctx, b, b_zero));
  TROUPE_ASSIGN_OR_RETURN(Tensor sums, ctx.AllocateTemp(ElementType::kFloat, c->shape()));
  return MultiplyExactly(ctx, f.m, f.n, f.k,
                         {a_floats.unchecked_data<float>(), f.a_row, f.a_column},
                         {b_floats.unchecked_data<float>(), f.b_row, f.b_column},
                         sums.mutable_data<float>(), &to->value);
}

absl::Status QuantizedMatMul(KernelContext& ctx, bool transpose_a, bool transpose_b) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange a, ReadWideRange(ctx, 2, /*any_rank=*/true));
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange b, ReadWideRange(ctx, 4, /*any_rank=*/true));
  TROUPE_ASSIGN_OR_RETURN(const MatrixForm form, FormOf(ctx.input(0).shape(), ctx.input(1).shape(),
                                                        transpose_a, transpose_b));
  if (MultiplyWithoutOverflow(form.m, form.n) < 0) {
    return InvalidArgument("the product [", form.m, ",", form.n, "] is too large");
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * c,
                          ctx.AllocateOutput(0, ElementType::kQint32, Shape({form.m, form.n})));
  return SwitchOperands(
      ctx.input(0).type(), ctx.input(1).type(), [&]<typename A, typename B>() -> absl::Status {
        TROUPE_RETURN_IF_ERROR((Multiply<A, B>(ctx, form, ZeroPoint<A>(a), ZeroPoint<B>(b), c)));
        return SetRange(ctx, 1, ProductRange<A, B, qint32>(a, b));
      });
}

/// What a product with a bias gives.
enum class ProductResult { kSums, kReluOfSums, kQuint8, kFloat };

/// The larger end of a range.
float Magnitude(const QuantizedRange& range) {
  return std::max(std::abs(range.min), std::abs(range.max));
}

int32_t WrappedSum(int32_t x, int32_t y) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) + static_cast<uint32_t>(y));
}

/// The operands of a product with a bias.
struct BiasedProduct {
  QuantizedRange a, b;
  MatrixForm form;
  const Tensor& bias;  ///< An element for each column.

  bool has_exact_bias() const { return bias.type() == ElementType::kQint32; }
  /// What it stands for.
  std::vector<float> BiasInReals(float step) const {
    std::vector<float> reals(form.n);
    for (int64_t j = 0; j < form.n; ++j) {
      reals[j] = has_exact_bias()
                     ? static_cast<float>(bias.unchecked_data<qint32>()[j].value) * step
                     : bias.unchecked_data<float>()[j];
    }
    return reals;
  }
};

absl::StatusOr<BiasedProduct> ReadBiasedProduct(const KernelContext& ctx, bool transpose_a,
                                                bool transpose_b) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange a, ReadWideRange(ctx, 3));
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange b, ReadWideRange(ctx, 5));
  TROUPE_ASSIGN_OR_RETURN(const MatrixForm form, FormOf(ctx.input(0).shape(), ctx.input(1).shape(),
                                                        transpose_a, transpose_b));
  if (MultiplyWithoutOverflow(form.m, form.n) < 0) {
    return InvalidArgument("the product [", form.m, ",", form.n, "] is too large");
  }
  const Tensor& bias = ctx.input(2);
  if (bias.shape() != Shape({form.n})) {
    return InvalidArgument("the bias must have an element for each of ", form.n,
                           " columns, got the shape ", bias.shape().ToString());
  }
  return BiasedProduct{a, b, form, bias};
}

/// Calls f(first element) for all rows of the product.
template <typename F>
void ForRows(KernelContext& ctx, const MatrixForm& form, F f) {
  ctx.ParallelFor(form.m, KernelContext::GrainFor(0.2 * static_cast<double>(form.n)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) f(row * form.n);
                  });
}

/// Inputs: a, b, the bias, the ranges of a and b; for kQuint8 and kFloat that of the result.
template <ProductResult kResult>
absl::Status QuantizedMatMulWithBias(KernelContext& ctx, bool transpose_a, bool transpose_b,
                                     const std::string& input_quant_mode) {
  TROUPE_ASSIGN_OR_RETURN(const BiasedProduct product,
                          ReadBiasedProduct(ctx, transpose_a, transpose_b));
  const QuantizedRange &a = product.a, &b = product.b;
  const bool from_min = input_quant_mode == "MIN_FIRST";
  const int32_t a_zero = from_min && !product.has_exact_bias() ? ZeroPoint<quint8>(a) : 0;
  const float a_size = from_min ? a.width() : Magnitude(a), b_size = Magnitude(b);
  // The step that the range of sums says: of b's integers the smallest is not used.
  const float sum_step = a.width() / 255.0f * (b.width() / 254.0f);

  const Shape shape({product.form.m, product.form.n});
  TROUPE_ASSIGN_OR_RETURN(Tensor sums, ctx.AllocateTemp(ElementType::kQint32, shape));
  TROUPE_RETURN_IF_ERROR((Multiply<quint8, qint8>(ctx, product.form, a_zero, 0, &sums)));
  const int32_t* from = &sums.unchecked_data<qint32>()->value;
  const int64_t n = product.form.n;
  if constexpr (kResult == ProductResult::kFloat) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kFloat, shape));
    const float step = a_size / 255.0f * (b_size / 127.0f);
    const std::vector<float> bias = product.BiasInReals(step);
    float* to = out->mutable_data<float>();
    ForRows(ctx, product.form,
            [&](int64_t i) { Bytes().scale(from + i, step, bias.data(), n, to + i); });
    return absl::OkStatus();
  } else if constexpr (kResult == ProductResult::kQuint8) {
    TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 7));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kQuint8, shape));
    const float to_step = Magnitude(range) / 255.0f;
    const std::vector<float> bias = product.BiasInReals(sum_step);
    uint8_t* to = &out->mutable_data<quint8>()->value;
    ForRows(ctx, product.form, [&](int64_t i) {
      Bytes().requantize(from + i, sum_step, bias.data(), to_step, n, to + i);
    });
    return SetRange(ctx, 1, range);
  } else {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kQint32, shape));
    constexpr bool kRelu = kResult == ProductResult::kReluOfSums;
    int32_t* to = &out->mutable_data<qint32>()->value;
    if (product.has_exact_bias()) {
      const qint32* bias = product.bias.unchecked_data<qint32>();
      ForRows(ctx, product.form, [&](int64_t i) {
        for (int64_t j = 0; j < n; ++j) {
          const int32_t sum = WrappedSum(from[i + j], bias[j].value);
          to[i + j] = kRelu ? std::max(sum, 0) : sum;
        }
      });
    } else {
      std::vector<float> bias = product.BiasInReals(1);
      for (float& x : bias) x *= 255.0f * 127.0f / (b_size * a_size);
      ForRows(ctx, product.form,
              [&](int64_t i) { Bytes().round(from + i, bias.data(), n, kRelu, to + i); });
    }
    return SetRange(ctx, 1, {-sum_step * 2147483648.0f, sum_step * 2147483648.0f});
  }
}

/// The sizes of a convolution of NHWC images.
struct ConvSizes {
  int64_t batch = 0, depth = 0, out_depth = 0;
  Window rows, columns;

  int64_t patch() const { return rows.size * columns.size * depth; }
  int64_t patches() const { return batch * rows.output * columns.output; }

  /// Calls f(first position in the filter, how many, their first channel in the images, or -1
  /// outside of the image) for runs of the positions of patch i, which lie beside each other.
  template <typename F>
  void ForRuns(int64_t i, F&& f) const {
    const int64_t x0 = i % columns.output * columns.stride - columns.pad_before;
    const int64_t y0 = i / columns.output % rows.output * rows.stride - rows.pad_before;
    const int64_t image = i / columns.output / rows.output, size = columns.size;
    const int64_t begin = std::clamp<int64_t>(-x0, 0, size);
    const int64_t end = std::clamp(columns.input - x0, begin, size);
    for (int64_t row = 0; row < rows.size; ++row) {
      const int64_t y = y0 + row, at = row * size;
      if (y < 0 || y >= rows.input) {
        f(at, size, -1);
        continue;
      }
      if (begin > 0) f(at, begin, -1);
      if (end > begin) {
        f(at + begin, end - begin, ((image * rows.input + y) * columns.input + x0 + begin) * depth);
      }
      if (size > end) f(at + end, size - end, -1);
    }
  }
};

class QuantizedConv2D final : public Kernel {
 public:
  QuantizedConv2D(const KernelConstruction& c, absl::Status* status) { *status = Read(c); }

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const ConvSizes sizes,
                            Resolve(ctx.input(0).shape(), ctx.input(1).shape()));
    TROUPE_ASSIGN_OR_RETURN(const QuantizedRange input, ReadRange(ctx, 2));
    TROUPE_ASSIGN_OR_RETURN(const QuantizedRange filter, ReadRange(ctx, 4));
    const Shape shape({sizes.batch, sizes.rows.output, sizes.columns.output, sizes.out_depth});
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kQint32, shape));
    return SwitchOperands(
        ctx.input(0).type(), ctx.input(1).type(), [&]<typename A, typename B>() -> absl::Status {
          TROUPE_RETURN_IF_ERROR(
              (Convolve<A, B>(ctx, sizes, ZeroPoint<A>(input), ZeroPoint<B>(filter), out)));
          return SetRange(ctx, 1, ProductRange<A, B, qint32>(input, filter));
        });
  }

 private:
  absl::Status Read(const KernelConstruction& c) {
    std::vector<int64_t> strides, dilations, paddings;
    TROUPE_RETURN_IF_ERROR(c.GetAttr("strides", &strides));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("dilations", &dilations));
    TROUPE_RETURN_IF_ERROR(ReadPadding(c, &padding_, &paddings));
    if (strides.size() != 4 || strides[0] != 1 || strides[3] != 1 || strides[1] != strides[2] ||
        strides[1] < 1) {
      return InvalidArgument("QuantizedConv2D takes strides [1,n,n,1]");
    }
    if (dilations != std::vector<int64_t>{1, 1, 1, 1}) {
      return InvalidArgument("QuantizedConv2D takes dilations [1,1,1,1]");
    }
    stride_ = strides[1];
    return absl::OkStatus();
  }

  absl::StatusOr<ConvSizes> Resolve(const Shape& input, const Shape& filter) const {
    if (input.rank() != 4 || filter.rank() != 4) {
      return InvalidArgument("QuantizedConv2D takes an input and a filter of rank 4, got shapes ",
                             input.ToString(), " and ", filter.ToString());
    }
    if (input.num_elements() == 0 || filter.num_elements() == 0) {
      return InvalidArgument("QuantizedConv2D takes no empty tensors, got shapes ",
                             input.ToString(), " and ", filter.ToString());
    }
    if (input.dim(3) != filter.dim(2)) {
      return InvalidArgument("the input of shape ", input.ToString(), " and the filter of shape ",
                             filter.ToString(), " must have the same depth");
    }
    ConvSizes s;
    s.batch = input.dim(0);
    s.depth = input.dim(3);
    s.out_depth = filter.dim(3);
    s.rows = {.input = input.dim(1), .size = filter.dim(0), .stride = stride_};
    s.columns = {.input = input.dim(2), .size = filter.dim(1), .stride = stride_};
    TROUPE_RETURN_IF_ERROR(SlideBoth(padding_, {}, s.batch, s.out_depth, &s.rows, &s.columns));
    return s;
  }

  template <typename A, typename B>
  absl::Status Convolve(KernelContext& ctx, const ConvSizes& s, int32_t a_zero, int32_t b_zero,
                        Tensor* out) const {
    if (out->num_elements() == 0) return absl::OkStatus();
    if (!IsExact<A>(a_zero) || !IsExact<B>(b_zero)) {
      ConvolveByLoops(ctx, s, ctx.input(0).unchecked_data<A>(), a_zero,
                      ctx.input(1).unchecked_data<B>(), b_zero, out->mutable_data<qint32>());
      return absl::OkStatus();
    }
    if (BytesProductPays(s.patches(), s.out_depth, s.patch())) {
      return ConvolveBytes<A, B>(ctx, s, a_zero, b_zero, out);
    }
    return ConvolveExactly<A, B>(ctx, s, a_zero, b_zero, out);
  }

  /// A product of the patches, some at a time, with the filter, both as they are. Outside of the
  /// image is the zero point, which the type has.
  template <typename A, typename B>
  static absl::Status ConvolveBytes(KernelContext& ctx, const ConvSizes& s, int32_t a_zero,
                                    int32_t b_zero, Tensor* out) {
    const A* images = ctx.input(0).unchecked_data<A>();
    const BytesOperand filter = {ctx.input(1).raw_data(), s.out_depth, 1, std::is_same_v<B, qint8>,
                                 b_zero};
    const auto multiply = [&](int64_t first, int64_t count, const A* patches) {
      return MultiplyBytes(ctx, count, s.out_depth, s.patch(),
                           {patches, s.patch(), 1, std::is_same_v<A, qint8>, a_zero}, filter,
                           &out->mutable_data<qint32>()[first * s.out_depth].value);
    };
    if (s.rows.size == 1 && s.columns.size == 1 && s.rows.stride == 1) {
      return multiply(0, s.patches(), images);
    }
    constexpr int64_t kPatchBytes = 4 << 20;  // About what a core's caches hold.
    const int64_t block = std::min(std::max<int64_t>(kPatchBytes / s.patch(), 64), s.patches());
    TROUPE_ASSIGN_OR_RETURN(Tensor patches,
                            ctx.AllocateTemp(kElementType<A>, Shape({block, s.patch()})));
    A* rows = patches.mutable_data<A>();
    const A outside(static_cast<typename A::Storage>(a_zero));
    for (int64_t first = 0; first < s.patches(); first += block) {
      const int64_t count = std::min(block, s.patches() - first);
      ctx.ParallelFor(count, KernelContext::GrainFor(0.2 * static_cast<double>(s.patch())),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          s.ForRuns(first + i, [&](int64_t at, int64_t run, int64_t from) {
                            A* to = rows + i * s.patch() + at * s.depth;
                            if (from < 0) {
                              std::fill_n(to, run * s.depth, outside);
                            } else {
                              std::copy_n(images + from, run * s.depth, to);
                            }
                          });
                        }
                      });
      TROUPE_RETURN_IF_ERROR(multiply(first, count, rows));
    }
    return absl::OkStatus();
  }

  /// A product of the patches, some at a time, with the filter.
  template <typename A, typename B>
  static absl::Status ConvolveExactly(KernelContext& ctx, const ConvSizes& s, int32_t a_zero,
                                      int32_t b_zero, Tensor* out) {
    constexpr int64_t kPatchBytes = 4 << 20;  // About what a core's caches hold.
    const int64_t block =
        std::clamp(kPatchBytes / std::max<int64_t>(4 * s.patch(), 1), int64_t{1}, s.patches());
    TROUPE_ASSIGN_OR_RETURN(const Tensor filter, CenteredFloats<B>(ctx, ctx.input(1), b_zero));
    TROUPE_ASSIGN_OR_RETURN(Tensor patches,
                            ctx.AllocateTemp(ElementType::kFloat, Shape({block, s.patch()})));
    TROUPE_ASSIGN_OR_RETURN(Tensor sums,
                            ctx.AllocateTemp(ElementType::kFloat, Shape({block, s.out_depth})));
    const A* images = ctx.input(0).unchecked_data<A>();
    float* rows = patches.mutable_data<float>();
    for (int64_t first = 0; first < s.patches(); first += block) {
      const int64_t count = std::min(block, s.patches() - first);
      ctx.ParallelFor(count, KernelContext::GrainFor(static_cast<double>(s.patch())),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          FillPatch(s, first + i, images, a_zero, rows + i * s.patch());
                        }
                      });
      TROUPE_RETURN_IF_ERROR(MultiplyExactly(
          ctx, count, s.out_depth, s.patch(), {rows, s.patch(), 1},
          {filter.unchecked_data<float>(), s.out_depth, 1}, sums.mutable_data<float>(),
          &out->mutable_data<qint32>()[first * s.out_depth].value));
    }
    return absl::OkStatus();
  }

  /// The elements of a patch less the zero point; 0 outside of the image.
  template <typename A>
  static void FillPatch(const ConvSizes& s, int64_t i, const A* images, int32_t zero, float* to) {
    s.ForRuns(i, [&](int64_t at, int64_t run, int64_t from) {
      for (int64_t c = 0; c < run * s.depth; ++c) {
        to[at * s.depth + c] =
            from < 0 ? 0.0f
                     : static_cast<float>(static_cast<int32_t>(images[from + c].value) - zero);
      }
    });
  }

  /// By definition, for zero points far outside of the type.
  template <typename A, typename B>
  static void ConvolveByLoops(KernelContext& ctx, const ConvSizes& s, const A* images,
                              int32_t a_zero, const B* filter, int32_t b_zero, qint32* out) {
    const double patch_ns = 2.0 * static_cast<double>(s.patch() * s.out_depth);
    ctx.ParallelFor(s.patches(), KernelContext::GrainFor(patch_ns),
                    [&](int64_t begin, int64_t end) {
                      std::vector<uint32_t> sums(s.out_depth);
                      for (int64_t i = begin; i < end; ++i) {
                        std::fill(sums.begin(), sums.end(), 0);
                        s.ForRuns(i, [&](int64_t at, int64_t run, int64_t from) {
                          for (int64_t c = 0; from >= 0 && c < run * s.depth; ++c) {
                            const uint32_t a = Centered(images[from + c], a_zero);
                            const B* b = filter + (at * s.depth + c) * s.out_depth;
                            for (int64_t o = 0; o < s.out_depth; ++o)
                              sums[o] += a * Centered(b[o], b_zero);
                          }
                        });
                        for (int64_t o = 0; o < s.out_depth; ++o) {
                          out[i * s.out_depth + o] = qint32(static_cast<int32_t>(sums[o]));
                        }
                      }
                    });
  }

  PaddingMode padding_ = PaddingMode::kValid;
  int64_t stride_ = 1;
};

std::vector<ElementType> EightBits() { return {ElementType::kQuint8, ElementType::kQint8}; }

REGISTER_KERNEL(KernelSpec("QuantizedMatMul")
                    .Types("T1", EightBits())
                    .Types("T2", EightBits())
                    .Types("Toutput", {ElementType::kQint32})
                    .Cost(KernelCost::kExpensive),
                (MakeAttrKernel<QuantizedMatMul, "transpose_a", "transpose_b">));
KernelSpec WithBias(const char* op, ElementType output) {
  return KernelSpec(op)
      .Types("T1", {ElementType::kQuint8})
      .Types("T2", {ElementType::kQint8})
      .Types("Toutput", {output})
      .Cost(KernelCost::kExpensive);
}
template <ProductResult kResult>
constexpr auto kMatMulWithBias = MakeAttrKernel<QuantizedMatMulWithBias<kResult>, "transpose_a",
                                                "transpose_b", "input_quant_mode">;

REGISTER_KERNEL(WithBias("QuantizedMatMulWithBias", ElementType::kQint32),
                kMatMulWithBias<ProductResult::kSums>);
REGISTER_KERNEL(WithBias("QuantizedMatMulWithBiasAndRelu", ElementType::kQint32),
                kMatMulWithBias<ProductResult::kReluOfSums>);
REGISTER_KERNELS(WithBias("QuantizedMatMulWithBiasAndRequantize", ElementType::kQuint8),
                 kMatMulWithBias<ProductResult::kQuint8>,
                 "QuantizedMatMulWithBiasAndReluAndRequantize");
REGISTER_KERNEL(WithBias("QuantizedMatMulWithBiasAndDequantize", ElementType::kFloat),
                kMatMulWithBias<ProductResult::kFloat>);
REGISTER_KERNEL(KernelSpec("QuantizedConv2D")
                    .Types("Tinput", EightBits())
                    .Types("Tfilter", EightBits())
                    .Types("out_type", {ElementType::kQint32})
                    .Cost(KernelCost::kExpensive),
                MakeKernel<QuantizedConv2D>);

}  // namespace
}  // namespace troupe
