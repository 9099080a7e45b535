// AddN, ClipByValue, LeakyRelu and its gradient.
#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/kernel_registry.h"
#include "kernels/math/loops.h"
#include "kernels/simd/dispatch.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

class AddNKernel final : public Kernel {
 public:
  AddNKernel(KernelConstruction& c, absl::Status* status) {
    add_ = FindBinary(simd::kAdd, RemoveRef(c.input_type(0))).aa;
    if (add_ == nullptr) *status = absl::UnimplementedError("AddN of this element type");
  }

  absl::Status Compute(KernelContext& ctx) override {
    const int count = ctx.num_inputs();
    const Tensor& first = ctx.input(0);
    for (int i = 1; i < count; ++i) {
      if (!(ctx.input(i).shape() == first.shape())) {
        return InvalidArgument("the inputs must have the same shape; input 0 has ",
                               first.shape().ToString(), ", input ", i, " has ",
                               ctx.input(i).shape().ToString());
      }
    }
    if (count == 1) {
      ctx.PassThrough(0, 0);
      return absl::OkStatus();
    }
    // In place in the first input that allows it; blocks stay in the cache while all others are
    // added.
    int target = 0;
    for (int i = 0; i < count; ++i) {
      if (ctx.CanForward(i)) {
        target = i;
        break;
      }
    }
    absl::InlinedVector<const char*, 8> inputs;
    for (int i = 0; i < count; ++i) {
      inputs.push_back(static_cast<const char*>(ctx.input(i).raw_data()));
    }
    const int64_t n = first.num_elements(), size = ElementSize(first.type());
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(target, 0));
    char* out = static_cast<char*>(output->mutable_raw_data());
    // The order of additions must not depend on which buffer was taken over, unless there are only
    // two.
    const bool in_place_later = target > 1 && out == inputs[target];
    const int64_t grain =
        std::max<int64_t>(1, KernelContext::GrainFor(0.2 * count) / kBlock) * kBlock;
    ctx.ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
      alignas(64) char sum[kBlock * 16];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t m = std::min(kBlock, end - i), at = i * size;
        char* to = in_place_later ? sum : out + at;
        add_(inputs[0] + at, inputs[1] + at, to, m);
        for (int k = 2; k < count; ++k) {
          add_(to, inputs[k] + at, k + 1 == count ? out + at : to, m);
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kBlock = 1024;
  simd::BinaryFn add_;
};

template <typename T>
T Clip(T x, T low, T high) {
  if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    return T(Clip(x.real(), low.real(), high.real()), Clip(x.imag(), low.imag(), high.imag()));
  } else {
    const T below = x > high ? high : x;
    return below < low ? low : below;
  }
}

template <typename T>
void ClipBetween(const T* x, T low, T high, int64_t n, T* out) {
  if constexpr (sizeof(T) <= 2) {
    static const simd::BinaryFn minimum = FindBinary(simd::kMinimum, kElementType<T>).as;
    static const simd::BinaryFn maximum = FindBinary(simd::kMaximum, kElementType<T>).as;
    constexpr int64_t kBlock = 2048;
    const auto is_nan = [](T x) { return std::isnan(static_cast<float>(x)); };
    if (!is_nan(low) && !is_nan(high)) {  // NaN does not bound.
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t m = std::min(kBlock, n - i);
        minimum(x + i, &high, out + i, m);
        maximum(out + i, &low, out + i, m);
      }
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) out[i] = Clip(x[i], low, high);
}

absl::Status ClipKernel(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  for (int i = 1; i < 3; ++i) {
    const Shape& bound = ctx.input(i).shape();
    if (bound.rank() != 0 && !(bound == input.shape())) {
      return InvalidArgument(
          "clip_value_min and clip_value_max must be scalars or of the input's shape ",
          input.shape().ToString(), ", got ", ctx.input(1).shape().ToString(), " and ",
          ctx.input(2).shape().ToString());
    }
  }
  return SwitchType<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                    uint16_t, complex64, complex128>(
      input.type(), [&]<typename T>() -> absl::Status {
        const T* x = input.unchecked_data<T>();
        const T* low = ctx.input(1).unchecked_data<T>();
        const T* high = ctx.input(2).unchecked_data<T>();
        const int64_t low_step = ctx.input(1).rank() == 0 ? 0 : 1;
        const int64_t high_step = ctx.input(2).rank() == 0 ? 0 : 1;
        const int64_t n = input.num_elements();
        TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
        T* out = output->mutable_data<T>();
        ctx.ParallelFor(n, KernelContext::GrainFor(0.7), [&](int64_t begin, int64_t end) {
          if (low_step == 0 && high_step == 0) {
            ClipBetween(x + begin, *low, *high, end - begin, out + begin);
          } else {
            for (int64_t i = begin; i < end; ++i) {
              out[i] = Clip(x[i], low[i * low_step], high[i * high_step]);
            }
          }
        });
        return absl::OkStatus();
      });
}

class LeakyReluKernel final : public Kernel {
 public:
  LeakyReluKernel(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("alpha", &alpha_);
    fn_ = simd::Functions().rows[simd::TypeOf(c.input_type(0))].leaky_relu;
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const char* in = static_cast<const char*>(input.raw_data());
    const int64_t n = input.num_elements(), size = ElementSize(input.type());
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
    char* out = static_cast<char*>(output->mutable_raw_data());
    ctx.ParallelFor(n, KernelContext::GrainFor(0.2), [&](int64_t begin, int64_t end) {
      fn_(in + begin * size, out + begin * size, end - begin, alpha_);
    });
    return absl::OkStatus();
  }

 private:
  float alpha_ = 0;
  void (*fn_)(const void*, void*, int64_t, float);
};

class LeakyReluGradKernel final : public Kernel {
 public:
  LeakyReluGradKernel(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("alpha", &alpha_);
    fn_ = simd::Functions().rows[simd::TypeOf(c.input_type(0))].leaky_relu_grad;
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& g = ctx.input(0);
    const Tensor& x = ctx.input(1);
    if (!(g.shape() == x.shape())) {
      return InvalidArgument("gradients and features must have the same shape, got ",
                             g.shape().ToString(), " and ", x.shape().ToString());
    }
    const char* dy = static_cast<const char*>(g.raw_data());
    const char* features = static_cast<const char*>(x.raw_data());
    const int64_t n = g.num_elements(), size = ElementSize(g.type());
    TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                            ctx.ForwardEitherOrAllocate(0, 1, 0, g.type(), g.shape()));
    char* out = static_cast<char*>(output->mutable_raw_data());
    ctx.ParallelFor(n, KernelContext::GrainFor(0.2), [&](int64_t begin, int64_t end) {
      fn_(dy + begin * size, features + begin * size, out + begin * size, end - begin, alpha_);
    });
    return absl::OkStatus();
  }

 private:
  float alpha_ = 0;
  void (*fn_)(const void*, const void*, void*, int64_t, float);
};

std::vector<ElementType> ClipTypes() {
  using enum ElementType;
  return {kFloat, kDouble, kHalf,  kBfloat16, kInt8,      kInt16,
          kInt32, kInt64,  kUint8, kUint16,   kComplex64, kComplex128};
}

REGISTER_KERNEL(KernelSpec("AddN").Types("T", NumberTypes()), MakeKernel<AddNKernel>);
REGISTER_KERNEL(KernelSpec("ClipByValue").Types("T", ClipTypes()), MakeKernel<ClipKernel>);
REGISTER_KERNEL(KernelSpec("LeakyRelu").Types("T", FloatTypes()), MakeKernel<LeakyReluKernel>);
REGISTER_KERNEL(KernelSpec("LeakyReluGrad").Types("T", FloatTypes()),
                MakeKernel<LeakyReluGradKernel>);

}  // namespace
}  // namespace troupe
