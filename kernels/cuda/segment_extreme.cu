// Products and extremes by segments, and the choice of a reduction.
#include "kernels/cuda/segment.cuh"

namespace troupe::cuda {
namespace {

template <typename W>
struct ProductTerms {
  using Acc = W;
  __device__ W Start() const { return W(1); }
  __device__ W Join(W a, W b) const { return a * b; }
  __device__ W Finish(W product, int64_t) const { return product; }
};

/// A number that is none stays.
template <typename W>
struct ExtremeTerms {
  using Acc = W;
  __device__ W Start() const { return start; }
  __device__ W Join(W a, W b) const { return (largest ? b > a : b < a) || b != b ? b : a; }
  __device__ W Finish(W extreme, int64_t count) const {
    return empty_is_zero && count == 0 ? W(0) : extreme;
  }

  bool largest, empty_is_zero;
  W start;
};

/// The largest finite number of T, and the lowest.
template <typename T>
WideType<T> Largest() {
  if constexpr (std::is_same_v<T, __half>) return 65504.0f;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return 0x1.FEp127f;
  return std::numeric_limits<WideType<T>>::max();
}
template <typename T>
WideType<T> Lowest() {
  using W = WideType<T>;
  return std::is_integral_v<W> ? std::numeric_limits<W>::lowest() : static_cast<W>(-Largest<T>());
}

template <typename T>
ExtremeTerms<WideType<T>> ExtremeOf(const SegmentCall& call) {
  using W = WideType<T>;
  const bool largest = call.op == SegmentOp::kMax;
  W start = largest ? Lowest<T>() : Largest<T>();
  if (call.empty_is_zero && std::is_floating_point_v<W>) {
    start = largest ? -std::numeric_limits<W>::infinity() : std::numeric_limits<W>::infinity();
  }
  return {largest, call.empty_is_zero, start};
}

/// Calls run(type, what joins its terms).
template <typename Run>
cudaError_t VisitTerms(const SegmentCall& call, Run run) {
  if (call.op == SegmentOp::kProd) {
    if (call.type == Number::kInt32) {  // Wraps around.
      return run(TypeTag<uint32_t>(), ProductTerms<uint32_t>());
    }
    return VisitFloating(call.type, [&](auto tag) {
      return run(tag, ProductTerms<WideType<typename decltype(tag)::Type>>());
    });
  }
  if (call.type == Number::kInt32) return run(TypeTag<int32_t>(), ExtremeOf<int32_t>(call));
  return VisitFloating(
      call.type, [&](auto tag) { return run(tag, ExtremeOf<typename decltype(tag)::Type>(call)); });
}

bool IsSum(SegmentOp op) { return op == SegmentOp::kSum || op == SegmentOp::kMean; }

}  // namespace

cudaError_t LaunchReduceFew(const SegmentCall& call, LateCheck check, cudaStream_t stream) {
  if (IsSum(call.op)) return LaunchSumOfFew(call, check, stream);
  return VisitTerms(call, [&](auto tag, auto terms) {
    return RunReduceFew<typename decltype(tag)::Type>(call, terms, check, stream);
  });
}

cudaError_t LaunchReduceSorted(const SegmentCall& call, const uint32_t* places,
                               const int64_t* starts, cudaStream_t stream) {
  if (IsSum(call.op)) return LaunchSumSorted(call, places, starts, stream);
  return VisitTerms(call, [&](auto tag, auto terms) {
    return RunReduceRows<typename decltype(tag)::Type>(call, places, starts, terms, stream);
  });
}

}  // namespace troupe::cuda
