// Batch normalization of cards against formulas in double precision: both layouts, counts of
// channels around those of packs, tiles and blocks, values far from 0.
#include <numeric>

#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr double kEpsilon = 1e-3;

class BatchNorm : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

/// Elements [outer, channels, inner].
struct Layout {
  int64_t outer, channels, inner = 1;

  int64_t count() const { return outer * inner; }
  bool nchw() const { return inner > 1; }
  Shape shape() const {
    return nchw() ? Shape({outer, channels, 1, inner}) : Shape({outer, 1, 1, channels});
  }
  int64_t ChannelOf(int64_t i) const { return i / inner % channels; }
};

/// Numbers with about the mean and the deviation, as the type has them.
Tensor Normal(ElementType type, const Shape& shape, uint64_t seed, double mean, double deviation) {
  Tensor tensor = *Tensor::Allocate(type, shape);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, deviation);
  SwitchPlain(type, [&]<typename T>() {
    if constexpr (kIsRealFloat<T>) {
      for (T& value : tensor.mutable_values<T>()) value = T(static_cast<float>(normal(random)));
    }
  });
  return tensor;
}

std::vector<double> Doubles(const Tensor& tensor) {
  std::vector<double> values;
  SwitchPlain(tensor.type(), [&]<typename T>() {
    if constexpr (kIsRealFloat<T>) {
      for (const T value : tensor.unchecked_values<T>()) {
        values.push_back(static_cast<double>(value));
      }
    }
  });
  return values;
}

/// What is at most `relative` of itself and `absolute` away.
void ExpectNear(const Tensor& got, const std::vector<double>& want, double relative,
                double absolute, const char* what) {
  const std::vector<double> values = Doubles(got);
  ASSERT_EQ(values.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(values[i], want[i], relative * std::abs(want[i]) + absolute) << what << " " << i;
  }
}

double Rounding(ElementType type) {
  return type == kFloat ? 2e-6 : type == kHalf ? 0x1p-11 : 0x1p-8;
}

struct Moments {
  std::vector<double> mean, variance;
};
Moments MomentsOf(const std::vector<double>& x, const Layout& layout) {
  Moments moments;
  moments.mean.resize(layout.channels);
  moments.variance.resize(layout.channels);
  const auto count = static_cast<double>(layout.count());
  const auto n = static_cast<int64_t>(x.size());
  for (int64_t i = 0; i < n; ++i) moments.mean[layout.ChannelOf(i)] += x[i] / count;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = layout.ChannelOf(i);
    moments.variance[c] += (x[i] - moments.mean[c]) * (x[i] - moments.mean[c]) / count;
  }
  return moments;
}

/// Of numbers with this mean and a deviation of 1.
void Check(ElementType type, const Layout& layout, Operand::As as, bool training, double center) {
  SCOPED_TRACE(StrCat(ElementTypeName(type), " [", layout.outer, ",", layout.channels, ",",
                      layout.inner, "], as ", static_cast<int>(as),
                      training ? ", training, about " : ", about ", center));
  const Shape of_channels({layout.channels});
  const Tensor x = Normal(type, layout.shape(), 1, center, 1);
  const Tensor dy = Normal(type, layout.shape(), 2, 0, 1);
  const Tensor scale = Normal(kFloat, of_channels, 3, 1, 0.2);
  const Tensor offset = Normal(kFloat, of_channels, 4, 0, 1);
  const Tensor given_mean = Normal(kFloat, of_channels, 5, center, 1);
  const Tensor given_variance = Numbers(kFloat, of_channels, 6, Values::kPositive);
  const Tensor none = *Tensor::Allocate(kFloat, Shape({0}));
  const auto attrs = [&](NodeSpec& node) {
    node.Attr("is_training", training)
        .Attr("epsilon", static_cast<float>(kEpsilon))
        .Attr("data_format", layout.nchw() ? "NCHW" : "NHWC");
  };
  const absl::StatusOr<std::vector<Tensor>> out =
      AgainstCpu::OutputsOf("FusedBatchNormV3",
                            {{x, as},
                             {scale},
                             {offset},
                             {training ? none : given_mean},
                             {training ? none : given_variance}},
                            attrs, /*card=*/true);
  ASSERT_TRUE(out.ok()) << out.status();

  const std::vector<double> xs = Doubles(x), dys = Doubles(dy), scales = Doubles(scale);
  const std::vector<double> offsets = Doubles(offset);
  const Moments moments =
      training ? MomentsOf(xs, layout) : Moments{Doubles(given_mean), Doubles(given_variance)};
  const auto n = static_cast<int64_t>(xs.size());
  const auto count = static_cast<double>(layout.count());
  const double rounding = Rounding(type);
  // Means and differences have the precision of float.
  const double of_means = std::abs(center) * 3e-7 + 2e-6;
  ExpectNear((*out)[3], moments.mean, 3e-7, of_means, "mean");
  ExpectNear((*out)[4], moments.variance, 1e-5, 1e-6, "variance");
  std::vector<double> y(n);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = layout.ChannelOf(i);
    y[i] = (xs[i] - moments.mean[c]) / std::sqrt(moments.variance[c] + kEpsilon) * scales[c] +
           offsets[c];
  }
  // A variance of next to nothing multiplies what rounding leaves.
  ExpectNear((*out)[0], y, rounding, 100 * of_means, "y");

  const absl::StatusOr<std::vector<Tensor>> gradients = AgainstCpu::OutputsOf(
      "FusedBatchNormGradV3", {{dy, as}, {x, as}, {scale}, {(*out)[3]}, {(*out)[4]}, {(*out)[5]}},
      attrs, /*card=*/true);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  std::vector<double> sums(layout.channels), products(layout.channels), sizes(layout.channels);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = layout.ChannelOf(i);
    sums[c] += dys[i];
    products[c] += dys[i] * (xs[i] - moments.mean[c]);
    sizes[c] += std::abs(dys[i]);
  }
  std::vector<double> dx(n), scale_gradient(layout.channels);
  for (int64_t c = 0; c < layout.channels; ++c) {
    scale_gradient[c] = products[c] / std::sqrt(moments.variance[c] + kEpsilon);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = layout.ChannelOf(i);
    const double inverse = 1 / std::sqrt(moments.variance[c] + kEpsilon);
    double change = dys[i];
    if (training) {
      change -=
          sums[c] / count + (xs[i] - moments.mean[c]) * products[c] / count * inverse * inverse;
    }
    dx[i] = scales[c] * inverse * change;
  }
  const double most = *std::max_element(sizes.begin(), sizes.end());
  ExpectNear((*gradients)[0], dx, rounding, 1000 * of_means, "dx");
  ExpectNear((*gradients)[1], scale_gradient, 1e-5, 40 * most * of_means, "scale");
  ExpectNear((*gradients)[2], sums, 1e-5, most * 1e-6, "offset");
}

TEST_F(BatchNorm, AnyCountOfChannels) {
  for (const ElementType type : {kFloat, kHalf, kBfloat16}) {
    for (const Layout& layout : {Layout{2, 1},
                                 {37, 3},
                                 {2, 8},
                                 {300, 8},
                                 {5, 64},
                                 {3000, 16},
                                 {90, 257},
                                 {7, 520},
                                 {3, 2056},
                                 {2, 5000}}) {
      for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
        for (const bool training : {false, true}) Check(type, layout, as, training, 0.5);
      }
    }
  }
}

TEST_F(BatchNorm, ChannelsFirst) {
  for (const ElementType type : {kFloat, kHalf, kBfloat16}) {
    for (const Layout& layout :
         {Layout{2, 3, 7}, {2, 3, 8}, {1, 5, 64}, {3, 4, 3000}, {300, 2, 5}, {5, 40, 16}}) {
      for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
        for (const bool training : {false, true}) Check(type, layout, as, training, 0.5);
      }
    }
  }
}

/// One element is no deviation.
TEST_F(BatchNorm, OneRow) {
  for (const ElementType type : {kFloat, kHalf, kBfloat16}) {
    for (const int64_t channels : {1, 8, 33, 1000}) {
      const Tensor x = Normal(type, Shape({1, 1, 1, channels}), 1, 3, 1);
      const Tensor ones = Normal(kFloat, Shape({channels}), 1, 1, 0);
      const Tensor none = *Tensor::Allocate(kFloat, Shape({0}));
      const auto out = AgainstCpu::OutputsOf(
          "FusedBatchNormV3", {{x}, {ones}, {ones}, {none}, {none}}, nullptr, /*card=*/true);
      ASSERT_TRUE(out.ok()) << out.status();
      const std::vector<double> zeros(channels), offsets(channels, 1.0);
      ExpectNear((*out)[0], offsets, 0, 0, "y");
      ExpectNear((*out)[3], Doubles(x), 0, 0, "mean");
      ExpectNear((*out)[4], zeros, 0, 0, "variance");
    }
  }
}

/// The squares of such numbers have no digits left for the deviation.
TEST_F(BatchNorm, FarFromZero) {
  for (const Layout& layout : {Layout{50'000, 4}, {4000, 33}, {2000, 128}, {3, 4, 5000}}) {
    Check(kFloat, layout, Operand::kConstant, /*training=*/true, 1e4);
    Check(kFloat, layout, Operand::kConstant, /*training=*/true, -1e4);
  }
}

/// The first rows are zeros, as in a picture with a margin.
TEST_F(BatchNorm, AMarginOfZeros) {
  const Layout layout{20'000, 8};
  Tensor x = Normal(kFloat, layout.shape(), 1, 1e4, 1);
  std::fill_n(x.mutable_data<float>(), 3 * layout.channels, 0.0f);
  const Tensor ones = Normal(kFloat, Shape({layout.channels}), 1, 1, 0);
  const Tensor none = *Tensor::Allocate(kFloat, Shape({0}));
  const auto out = AgainstCpu::OutputsOf("FusedBatchNormV3", {{x}, {ones}, {ones}, {none}, {none}},
                                         nullptr, /*card=*/true);
  ASSERT_TRUE(out.ok()) << out.status();
  const Moments moments = MomentsOf(Doubles(x), layout);
  ExpectNear((*out)[3], moments.mean, 3e-7, 0, "mean");
  ExpectNear((*out)[4], moments.variance, 1e-5, 0, "variance");
}

/// One element that is far from all others leaves them their digits, wherever it is; one whose
/// square is infinite makes the variance so, and nothing else.
TEST_F(BatchNorm, OneOutlier) {
  const Layout layout{20'001, 8};
  const Tensor ones = Normal(kFloat, Shape({layout.channels}), 1, 1, 0);
  const Tensor none = *Tensor::Allocate(kFloat, Shape({0}));
  for (const int64_t row : {int64_t{0}, layout.outer / 2, layout.outer - 1, int64_t{77}}) {
    for (const float outlier : {1e6f, -1e20f}) {
      Tensor x = Normal(kFloat, layout.shape(), 1, 0, 1);
      std::fill_n(x.mutable_data<float>() + row * layout.channels, layout.channels, outlier);
      const auto out = AgainstCpu::OutputsOf(
          "FusedBatchNormV3", {{x}, {ones}, {ones}, {none}, {none}}, nullptr, /*card=*/true);
      ASSERT_TRUE(out.ok()) << out.status();
      const Moments moments = MomentsOf(Doubles(x), layout);
      ExpectNear((*out)[3], moments.mean, 1e-5, 0, "mean");
      if (outlier > 0) {
        ExpectNear((*out)[4], moments.variance, 1e-5, 0, "variance");
      } else {
        for (const double variance : Doubles((*out)[4])) EXPECT_EQ(variance, HUGE_VAL);
        ExpectNear((*out)[0], std::vector<double>(layout.outer * layout.channels, 1), 0, 0, "y");
      }
    }
  }
}

}  // namespace
}  // namespace troupe::testing
