#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

constexpr double kEpsilon = 0.01;

struct Case {
  const char* format;
  Shape shape;
};
const Case kCases[] = {{"NHWC", {3, 4, 5, 6}},     {"NHWC", {2, 1, 1, 300}},
                       {"NHWC", {30, 30, 30, 3}},  {"NCHW", {3, 4, 5, 6}},
                       {"NCHW", {2, 3, 40, 41}},   {"NDHWC", {2, 3, 2, 3, 4}},
                       {"NCDHW", {2, 3, 2, 3, 4}}, {"NHWC", {1, 1, 1, 2}}};

int64_t Channels(const Case& c) {
  return c.format[1] == 'C' ? c.shape.dim(1) : c.shape.dims().back();
}
int64_t ChannelOf(const Case& c, int64_t i) {
  if (c.format[1] != 'C') return i % Channels(c);
  return i / (c.shape.num_elements() / c.shape.dim(0) / c.shape.dim(1)) % c.shape.dim(1);
}

// Mean and variance (not corrected) for each channel.
void Moments(const Case& c, const Tensor& x, std::vector<double>* mean,
             std::vector<double>* variance) {
  const int64_t channels = Channels(c);
  const double count = static_cast<double>(c.shape.num_elements() / channels);
  mean->assign(channels, 0);
  variance->assign(channels, 0);
  for (int64_t i = 0; i < x.num_elements(); ++i) (*mean)[ChannelOf(c, i)] += At(x, i) / count;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const double d = At(x, i) - (*mean)[ChannelOf(c, i)];
    (*variance)[ChannelOf(c, i)] += d * d / count;
  }
}

Tensor Vector(const std::vector<double>& v) {
  return MakeTensor(ElementType::kFloat, Shape({static_cast<int64_t>(v.size())}), v);
}

TEST(BatchNormTest, Training) {
  for (const Case& c : kCases) {
    for (ElementType type : {ElementType::kFloat, ElementType::kHalf, ElementType::kBfloat16}) {
      for (double factor : {1.0, 0.25}) {
        SCOPED_TRACE(absl::StrCat(c.format, c.shape.ToString(), ElementTypeName(type), factor));
        const Tensor x = RandomTensor(type, c.shape, -1, 3, 1);
        const Shape per_channel({Channels(c)});
        const Tensor scale = RandomTensor(ElementType::kFloat, per_channel, 0.5, 2, 2);
        const Tensor offset = RandomTensor(ElementType::kFloat, per_channel, -1, 1, 3);
        const Tensor old_mean = RandomTensor(ElementType::kFloat, per_channel, -1, 1, 4);
        const Tensor old_variance = RandomTensor(ElementType::kFloat, per_channel, 0, 1, 5);
        OpTest op("FusedBatchNormV3", 2);
        op.Attr("data_format", c.format)
            .Attr("epsilon", kEpsilon)
            .Attr("exponential_avg_factor", factor)
            .Input(x)
            .Input(scale)
            .Input(offset)
            .Input(factor == 1 ? Tensor::Vector<float>({}) : old_mean)
            .Input(factor == 1 ? Tensor::Vector<float>({}) : old_variance);
        ASSERT_EQ(op.Run(), absl::OkStatus());
        std::vector<double> mean, variance;
        Moments(c, x, &mean, &variance);
        std::vector<double> y(x.num_elements());
        for (size_t i = 0; i < y.size(); ++i) {
          const int64_t ch = ChannelOf(c, static_cast<int64_t>(i));
          y[i] = (At(x, static_cast<int64_t>(i)) - mean[ch]) / std::sqrt(variance[ch] + kEpsilon) *
                     At(scale, ch) +
                 At(offset, ch);
        }
        const double tolerance = type == ElementType::kFloat ? 1e-5 : 1e-2;
        ExpectNear(op.output(0), MakeTensor(type, c.shape, y), tolerance, tolerance);
        ExpectNear(op.output(3), Vector(mean), 1e-5, 1e-5);
        ExpectNear(op.output(4), Vector(variance), 1e-5, 1e-5);
        const double n = static_cast<double>(c.shape.num_elements() / Channels(c));
        for (size_t ch = 0; ch < mean.size(); ++ch) {
          const int64_t i = static_cast<int64_t>(ch);
          mean[ch] = (1 - factor) * At(old_mean, i) + factor * mean[ch];
          variance[ch] =
              (1 - factor) * At(old_variance, i) + factor * variance[ch] * n / std::max(n - 1, 1.0);
        }
        ExpectNear(op.output(1), Vector(mean), 1e-5, 1e-5);
        ExpectNear(op.output(2), Vector(variance), 1e-5, 1e-5);
      }
    }
  }
}

TEST(BatchNormTest, Inference) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(absl::StrCat(c.format, c.shape.ToString()));
    const Tensor x = RandomTensor(ElementType::kFloat, c.shape, -1, 3, 1);
    const Shape per_channel({Channels(c)});
    const Tensor scale = RandomTensor(ElementType::kFloat, per_channel, 0.5, 2, 2);
    const Tensor offset = RandomTensor(ElementType::kFloat, per_channel, -1, 1, 3);
    const Tensor mean = RandomTensor(ElementType::kFloat, per_channel, -1, 1, 4);
    const Tensor variance = RandomTensor(ElementType::kFloat, per_channel, 0, 1, 5);
    OpTest op("FusedBatchNormV3");
    op.Attr("data_format", c.format).Attr("epsilon", kEpsilon).Attr("is_training", false);
    op.Input(x).Input(scale).Input(offset).Input(mean).Input(variance);
    ASSERT_EQ(op.Run(), absl::OkStatus());
    std::vector<double> y(x.num_elements());
    for (size_t i = 0; i < y.size(); ++i) {
      const int64_t ch = ChannelOf(c, static_cast<int64_t>(i));
      y[i] = (At(x, static_cast<int64_t>(i)) - At(mean, ch)) /
                 std::sqrt(At(variance, ch) + kEpsilon) * At(scale, ch) +
             At(offset, ch);
    }
    ExpectNear(op.output(0), MakeTensor(ElementType::kFloat, c.shape, y), 1e-5, 1e-5);
    ExpectEqual(op.output(1), mean);
    ExpectEqual(op.output(2), variance);
  }
}

// The gradient of <dy, y> by differences of a double-precision forward pass.
TEST(BatchNormTest, GradientsAgreeWithDifferences) {
  const Case c = {"NHWC", {2, 2, 3, 2}};
  const int64_t n = c.shape.num_elements(), channels = 2;
  const Tensor x = RandomTensor(ElementType::kFloat, c.shape, -1, 3, 1);
  const Tensor dy = RandomTensor(ElementType::kFloat, c.shape, -1, 1, 2);
  const Tensor scale = RandomTensor(ElementType::kFloat, Shape({channels}), 0.5, 2, 3);
  const Tensor given_mean = RandomTensor(ElementType::kFloat, Shape({channels}), -1, 1, 4);
  const Tensor given_variance = RandomTensor(ElementType::kFloat, Shape({channels}), 0.2, 1, 5);
  for (bool training : {true, false}) {
    const auto loss = [&](const std::vector<double>& in, const std::vector<double>& s) {
      std::vector<double> mean(channels), variance(channels);
      for (int64_t ch = 0; ch < channels; ++ch) {
        mean[ch] = At(given_mean, ch);
        variance[ch] = At(given_variance, ch);
      }
      if (training) {
        const double count = static_cast<double>(n / channels);
        mean.assign(channels, 0);
        variance.assign(channels, 0);
        for (int64_t i = 0; i < n; ++i) mean[i % channels] += in[i] / count;
        for (int64_t i = 0; i < n; ++i) {
          variance[i % channels] +=
              (in[i] - mean[i % channels]) * (in[i] - mean[i % channels]) / count;
        }
      }
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t ch = i % channels;
        sum += At(dy, i) * (in[i] - mean[ch]) / std::sqrt(variance[ch] + kEpsilon) * s[ch];
      }
      return sum;
    };
    std::vector<double> in(n), s(channels), mean, variance;
    for (int64_t i = 0; i < n; ++i) in[i] = At(x, i);
    for (int64_t ch = 0; ch < channels; ++ch) s[ch] = At(scale, ch);
    Moments(c, x, &mean, &variance);
    OpTest op("FusedBatchNormGradV3");
    op.Attr("epsilon", kEpsilon).Attr("is_training", training);
    op.Input(dy).Input(x).Input(scale);
    op.Input(training ? Vector(mean) : given_mean)
        .Input(training ? Vector(variance) : given_variance);
    op.Input(Tensor::Vector<float>({}));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    constexpr double kStep = 1e-5;
    const auto difference = [&](std::vector<double>* v, int64_t i) {
      const double x0 = (*v)[i];
      (*v)[i] = x0 + kStep;
      const double up = loss(in, s);
      (*v)[i] = x0 - kStep;
      const double down = loss(in, s);
      (*v)[i] = x0;
      return (up - down) / (2 * kStep);
    };
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(At(op.output(0), i), difference(&in, i), 1e-4);
    for (int64_t ch = 0; ch < channels; ++ch) {
      EXPECT_NEAR(At(op.output(1), ch), difference(&s, ch), 1e-4);
      double sum = 0;
      for (int64_t i = ch; i < n; i += channels) sum += At(dy, i);
      EXPECT_NEAR(At(op.output(2), ch), sum, 1e-5);
    }
    EXPECT_EQ(op.output(3).shape(), Shape({0}));
    EXPECT_EQ(op.output(4).shape(), Shape({0}));
  }
}

// The formula in double precision; the same bits on any number of threads.
TEST(BatchNormTest, GradientsInAllLayoutsAndTypes) {
  for (const Case& c : kCases) {
    for (ElementType type : {ElementType::kFloat, ElementType::kHalf, ElementType::kBfloat16}) {
      for (bool training : {true, false}) {
        SCOPED_TRACE(absl::StrCat(c.format, c.shape.ToString(), ElementTypeName(type), training));
        const Tensor x = RandomTensor(type, c.shape, -1, 3, 1);
        const Tensor dy = RandomTensor(type, c.shape, -1, 1, 2);
        const int64_t channels = Channels(c), n = c.shape.num_elements();
        const Tensor scale = RandomTensor(ElementType::kFloat, Shape({channels}), 0.5, 2, 3);
        std::vector<double> mean, variance, sum(channels), product(channels), dx(n);
        Moments(c, x, &mean, &variance);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t ch = ChannelOf(c, i);
          sum[ch] += At(dy, i);
          product[ch] += At(dy, i) * (At(x, i) - mean[ch]);
        }
        const double count = static_cast<double>(n / channels);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t ch = ChannelOf(c, i);
          const double inverse = 1 / std::sqrt(variance[ch] + kEpsilon);
          const double statistics =
              sum[ch] / count + (At(x, i) - mean[ch]) * product[ch] / count * inverse * inverse;
          dx[i] = At(scale, ch) * inverse * (At(dy, i) - (training ? statistics : 0));
        }
        std::vector<Tensor> results;
        for (int threads : {1, 2, 5}) {
          OpTest op("FusedBatchNormGradV3", threads);
          op.Attr("data_format", c.format).Attr("epsilon", kEpsilon).Attr("is_training", training);
          op.Input(dy).Input(x).Input(scale).Input(Vector(mean)).Input(Vector(variance));
          ASSERT_EQ(op.Input(Tensor::Vector<float>({})).Run(), absl::OkStatus());
          for (int i = 0; i < 3; ++i) results.push_back(op.output(i));
        }
        const double tolerance = type == ElementType::kFloat  ? 1e-5
                                 : type == ElementType::kHalf ? 1e-3
                                                              : 1e-2;
        ExpectNear(results[0], MakeTensor(type, c.shape, dx), tolerance, 10 * tolerance);
        for (int64_t ch = 0; ch < channels; ++ch) {
          product[ch] /= std::sqrt(variance[ch] + kEpsilon);
        }
        ExpectNear(results[1], Vector(product), 1e-4, 1e-3);
        ExpectNear(results[2], Vector(sum), 1e-4, 1e-3);
        for (size_t i = 3; i < results.size(); ++i) ExpectEqual(results[i], results[i % 3]);
      }
    }
  }
}

TEST(BatchNormTest, EmptyInputGivesNan) {
  OpTest op("FusedBatchNorm");
  op.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({0, 2, 2, 3})));
  for (int i = 0; i < 2; ++i) op.Input(Tensor::Vector<float>({1, 1, 1}));
  for (int i = 0; i < 2; ++i) op.Input(Tensor::Vector<float>({}));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(At(op.output(1), i)));
}

TEST(BatchNormTest, RefusesWhatDoesNotFit) {
  const auto run = [](const Shape& x, int64_t scale, int64_t mean, bool training, double factor) {
    OpTest op("FusedBatchNorm");
    op.Attr("is_training", training).Attr("exponential_avg_factor", factor);
    op.Input(RandomTensor(ElementType::kFloat, x, -1, 1));
    op.Input(RandomTensor(ElementType::kFloat, Shape({scale}), -1, 1));
    op.Input(RandomTensor(ElementType::kFloat, Shape({3}), -1, 1));
    op.Input(RandomTensor(ElementType::kFloat, Shape({mean}), -1, 1));
    op.Input(RandomTensor(ElementType::kFloat, Shape({mean}), 0, 1));
    return op.Run().code();
  };
  const auto ok = absl::StatusCode::kOk, invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(run({2, 2, 2, 3}, 3, 0, true, 1), ok);
  EXPECT_EQ(run({2, 2, 2, 3}, 4, 0, true, 1), invalid);
  EXPECT_EQ(run({2, 2, 3}, 3, 0, true, 1), invalid);
  EXPECT_EQ(run({2, 2, 2, 3}, 3, 0, true, 0.5), invalid);
  EXPECT_EQ(run({2, 2, 2, 3}, 3, 0, false, 1), invalid);
  EXPECT_EQ(run({2, 2, 2, 3}, 3, 3, false, 1), ok);
}

}  // namespace
}  // namespace troupe::testing
