// ArgMax and ArgMin.
#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/cast.h"

namespace troupe {
namespace {

// What every element must exceed to be chosen; where none does (NaN only, say) the result is 0.
template <typename T, bool kMax>
auto Start() {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    const float extreme = std::is_same_v<T, half> ? 65504.0f : 3.3895314e38f;
    return kMax ? -extreme : extreme;
  } else {
    return kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
}

template <bool kMax, typename T>
bool Better(T a, T b) {
  return kMax ? a > b : a < b;
}

// Numbers of 16 bits are compared as floats.
template <typename T>
class AsCompared {
 public:
  using V = std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

  const V* operator()(const T* x, int64_t n) {
    if constexpr (std::is_same_v<T, V>) {
      return x;
    } else {
      wide_.resize(n);
      FindCast(kElementType<T>, ElementType::kFloat)(x, wide_.data(), n);
      return wide_.data();
    }
  }

 private:
  std::vector<V> wide_;
};

template <bool kMax, typename V>
int64_t BestOfRow(const V* x, int64_t n, V start) {
  // The best value, in lanes that the compiler keeps in wide registers, and then where it is first.
  constexpr int64_t kLanes = 64 / sizeof(V);
  V lanes[kLanes];
  std::fill(lanes, lanes + kLanes, start);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const V value = x[i + k];
      lanes[k] = Better<kMax>(value, lanes[k]) ? value : lanes[k];
    }
  }
  V best = start;
  for (const V lane : lanes) best = Better<kMax>(lane, best) ? lane : best;
  for (; i < n; ++i) {
    const V value = x[i];
    best = Better<kMax>(value, best) ? value : best;
  }
  if (!Better<kMax>(best, start)) return 0;
  return std::find(x, x + n, best) - x;
}

// For each of `cols` columns of n elements, `cols` apart.
template <typename T, bool kMax>
void BestOfCols(const T* x, int64_t n, int64_t cols, int64_t* index) {
  using V = decltype(Start<T, kMax>());
  constexpr int64_t kBlock = 256;
  V best[kBlock];
  AsCompared<T> compared;
  for (int64_t c = 0; c < cols; c += kBlock) {
    const int64_t m = std::min(kBlock, cols - c);
    std::fill(best, best + m, Start<T, kMax>());
    std::fill(index + c, index + c + m, 0);
    for (int64_t i = 0; i < n; ++i) {
      const V* row = compared(x + i * cols + c, m);
      for (int64_t k = 0; k < m; ++k) {
        const V value = row[k];
        const bool better = Better<kMax>(value, best[k]);
        best[k] = better ? value : best[k];
        index[c + k] = better ? i : index[c + k];
      }
    }
  }
}

template <bool kMax>
absl::Status ArgOf(KernelContext& ctx, ElementType output_type) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t dimension, ReadIntegerScalar(ctx.input(1), "dimension"));
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dimension, input.rank(), "dimension"));
  const int64_t n = input.dim(axis);
  if (n == 0) {
    return InvalidArgument("reduction axis ", axis, " is empty in shape ",
                           input.shape().ToString());
  }
  Shape shape = input.shape();
  shape.RemoveDim(axis);
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, output_type, shape));
  if (input.num_elements() == 0) return absl::OkStatus();
  int64_t inner = 1;
  for (int d = axis + 1; d < input.rank(); ++d) inner *= input.dim(d);
  const int64_t outer = output->num_elements() / inner;
  void* out = output->mutable_raw_data();
  return SwitchReal<bool>(input.type(), [&]<typename T>() -> absl::Status {
    const T* in = input.unchecked_data<T>();
    const int64_t grain = KernelContext::GrainFor(static_cast<double>(n * inner) + 5);
    ctx.ParallelFor(outer, grain, [&](int64_t begin, int64_t end) {
      absl::InlinedVector<int64_t, 64> index(inner);
      AsCompared<T> compared;
      for (int64_t o = begin; o < end; ++o) {
        const T* x = in + o * n * inner;
        if (inner == 1) {
          index[0] = BestOfRow<kMax>(compared(x, n), n, Start<T, kMax>());
        } else {
          BestOfCols<T, kMax>(x, n, inner, index.data());
        }
        StoreIntegers(index.data(), inner, output_type, out, o * inner);
      }
    });
    return absl::OkStatus();
  });
}

std::vector<ElementType> ArgTypes() {
  std::vector<ElementType> types = RealNumberTypes();
  types.push_back(ElementType::kBool);
  return types;
}

REGISTER_KERNEL(KernelSpec("ArgMax")
                    .Types("T", ArgTypes())
                    .Types("output_type", {ElementType::kInt16, ElementType::kUint16,
                                           ElementType::kInt32, ElementType::kInt64}),
                (MakeAttrKernel<ArgOf<true>, "output_type">));
REGISTER_KERNEL(KernelSpec("ArgMin").Types("T", ArgTypes()).Types("output_type", IndexTypes()),
                (MakeAttrKernel<ArgOf<false>, "output_type">));

}  // namespace
}  // namespace troupe
