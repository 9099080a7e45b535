// FusedBatchNorm, its versions V2 and V3 and their gradients (Ioffe and Szegedy, "Batch
// Normalization", 2015).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/nn/batch_norm_shape.h"
#include "kernels/simd/batch_norm.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

// A tensor as rows of lanes, each lane of one channel, so that vectors are full whatever the number
// of channels is: several pixels side by side where channels are last, parts of a channel's pixels
// where they are first.
class ChannelLanes {
 public:
  explicit ChannelLanes(const ChannelLayout& layout)
      : layout_(layout), channels_last_(layout.inner == 1) {
    if (channels_last_) {
      width_ = layout.channels;
      while (width_ < kLanes || (width_ % kVector != 0 && width_ < kVector * kLanes)) {
        width_ += layout.channels;
      }
    }
    channel_.resize(channels_last_ ? width_ : layout.channels * kLanes);
    for (int64_t i = 0; i < static_cast<int64_t>(channel_.size()); ++i) {
      channel_[i] = channels_last_ ? i % layout.channels : i / kLanes;
    }
  }

  int64_t outer() const { return layout_.outer; }
  /// Steps of the outer dimension that are worth handing to a thread; none may be empty.
  int64_t grain() const {
    return std::max<int64_t>(1, kPieceElements / (layout_.channels * layout_.inner));
  }

  /// One value for each lane, from one for each channel.
  std::vector<float> Spread(const float* values) const {
    std::vector<float> spread(channel_.size());
    for (size_t lane = 0; lane < spread.size(); ++lane) spread[lane] = values[channel_[lane]];
    return spread;
  }

  /// Calls visit(first element, rows, columns, first lane) for dense matrices that cover
  /// [begin, end) of the layout's outer dimension.
  template <typename Visit>
  void ForMatrices(int64_t begin, int64_t end, Visit visit) const {
    if (channels_last_) {
      return ForRows(begin * layout_.channels, end * layout_.channels, width_, 0, visit);
    }
    for (int64_t i = begin * layout_.channels; i < end * layout_.channels; ++i) {
      ForRows(i * layout_.inner, (i + 1) * layout_.inner, kLanes, i % layout_.channels * kLanes,
              visit);
    }
  }

  /// `num_sums` sums for each channel, one after another: visit(first element, rows, columns, first
  /// lane, sums) adds to sums[0] and so on, one for each lane. Pieces of fixed size, added in
  /// order.
  template <typename Visit>
  std::vector<double> Sums(KernelContext& ctx, int num_sums, Visit visit) const;

 private:
  static constexpr int64_t kVector = 16, kLanes = 64, kPieceElements = 32768;

  template <typename Visit>
  static void ForRows(int64_t begin, int64_t end, int64_t width, int64_t lane, Visit visit) {
    const int64_t rows = (end - begin) / width, rest = begin + rows * width;
    if (rows > 0) visit(begin, rows, width, lane);
    if (rest < end) visit(rest, 1, end - rest, lane);
  }

  const ChannelLayout layout_;
  const bool channels_last_;
  int64_t width_ = kLanes;
  std::vector<int64_t> channel_;  // of each lane
};

template <typename Visit>
std::vector<double> ChannelLanes::Sums(KernelContext& ctx, int num_sums, Visit visit) const {
  const int64_t channels = layout_.channels;
  int64_t piece = 1;  // in steps of the outer dimension
  if (channels_last_) {
    piece = std::clamp<int64_t>(kPieceElements / channels, 16, 4096);
    piece = (piece + width_ / channels - 1) / (width_ / channels) * (width_ / channels);
  }
  const int64_t pieces = (layout_.outer + piece - 1) / piece;
  const int64_t grain_pieces = std::max<int64_t>(1, grain() / piece);
  std::vector<float> partial(pieces * num_sums * channels, 0.0f);
  ctx.ParallelFor(pieces, grain_pieces, [&](int64_t begin, int64_t end) {
    const size_t lanes = channel_.size();
    std::vector<float> lane_sums(lanes * num_sums);
    std::vector<float*> sums(num_sums);
    for (int64_t p = begin; p < end; ++p) {
      std::fill(lane_sums.begin(), lane_sums.end(), 0.0f);
      ForMatrices(p * piece, std::min(layout_.outer, (p + 1) * piece),
                  [&](int64_t first, int64_t rows, int64_t columns, int64_t lane) {
                    for (int i = 0; i < num_sums; ++i) sums[i] = &lane_sums[i * lanes + lane];
                    visit(first, rows, columns, lane, sums.data());
                  });
      for (int i = 0; i < num_sums; ++i) {
        float* to = &partial[(p * num_sums + i) * channels];
        for (size_t lane = 0; lane < lanes; ++lane)
          to[channel_[lane]] += lane_sums[i * lanes + lane];
      }
    }
  });
  std::vector<double> total(num_sums * channels, 0.0);
  for (int64_t p = 0; p < pieces; ++p) {
    for (size_t i = 0; i < total.size(); ++i) total[i] += partial[p * total.size() + i];
  }
  return total;
}

// A tensor's elements, whatever their type.
class Elements {
 public:
  explicit Elements(const Tensor& tensor)
      : data_(static_cast<const char*>(tensor.raw_data())), size_(ElementSize(tensor.type())) {}
  const void* at(int64_t i) const { return data_ + i * size_; }

 private:
  const char* data_;
  int64_t size_;
};

class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(KernelConstruction& construction, absl::Status* status) {
    *status = attrs_.Read(construction);
  }

 protected:
  // Makes output 0 of x's type and shape, not empty: fill(first element, rows, columns, first lane,
  // where to) for matrices that cover it.
  template <typename Fill>
  static absl::Status FillOutput(KernelContext& ctx, const Tensor& x, const ChannelLanes& lanes,
                                 Fill fill) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.type(), x.shape()));
    char* to = static_cast<char*>(out->mutable_raw_data());
    const int64_t size = ElementSize(x.type());
    ctx.ParallelFor(lanes.outer(), lanes.grain(), [&](int64_t begin, int64_t end) {
      lanes.ForMatrices(begin, end,
                        [&](int64_t first, int64_t rows, int64_t columns, int64_t lane) {
                          fill(first, rows, columns, lane, to + first * size);
                        });
    });
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
      return ctx.AllocateOutput(0, x.type(), x.shape()).status();
    }
    const BatchNormFunctions& functions = BatchNorm(simd::TypeOf(x.type()));
    const Elements in(x);
    const ChannelLanes lanes(layout);
    const float* scale = ctx.input(1).unchecked_data<float>();
    const float* offset = ctx.input(2).unchecked_data<float>();
    if (attrs_.is_training) {
      const double count = static_cast<double>(layout.per_channel());
      const std::vector<double> sums = lanes.Sums(
          ctx, 1, [&](int64_t first, int64_t rows, int64_t columns, int64_t, float** to) {
            functions.sum(in.at(first), rows, columns, to[0]);
          });
      for (int64_t c = 0; c < channels; ++c) out[2][c] = static_cast<float>(sums[c] / count);
      const float* mean = out[2];
      const std::vector<float> center = lanes.Spread(mean);
      const std::vector<double> squares = lanes.Sums(
          ctx, 1, [&](int64_t first, int64_t rows, int64_t columns, int64_t lane, float** to) {
            functions.sum_squares(in.at(first), &center[lane], rows, columns, to[0]);
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
    std::vector<float> factor(channels);
    for (int64_t c = 0; c < channels; ++c)
      factor[c] = scale[c] / std::sqrt(out[3][c] + attrs_.epsilon);
    const std::vector<float> means = lanes.Spread(out[2]), factors = lanes.Spread(factor.data()),
                             offsets = lanes.Spread(offset);
    return FillOutput(ctx, x, lanes,
                      [&](int64_t first, int64_t rows, int64_t columns, int64_t lane, void* y) {
                        functions.normalize(in.at(first), &means[lane], &factors[lane],
                                            &offsets[lane], rows, columns, y);
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
      return ctx.AllocateOutput(0, x.type(), x.shape()).status();
    }
    const BatchNormFunctions& functions = BatchNorm(simd::TypeOf(x.type()));
    const Elements in(x), gradient(dy);
    const ChannelLanes lanes(layout);
    const float* scale = ctx.input(2).unchecked_data<float>();
    const float* mean = ctx.input(3).unchecked_data<float>();
    const float* variance = ctx.input(4).unchecked_data<float>();
    const std::vector<float> means = lanes.Spread(mean);
    const std::vector<double> sums = lanes.Sums(
        ctx, 2, [&](int64_t first, int64_t rows, int64_t columns, int64_t lane, float** to) {
          functions.sum_products(gradient.at(first), in.at(first), &means[lane], rows, columns,
                                 to[0], to[1]);
        });
    const double* products = sums.data() + channels;
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
    const std::vector<float> factors = lanes.Spread(factor.data()),
                             shifts = lanes.Spread(shift.data()),
                             slopes = lanes.Spread(slope.data());
    return FillOutput(
        ctx, x, lanes, [&](int64_t first, int64_t rows, int64_t columns, int64_t lane, void* dx) {
          if (attrs_.is_training) {
            functions.gradient(gradient.at(first), in.at(first),
                               {&means[lane], &factors[lane], &shifts[lane], &slopes[lane]}, rows,
                               columns, dx);
          } else {  // x has no part in it, not even if it is infinite.
            functions.scale(gradient.at(first), &factors[lane], rows, columns, dx);
          }
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
