// ArgMax and ArgMin: reductions of values with their indices.
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/reduce.h"

namespace troupe::cuda {
namespace {

template <typename W>
struct Candidate {
  W value;
  int64_t index;
};

constexpr int64_t kNone = INT64_MAX;

template <typename T, bool kMax>
struct ArgReducer {
  using W = WideType<T>;
  using Acc = Candidate<W>;
  static_assert(sizeof(Acc) == kArgAccSize);
  static constexpr int kPack = ReducePack(sizeof(T), sizeof(Acc));

  /// What an element has to exceed to be chosen.
  __device__ static W Start() {
    if constexpr (std::is_same_v<T, __half>) return kMax ? -65504.0f : 65504.0f;
    if constexpr (std::is_same_v<T, __nv_bfloat16>) return kMax ? -3.3895314e38f : 3.3895314e38f;
    return kMax ? kLowest<W> : kHighest<W>;
  }
  __device__ static bool Better(W a, W b) { return kMax ? a > b : a < b; }

  __device__ Acc Identity() const { return {Start(), kNone}; }
  __device__ Acc Join(Acc a, Acc b) const {
    const bool second = Better(b.value, a.value) || (b.value == a.value && b.index < a.index);
    return second ? b : a;
  }
  template <int kN>
  __device__ Packed<T, kN> Load(int64_t at) const {
    return LoadPacked<kN>(in, at);
  }
  template <int kN>
  __device__ Acc Of(const Packed<T, kN>& loaded, int k, int64_t r, int64_t) const {
    const W value = static_cast<W>(loaded.values[k]);
    return Better(value, Start()) ? Acc{value, r} : Identity();
  }
  template <int kN>
  __device__ void Store(int64_t index, const Acc (&accs)[kN]) const {
    for (int k = 0; k < kN; ++k) {
      const int64_t found = accs[k].index == kNone ? 0 : accs[k].index;
      if (wide_index) {
        static_cast<int64_t*>(out)[index + k] = found;
      } else {
        static_cast<int32_t*>(out)[index + k] = static_cast<int32_t>(found);
      }
    }
  }

  const T* in;
  void* out;
  bool wide_index;
};

template <typename T>
cudaError_t Run(bool largest, bool wide_index, const ReduceCall& call, const ReducePlan& plan,
                cudaStream_t stream) {
  const auto* in = static_cast<const T*>(call.in);
  if (largest) {
    return RunReduce(ArgReducer<T, true>{in, call.out, wide_index}, plan, call.scratch, stream);
  }
  return RunReduce(ArgReducer<T, false>{in, call.out, wide_index}, plan, call.scratch, stream);
}

}  // namespace

cudaError_t LaunchArg(bool largest, bool wide_index, const ReduceCall& call, const ReducePlan& plan,
                      cudaStream_t stream) {
  if (call.type == Number::kBool) return Run<uint8_t>(largest, wide_index, call, plan, stream);
  return VisitFloating(call.type, [&](auto tag) {
    return Run<typename decltype(tag)::Type>(largest, wide_index, call, plan, stream);
  });
}

}  // namespace troupe::cuda
