// FusedBatchNorm, its versions V2 and V3 and their gradients (Ioffe and Szegedy, "Batch
// Normalization", 2015).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/widen.h"
#include "kernels/kernel.h"
#include "kernels/nn/batch_norm_shape.h"

namespace troupe {
namespace {

// For each channel c the sum of value(i, c) over its elements i. Pieces of fixed size, added in
// order.
template <typename Value>
std::vector<double> ChannelSums(KernelContext& ctx, const ChannelLayout& layout, Value value) {
  const int64_t channels = layout.channels;
  const bool last = layout.inner == 1;
  const int64_t piece =
      last ? std::clamp<int64_t>(32768 / std::max<int64_t>(channels, 1), 16, 4096) : 1;
  const int64_t pieces = (layout.outer + piece - 1) / piece;
  std::vector<double> sums(channels, 0.0);
  std::vector<float> partial(pieces * channels, 0.0f);
  const int64_t grain =
      std::max<int64_t>(1, 32768 / std::max<int64_t>(1, piece * channels * layout.inner));
  ctx.ParallelFor(pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      float* sum = partial.data() + p * channels;
      if (last) {
        for (int64_t row = p * piece; row < std::min(layout.outer, (p + 1) * piece); ++row) {
          for (int64_t c = 0; c < channels; ++c) sum[c] += value(row * channels + c, c);
        }
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        double total = 0;
        const int64_t first = (p * channels + c) * layout.inner;
        for (int64_t block = 0; block < layout.inner; block += 1024) {
          float part = 0;
          const int64_t block_end = std::min(layout.inner, block + 1024);
          for (int64_t i = block; i < block_end; ++i) part += value(first + i, c);
          total += part;
        }
        sum[c] = static_cast<float>(total);
      }
    }
  });
  for (int64_t p = 0; p < pieces; ++p) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += partial[p * channels + c];
  }
  return sums;
}

// Calls visit(i, c) for every element i of channel c, from several threads.
template <typename Visit>
void ForElements(KernelContext& ctx, const ChannelLayout& layout, Visit visit) {
  const int64_t row = layout.channels * layout.inner;
  ctx.ParallelFor(layout.outer, std::max<int64_t>(1, 32768 / std::max<int64_t>(row, 1)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t o = begin; o < end; ++o) {
                      for (int64_t c = 0; c < layout.channels; ++c) {
                        const int64_t first = o * row + c * layout.inner;
                        for (int64_t i = 0; i < layout.inner; ++i) visit(first + i, c);
                      }
                    }
                  });
}

class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(KernelConstruction& construction, absl::Status* status) {
    *status = attrs_.Read(construction);
  }

 protected:
  // Output 0 of x's type, to be filled by `fill(float*)`.
  template <typename Fill>
  absl::Status FillOutput(KernelContext& ctx, const Tensor& x, Fill fill) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.type(), x.shape()));
    if (x.type() == ElementType::kFloat) {
      fill(out->mutable_data<float>());
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(ElementType::kFloat, x.shape()));
    fill(wide.mutable_data<float>());
    NarrowTo(ctx, wide, out);
    return absl::OkStatus();
  }

  absl::StatusOr<float*> ChannelOutput(KernelContext& ctx, int i, int64_t channels) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(i, ElementType::kFloat, Shape({channels})));
    return out->mutable_data<float>();
  }

  BatchNormAttrs attrs_;
};

class FusedBatchNormKernel final : public BatchNormKernel {
 public:
  using BatchNormKernel::BatchNormKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ChannelLayout layout, CheckBatchNorm(ctx, attrs_));
    const int64_t channels = layout.channels;
    float* out[4];  // batch mean and variance, saved mean and variance
    for (int i = 0; i < 4; ++i) {
      TROUPE_ASSIGN_OR_RETURN(out[i], ChannelOutput(ctx, i + 1, channels));
    }
    if (ctx.num_outputs() == 6) {  // reserve_space_3, of use to other devices only
      TROUPE_ASSIGN_OR_RETURN(Tensor * reserve,
                              ctx.AllocateOutput(5, ElementType::kFloat, Shape()));
      *reserve->mutable_data<float>() = 0;
    }
    if (x.num_elements() == 0) {
      std::fill(out[0], out[0] + channels, std::numeric_limits<float>::quiet_NaN());
      std::fill(out[1], out[1] + channels, std::numeric_limits<float>::quiet_NaN());
      std::fill(out[2], out[2] + channels, 0.0f);
      std::fill(out[3], out[3] + channels, 0.0f);
      return FillOutput(ctx, x, [](float*) {});
    }
    TROUPE_ASSIGN_OR_RETURN(const Tensor wide, Widened(ctx, x));
    const float* in = wide.unchecked_data<float>();
    const float* scale = ctx.input(1).unchecked_data<float>();
    const float* offset = ctx.input(2).unchecked_data<float>();
    if (attrs_.is_training) {
      const double count = static_cast<double>(layout.per_channel());
      const std::vector<double> sums =
          ChannelSums(ctx, layout, [&](int64_t i, int64_t) { return in[i]; });
      for (int64_t c = 0; c < channels; ++c) out[2][c] = static_cast<float>(sums[c] / count);
      const float* mean = out[2];
      const std::vector<double> squares = ChannelSums(ctx, layout, [&](int64_t i, int64_t c) {
        const float d = in[i] - mean[c];
        return d * d;
      });
      for (int64_t c = 0; c < channels; ++c) {
        out[3][c] = static_cast<float>(squares[c] / count);
        const float unbiased = static_cast<float>(squares[c] / std::max(count - 1, 1.0));
        out[0][c] = mean[c];
        out[1][c] = unbiased;
        if (attrs_.factor != 1.0f) {
          out[0][c] = (1 - attrs_.factor) * ctx.input(3).unchecked_data<float>()[c] +
                      attrs_.factor * mean[c];
          out[1][c] = (1 - attrs_.factor) * ctx.input(4).unchecked_data<float>()[c] +
                      attrs_.factor * unbiased;
        }
      }
    } else {
      for (int i = 0; i < 4; ++i) {
        const float* given = ctx.input(3 + i % 2).unchecked_data<float>();
        std::copy(given, given + channels, out[i]);
      }
    }
    const float* mean = out[2];
    std::vector<float> factor(channels);
    for (int64_t c = 0; c < channels; ++c)
      factor[c] = scale[c] / std::sqrt(out[3][c] + attrs_.epsilon);
    return FillOutput(ctx, x, [&](float* y) {
      ForElements(ctx, layout,
                  [&](int64_t i, int64_t c) { y[i] = (in[i] - mean[c]) * factor[c] + offset[c]; });
    });
  }
};

class FusedBatchNormGradKernel final : public BatchNormKernel {
 public:
  using BatchNormKernel::BatchNormKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& dy = ctx.input(0);
    const Tensor& x = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ChannelLayout layout, CheckBatchNormGrad(ctx, attrs_));
    const int64_t channels = layout.channels;
    TROUPE_ASSIGN_OR_RETURN(float* scale_gradient, ChannelOutput(ctx, 1, channels));
    TROUPE_ASSIGN_OR_RETURN(float* offset_gradient, ChannelOutput(ctx, 2, channels));
    TROUPE_RETURN_IF_ERROR(ChannelOutput(ctx, 3, 0).status());
    TROUPE_RETURN_IF_ERROR(ChannelOutput(ctx, 4, 0).status());
    if (x.num_elements() == 0) {
      std::fill(scale_gradient, scale_gradient + channels, 0.0f);
      std::fill(offset_gradient, offset_gradient + channels, 0.0f);
      return FillOutput(ctx, x, [](float*) {});
    }
    TROUPE_ASSIGN_OR_RETURN(const Tensor wide_x, Widened(ctx, x));
    TROUPE_ASSIGN_OR_RETURN(const Tensor wide_dy, Widened(ctx, dy));
    const float* in = wide_x.unchecked_data<float>();
    const float* grad = wide_dy.unchecked_data<float>();
    const float* scale = ctx.input(2).unchecked_data<float>();
    const float* mean = ctx.input(3).unchecked_data<float>();
    const float* variance = ctx.input(4).unchecked_data<float>();
    const std::vector<double> sums =
        ChannelSums(ctx, layout, [&](int64_t i, int64_t) { return grad[i]; });
    const std::vector<double> products =
        ChannelSums(ctx, layout, [&](int64_t i, int64_t c) { return grad[i] * (in[i] - mean[c]); });
    // dx = factor (dy - shift - (x - mean) slope); the statistics depend on x in training only.
    std::vector<float> factor(channels), shift(channels, 0.0f), slope(channels, 0.0f);
    const double count = static_cast<double>(layout.per_channel());
    for (int64_t c = 0; c < channels; ++c) {
      const double inverse = 1.0 / std::sqrt(static_cast<double>(variance[c]) + attrs_.epsilon);
      scale_gradient[c] = static_cast<float>(products[c] * inverse);
      offset_gradient[c] = static_cast<float>(sums[c]);
      factor[c] = static_cast<float>(scale[c] * inverse);
      if (attrs_.is_training) {
        shift[c] = static_cast<float>(sums[c] / count);
        slope[c] = static_cast<float>(products[c] / count * inverse * inverse);
      }
    }
    return FillOutput(ctx, x, [&](float* dx) {
      if (!attrs_.is_training) {  // x has no part in it, not even if it is infinite.
        ForElements(ctx, layout, [&](int64_t i, int64_t c) { dx[i] = factor[c] * grad[i]; });
        return;
      }
      ForElements(ctx, layout, [&](int64_t i, int64_t c) {
        dx[i] = factor[c] * (grad[i] - shift[c] - (in[i] - mean[c]) * slope[c]);
      });
    });
  }
};

const std::vector<ElementType>& InputTypes() {
  static const auto* types =
      new std::vector<ElementType>{ElementType::kBfloat16, ElementType::kFloat, ElementType::kHalf};
  return *types;
}
KernelSpec Version1(const char* op) { return KernelSpec(op).Types("T", {ElementType::kFloat}); }
KernelSpec Version2(const char* op) {
  return KernelSpec(op).Types("T", InputTypes()).Types("U", {ElementType::kFloat});
}

REGISTER_KERNEL(Version1("FusedBatchNorm"), MakeKernel<FusedBatchNormKernel>);
REGISTER_KERNELS(Version2("FusedBatchNormV2"), MakeKernel<FusedBatchNormKernel>,
                 "FusedBatchNormV3");
REGISTER_KERNEL(Version1("FusedBatchNormGrad"), MakeKernel<FusedBatchNormGradKernel>);
REGISTER_KERNELS(Version2("FusedBatchNormGradV2"), MakeKernel<FusedBatchNormGradKernel>,
                 "FusedBatchNormGradV3");

}  // namespace
}  // namespace troupe
