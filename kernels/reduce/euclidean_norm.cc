// EuclideanNorm: the square root of the sum of squared magnitudes.
#include <cmath>
#include <complex>
#include <type_traits>

#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"
#include "kernels/reduce/generic_loops.h"
#include "kernels/reduce/reduce.h"

namespace troupe {
namespace {

template <typename T>
T Square(const T& x) {
  if constexpr (std::is_integral_v<T>) {  // Wraps around.
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x));
  } else {
    return T(std::norm(x));
  }
}

template <typename T>
void SquaresOfRows(const void* in, int64_t rows, int64_t n, void* acc) {
  const T* x = static_cast<const T*>(in);
  for (int64_t r = 0; r < rows; ++r, x += n) {
    T sum(0);
    for (int64_t i = 0; i < n; ++i) sum = internal::SumOf::Join(sum, Square(x[i]));
    static_cast<T*>(acc)[r] = sum;
  }
}

template <typename T>
void SquaresOfCols(const void* in, int64_t rows, int64_t stride, int64_t cols, void* acc_out) {
  const T* x = static_cast<const T*>(in);
  T* acc = static_cast<T*>(acc_out);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      acc[c] = internal::SumOf::Join(acc[c], Square(x[r * stride + c]));
    }
  }
}

/// T: elements, A: accumulators.
template <typename T, typename A>
void Roots(const void* acc, void* out, int64_t n, int64_t) {
  const A* x = static_cast<const A*>(acc);
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<A>) {
      // A sum that has wrapped around may be negative.
      y[i] = static_cast<T>(std::sqrt(std::max(0.0, static_cast<double>(x[i]))));
    } else {
      y[i] = static_cast<T>(std::sqrt(x[i]));
    }
  }
}

template <typename T>
ReduceLoops NormLoops() {
  ReduceLoops loops = FindReduce(Reduction::kSumOfSquares, kElementType<T>);
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    loops.finish = Roots<T, float>;
  } else {
    if constexpr (!std::is_floating_point_v<T>) {
      loops = internal::Loops<internal::SumOf, T>(false);
      loops.rows = SquaresOfRows<T>;
      loops.cols = SquaresOfCols<T>;
    }
    loops.finish = Roots<T, T>;
  }
  return loops;
}

class EuclideanNormKernel final : public Kernel {
 public:
  EuclideanNormKernel(KernelConstruction& c, absl::Status* status)
      : keep_dims_(c.Attr<bool>("keep_dims")) {
    *status = SwitchNumber(RemoveRef(c.input_type(0)), [&]<typename T>() {
      loops_ = NormLoops<T>();
      return absl::OkStatus();
    });
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ReducedShape reduced,
                            ReduceAlong(input.shape(), ctx.input(1), keep_dims_));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.type(), reduced.output));
    return Reduce(ctx, loops_, input.type(), input.raw_data(), reduced.dims,
                  output->mutable_raw_data());
  }

 private:
  ReduceLoops loops_;
  bool keep_dims_;
};

REGISTER_KERNEL(KernelSpec("EuclideanNorm").Types("T", NumberTypes()).Types("Tidx", IndexTypes()),
                MakeKernel<EuclideanNormKernel>);

}  // namespace
}  // namespace troupe
