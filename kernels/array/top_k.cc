// TopK, TopKV2, InTopK, InTopKV2: the largest elements of rows.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "kernels/array/top_k_shape.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

/// An order of all values: NaN, equal to itself, comes after everything else.
template <typename T>
bool Less(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    return a < b || (b != b && a == a);
  }
}

/// Puts the positions of the `k` largest of `n` values into order[0, k), largest first, of equal
/// ones the first first.
template <typename T>
void SelectTop(const T* values, int64_t n, int64_t k, std::vector<int64_t>* order) {
  auto before = [values](int64_t a, int64_t b) {
    if (Less(values[b], values[a])) return true;
    if (Less(values[a], values[b])) return false;
    return a < b;
  };
  if (k == 1) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i) {
      if (Less(values[best], values[i])) best = i;
    }
    (*order)[0] = best;
    return;
  }
  if (k <= 32) {
    // A short list in order: once it is full, most elements are turned away by its last one.
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (count == k && !Less(values[(*order)[k - 1]], values[i])) continue;
      int64_t at = count < k ? count++ : k - 1;
      for (; at > 0 && Less(values[(*order)[at - 1]], values[i]); --at) {
        (*order)[at] = (*order)[at - 1];
      }
      (*order)[at] = i;
    }
    return;
  }
  std::iota(order->begin(), order->end(), 0);
  if (k < n) std::nth_element(order->begin(), order->begin() + k, order->end(), before);
  std::sort(order->begin(), order->begin() + k, before);
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
    const T* from = input.unchecked_data<T>();
    T* to = values->mutable_data<T>();
    const double row_ns = (k <= 32 ? 2.0 : 10.0) * n + 20.0 * k;
    ctx.ParallelFor(rows, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order(n);
      for (int64_t r = begin; r < end; ++r) {
        SelectTop(from + r * n, n, k, &order);
        for (int64_t i = 0; i < k; ++i) {
          to[r * k + i] = from[r * n + order[i]];
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
