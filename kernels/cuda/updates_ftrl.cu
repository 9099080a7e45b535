// Optimisers' updates that follow the regularized leader.
#include "kernels/cuda/updates.cuh"

namespace troupe::cuda {
namespace {

/// Which of the rules it is depends on lr_power, which only the device knows.
template <typename N, bool kSparse, bool kMultiplyByRate, bool kShrinkage>
struct EitherRoot {
  static constexpr int kVariables = 3;
  const bool is_root;
  const FtrlRule<N, kSparse, kMultiplyByRate, kShrinkage, true> root;
  const FtrlRule<N, kSparse, kMultiplyByRate, kShrinkage, false> power;

  __device__ explicit EitherRoot(const N* s)
      : is_root(s[kShrinkage ? 4 : 3] == N(-0.5f)), root(s), power(s) {}
  __device__ void operator()(N& var, N& accum, N& linear, N g) const {
    if (is_root) {
      root(var, accum, linear, g);
    } else {
      power(var, accum, linear, g);
    }
  }
};

template <bool kMultiplyByRate, bool kShrinkage, typename T>
cudaError_t Choose(const UpdateRun& run) {
  using N = WideType<T>;
  return run.call.by_row
             ? RunUpdate<EitherRoot<N, true, kMultiplyByRate, kShrinkage>, T>(run)
             : RunUpdate<EitherRoot<N, false, kMultiplyByRate, kShrinkage>, T, false>(run);
}

}  // namespace

cudaError_t LaunchFtrl(const UpdateRun& run) {
  return VisitFloating(run.call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if (run.call.rule == kFtrl) {
      return run.call.flag ? Choose<true, false, T>(run) : Choose<false, false, T>(run);
    }
    return run.call.flag ? Choose<true, true, T>(run) : Choose<false, true, T>(run);
  });
}

}  // namespace troupe::cuda
