// Einsum of the CPU: sums, and products by the loops of MatMul.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/kernel_registry.h"
#include "kernels/linalg/complex_product.h"
#include "kernels/linalg/einsum.h"
#include "kernels/linalg/narrow_product.h"
#include "kernels/linalg/product.h"
#include "kernels/math/cast.h"
#include "kernels/type_switch.h"

namespace troupe::einsum {
namespace {

template <typename T>
constexpr bool kIsNarrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

/// Sums of integers wrap.
template <typename T, bool kInteger = std::is_integral_v<T>>
struct SumType {
  using Type = T;
};
template <typename T>
struct SumType<T, true> {
  using Type = std::make_unsigned_t<T>;
};

/// The sum of `count` elements, several at a time: each addition waits for the one before.
template <typename T>
T SumOf(const T* x, int64_t count) {
  using S = typename SumType<T>::Type;
  constexpr int kSums = 8;
  S parts[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int s = 0; s < kSums; ++s) parts[s] += static_cast<S>(x[i + s]);
  }
  for (int s = 0; i < count; ++i, ++s) parts[s] += static_cast<S>(x[i]);
  for (int s = 1; s < kSums; ++s) parts[0] += parts[s];
  return static_cast<T>(parts[0]);
}

// Elements of 16 bits that are widened at a time.
constexpr int64_t kWidened = 512;

/// The sum of elements of 16 bits.
template <typename T>
float WideSumOf(const T* x, int64_t count) {
  const simd::UnaryFn widen = FindCast(kElementType<T>, ElementType::kFloat);
  float wide[kWidened], sum = 0;
  for (int64_t i = 0; i < count; i += kWidened) {
    const int64_t some = std::min(kWidened, count - i);
    widen(x + i, wide, some);
    sum += SumOf(wide, some);
  }
  return sum;
}

/// The products of elements of 16 bits.
template <typename T>
void MultiplyWide(const T* x, const T* y, int64_t count, T* out) {
  const simd::UnaryFn widen = FindCast(kElementType<T>, ElementType::kFloat);
  const simd::UnaryFn narrow = FindCast(ElementType::kFloat, kElementType<T>);
  float a[kWidened], b[kWidened];
  for (int64_t i = 0; i < count; i += kWidened) {
    const int64_t some = std::min(kWidened, count - i);
    widen(x + i, a, some);
    widen(y + i, b, some);
    for (int64_t j = 0; j < some; ++j) a[j] *= b[j];
    narrow(a, out + i, some);
  }
}

/// Where the matrices of a batch begin in the elements of two factors and the product.
struct Offsets {
  std::vector<int64_t> a, b, c;
};
Offsets OffsetsOf(const Products& products) {
  Offsets offsets{{0}, {0}, {0}};
  const auto extend = [](int64_t size, int64_t step, std::vector<int64_t>* list) {
    std::vector<int64_t> more;
    more.reserve(list->size() * size);
    for (const int64_t offset : *list) {
      for (int64_t i = 0; i < size; ++i) more.push_back(offset + i * step);
    }
    *list = std::move(more);
  };
  for (const BatchDim& dim : products.batch) {
    extend(dim.size, dim.a, &offsets.a);
    extend(dim.size, dim.b, &offsets.b);
    extend(dim.size, dim.c, &offsets.c);
  }
  return offsets;
}

template <typename T>
absl::Status MultiplyTyped(KernelContext& ctx, const Products& p, const Tensor& a, const Tensor& b,
                           Tensor* out) {
  const Offsets offsets = OffsetsOf(p);
  const int64_t count = static_cast<int64_t>(offsets.c.size());
  if constexpr (kIsNarrow<T>) {
    NarrowProductForm narrow = {.m = p.m,
                                .n = p.n,
                                .k = p.k,
                                .transpose_a = p.a_column != 1,
                                .transpose_b = p.b_column != 1,
                                .c_step = p.c_row};
    // A matrix of one row may have any step.
    narrow.a_step = narrow.transpose_a ? p.a_column : std::max(p.a_row, p.k);
    narrow.b_step = narrow.transpose_b ? p.b_column : std::max(p.b_row, p.n);
    return RunNarrowProducts(
        ctx, narrow, a, b, count,
        [&](int64_t i) -> NarrowProductPlace {
          return {offsets.a[i], offsets.b[i], offsets.c[i]};
        },
        out);
  } else {
    GemmProblem<T> form;
    form.m = p.m;
    form.n = p.n;
    form.k = p.k;
    form.a_row = p.a_row;
    form.a_col = p.a_column;
    form.b_row = p.b_row;
    form.b_col = p.b_column;
    form.ldc = p.c_row;
    form.a = a.unchecked_data<T>();
    form.b = b.unchecked_data<T>();
    form.c = out->mutable_data<T>();
    const auto place = [&](int64_t i, GemmProblem<T>* problem) {
      problem->a = form.a + offsets.a[i];
      problem->b = form.b + offsets.b[i];
      problem->c = form.c + offsets.c[i];
    };
    if constexpr (std::is_arithmetic_v<T>) {
      return RunProducts<T>(ctx, form, count, place);
    } else {
      return RunComplexProducts<typename T::value_type>(ctx, form, false, false, count, place);
    }
  }
}

/// Integers wrap; parts of complex numbers are multiplied as in a matrix product.
template <typename T>
T Times(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  } else if constexpr (std::is_floating_point_v<T>) {
    return x * y;
  } else {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  }
}

template <typename F>
absl::Status SwitchEinsumType(ElementType type, F f) {
  return SwitchType<float, double, half, bfloat16, int32_t, int64_t, complex64, complex128>(type,
                                                                                            f);
}

}  // namespace

absl::Status SumRows(KernelContext& ctx, int64_t rows, int64_t terms, const Tensor& from,
                     Tensor* sums) {
  return SwitchEinsumType(from.type(), [&]<typename T>() -> absl::Status {
    const T* in = from.unchecked_data<T>();
    T* to = sums->mutable_data<T>();
    ctx.ParallelFor(rows, KernelContext::GrainFor(5 + static_cast<double>(terms)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t r = begin; r < end; ++r) {
                        if constexpr (kIsNarrow<T>) {
                          to[r] = T(WideSumOf(in + r * terms, terms));
                        } else {
                          to[r] = SumOf(in + r * terms, terms);
                        }
                      }
                    });
    return absl::OkStatus();
  });
}

absl::Status MultiplyElements(KernelContext& ctx, int64_t n, const Tensor& x, const Tensor& y,
                              Tensor* z) {
  return SwitchEinsumType(x.type(), [&]<typename T>() -> absl::Status {
    const T *a = x.unchecked_data<T>(), *b = y.unchecked_data<T>();
    T* out = z->mutable_data<T>();
    ctx.ParallelFor(n, KernelContext::GrainFor(1), [&](int64_t begin, int64_t end) {
      if constexpr (kIsNarrow<T>) {
        MultiplyWide(a + begin, b + begin, end - begin, out + begin);
      } else {
        for (int64_t i = begin; i < end; ++i) out[i] = Times(a[i], b[i]);
      }
    });
    return absl::OkStatus();
  });
}

absl::Status Multiply(KernelContext& ctx, const Products& products, const Tensor& a,
                      const Tensor& b, Tensor* c) {
  return SwitchEinsumType(a.type(),
                          [&]<typename T>() { return MultiplyTyped<T>(ctx, products, a, b, c); });
}

REGISTER_KERNEL(KernelSpec("Einsum")
                    .Types("T", {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf,
                                 ElementType::kBfloat16, ElementType::kInt32, ElementType::kInt64,
                                 ElementType::kComplex64, ElementType::kComplex128})
                    .Cost(KernelCost::kExpensive),
                Make);

}  // namespace troupe::einsum
