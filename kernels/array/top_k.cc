// TopK, TopKV2, InTopK, InTopKV2: the largest elements of rows.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/array/top_k_shape.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/cast.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

/// An order of all values: NaN, equal to itself, comes after everything else.
template <typename T>
bool Less(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    return a < b || (std::isnan(b) && !std::isnan(a));
  }
}

template <typename T>
struct Candidate {
  T value;
  int64_t position;

  /// Larger values come first, of equal ones the first.
  bool operator<(const Candidate& other) const {
    if (Less(other.value, value)) return true;
    if (Less(value, other.value)) return false;
    return position < other.position;
  }
};

/// The last of `n` > 0 values in the order of Less.
template <typename T>
T Largest(const T* values, int64_t n) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    T largest;  // NaN if there is one
    simd::Functions().reduce[simd::TypeOf(kElementType<T>)][simd::kMax].rows(values, 1, n,
                                                                             &largest);
    return largest;
  } else {
    T largest = values[0];
    for (int64_t i = 1; i < n; ++i) largest = Less(largest, values[i]) ? values[i] : largest;
    return largest;
  }
}

/// Values that are looked at as a whole first: most have none that is large enough.
constexpr int64_t kBlock = 256;

template <typename T>
int64_t PositionOfLargest(const T* values, int64_t n) {
  T largest = Largest(values, std::min(n, kBlock));
  int64_t first = 0;
  for (int64_t begin = kBlock; begin < n; begin += kBlock) {
    const T other = Largest(values + begin, std::min(n - begin, kBlock));
    if (!Less(largest, other)) continue;
    largest = other;
    first = begin;
  }
  // NaN is the largest if Less has nothing after it.
  while (Less(values[first], largest)) ++first;
  return first;
}

/// Makes *top the `k` largest of `n` values, largest first.
template <typename T>
void SelectTop(const T* values, int64_t n, int64_t k, std::vector<Candidate<T>>* top) {
  top->clear();
  if (k == 1) {
    const int64_t position = PositionOfLargest(values, n);
    top->push_back({values[position], position});
    return;
  }
  // Candidates are those larger than the k-th largest so far. When there are many, `k` are kept.
  const size_t most = static_cast<size_t>(2 * k + 64);
  bool has_bound = false;
  T bound{};
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    if (has_bound && !Less(bound, Largest(values + begin, end - begin))) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (has_bound && values[i] <= bound) continue;  // NaN is not, and comes after all bounds
      top->push_back({values[i], i});
      if (top->size() < most) continue;
      std::nth_element(top->begin(), top->begin() + (k - 1), top->end());
      top->resize(k);
      bound = top->back().value;
      has_bound = true;
    }
  }
  if (top->size() > static_cast<size_t>(k)) {
    std::nth_element(top->begin(), top->begin() + (k - 1), top->end());
    top->resize(k);
  }
  std::sort(top->begin(), top->end());
}

/// Fills the outputs, which get the shape `shape`.
absl::Status TakeTop(KernelContext& ctx, const Shape& shape, ElementType index_type) {
  const Tensor& input = ctx.input(0);
  const int64_t n = input.dim(input.rank() - 1), k = shape.dim(input.rank() - 1);
  TROUPE_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, input.type(), shape));
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(1, index_type, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t rows = shape.num_elements() / k;
  return SwitchReal(input.type(), [&]<typename T>() {
    // Narrow numbers are compared as floats, which keep their order.
    constexpr bool kNarrow = sizeof(T) <= 2;
    using Compared = std::conditional_t<kNarrow, float, T>;
    const T* from = input.unchecked_data<T>();
    T* to = values->mutable_data<T>();
    const double row_ns = 0.3 * static_cast<double>(n) + 40.0 * static_cast<double>(k);
    ctx.ParallelFor(rows, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
      std::vector<Candidate<Compared>> top;
      std::vector<Compared> wide(kNarrow ? n : 0);
      std::vector<int64_t> order(k);
      for (int64_t r = begin; r < end; ++r) {
        const T* row = from + r * n;
        if constexpr (kNarrow) {
          FindCast(kElementType<T>, ElementType::kFloat)(row, wide.data(), n);
          SelectTop<Compared>(wide.data(), n, k, &top);
        } else {
          SelectTop(row, n, k, &top);
        }
        for (int64_t i = 0; i < k; ++i) {
          order[i] = top[i].position;
          to[r * k + i] = row[order[i]];
        }
        StoreIntegers(order.data(), k, index_type, indices->mutable_raw_data(), r * k);
      }
    });
    return absl::OkStatus();
  });
}

absl::Status TopK(KernelContext& ctx, int64_t k) {
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, TopKShape(ctx.input(0).shape(), k));
  return TakeTop(ctx, shape, ElementType::kInt32);
}

absl::Status TopKV2(KernelContext& ctx, ElementType index_type) {
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, TopKShape(ctx.input(0).shape(), ctx.input(1)));
  return TakeTop(ctx, shape, index_type);
}

/// False as soon as a prediction that is not finite is met.
bool InTop(const float* row, int64_t n, float target, int64_t k) {
  if (!std::isfinite(target)) return false;
  int64_t larger = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(row[i])) return false;
    if (row[i] > target && ++larger > k) return false;
  }
  return larger < k;
}

absl::Status InTopK(KernelContext& ctx, int64_t k) {
  const Tensor &predictions = ctx.input(0), &targets_input = ctx.input(1);
  if (predictions.rank() != 2 || targets_input.rank() != 1 ||
      predictions.dim(0) != targets_input.dim(0)) {
    return InvalidArgument("predictions must be a matrix and targets a vector with one element a ",
                           "row, got shapes ", predictions.shape().ToString(), " and ",
                           targets_input.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector targets, ReadIntegers(targets_input, "targets"));
  const int64_t rows = predictions.dim(0), n = predictions.dim(1);
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kBool, Shape({rows})));
  const float* row = predictions.unchecked_data<float>();
  for (int64_t r = 0; r < rows; ++r, row += n) {
    out->mutable_data<bool>()[r] =
        targets[r] >= 0 && targets[r] < n && InTop(row, n, row[targets[r]], k);
  }
  return absl::OkStatus();
}

absl::Status InTopKV2(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t k, ReadIntegerScalar(ctx.input(2), "k"));
  return InTopK(ctx, k);
}

std::vector<ElementType> IndicesAndInt16() {
  return {ElementType::kInt16, ElementType::kInt32, ElementType::kInt64};
}

REGISTER_KERNEL(KernelSpec("TopK").Types("T", RealNumberTypes()), (MakeAttrKernel<TopK, "k">));
REGISTER_KERNEL(KernelSpec("TopKV2")
                    .Types("T", RealNumberTypes())
                    .Types("Tk", IndicesAndInt16())
                    .Types("index_type", IndicesAndInt16()),
                (MakeAttrKernel<TopKV2, "index_type">));
REGISTER_KERNEL(KernelSpec("InTopK").Types("T", IndexTypes()), (MakeAttrKernel<InTopK, "k">));
REGISTER_KERNEL(KernelSpec("InTopKV2").Types("T", IndexTypes()), MakeKernel<InTopKV2>);

}  // namespace
}  // namespace troupe
