// Products of quantized matrices and images against their definition.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "devices/quantized.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

/// Integers of all sizes, the extremes among them.
template <typename Q>
Tensor RandomIntegers(const Shape& shape, uint32_t seed) {
  using Limits = std::numeric_limits<typename Q::Storage>;
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> any(Limits::min(), Limits::max());
  Tensor t = Tensor::Uninitialized(kElementType<Q>, shape);
  for (Q& q : t.mutable_values<Q>()) q = Q(static_cast<typename Q::Storage>(any(generator)));
  if (t.num_elements() > 1) {
    t.mutable_data<Q>()[0] = Q(Limits::max());
    t.mutable_data<Q>()[1] = Q(Limits::min());
  }
  return t;
}

/// All of them the largest integer, so that sums are as large as they can be.
template <typename Q>
Tensor LargestIntegers(const Shape& shape) {
  Tensor t = Tensor::Uninitialized(kElementType<Q>, shape);
  for (Q& q : t.mutable_values<Q>()) q = Q(std::numeric_limits<typename Q::Storage>::max());
  return t;
}

/// A range in which the integer `zero` stands for 0: steps of 1.
template <typename Q>
std::pair<float, float> RangeWithZeroAt(int zero) {
  using Limits = std::numeric_limits<typename Q::Storage>;
  return {static_cast<float>(Limits::min() - zero), static_cast<float>(Limits::max() - zero)};
}

int32_t Wrapped(int64_t x) { return static_cast<int32_t>(static_cast<uint64_t>(x)); }

template <typename A, typename B>
void CheckMatMul(const Tensor& a, int a_zero, const Tensor& b, int b_zero, bool transpose_a,
                 bool transpose_b) {
  SCOPED_TRACE(absl::StrCat(a.shape().ToString(), transpose_a ? " transposed" : "", " less ",
                            a_zero, " times ", b.shape().ToString(),
                            transpose_b ? " transposed" : "", " less ", b_zero));
  const auto [a_min, a_max] = RangeWithZeroAt<A>(a_zero);
  const auto [b_min, b_max] = RangeWithZeroAt<B>(b_zero);
  OpTest op("QuantizedMatMul", 2);
  op.Attr("transpose_a", transpose_a).Attr("transpose_b", transpose_b);
  op.Input(a).Input(b);
  for (const float limit : {a_min, a_max, b_min, b_max}) op.Input(Tensor::Scalar(limit));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  const int64_t m = a.dim(transpose_a ? 1 : 0), k = a.dim(transpose_a ? 0 : 1);
  const int64_t n = b.dim(transpose_b ? 0 : 1);
  ASSERT_EQ(op.output(0).shape(), Shape({m, n}));
  const auto got = op.output(0).unchecked_values<qint32>();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      int64_t want = 0;
      for (int64_t l = 0; l < k; ++l) {
        want += int64_t{a.unchecked_data<A>()[transpose_a ? l * m + i : i * k + l].value - a_zero} *
                (b.unchecked_data<B>()[transpose_b ? j * k + l : l * n + j].value - b_zero);
      }
      ASSERT_EQ(got[i * n + j].value, Wrapped(want)) << i << ", " << j;
    }
  }
  // An integer of the product stands for the product of what 1 stands for: 1 here.
  EXPECT_EQ(op.output(1).unchecked_scalar<float>(), -2147483648.0f);
  EXPECT_EQ(op.output(2).unchecked_scalar<float>(), 2147483648.0f);
}

template <typename A, typename B>
void CheckMatMuls(const std::vector<int>& a_zeros, const std::vector<int>& b_zeros) {
  const struct {
    int64_t m, n, k;
  } sizes[] = {{1, 1, 1}, {3, 5, 7}, {17, 33, 255}, {9, 4, 256}, {4, 9, 257}, {2, 3, 1500}};
  uint32_t seed = 1;
  for (const auto& [m, n, k] : sizes) {
    for (int t = 0; t < 4; ++t) {
      const bool transpose_a = t & 1, transpose_b = t & 2;
      const Shape a = transpose_a ? Shape({k, m}) : Shape({m, k});
      const Shape b = transpose_b ? Shape({n, k}) : Shape({k, n});
      for (const int a_zero : a_zeros) {
        for (const int b_zero : b_zeros) {
          seed += 2;
          CheckMatMul<A, B>(RandomIntegers<A>(a, seed), a_zero, RandomIntegers<B>(b, seed + 1),
                            b_zero, transpose_a, transpose_b);
        }
      }
    }
  }
}

TEST(QuantizedMatMul, IsExact) {
  CheckMatMuls<quint8, quint8>({0, 77, 255}, {0, 128, 255});
  CheckMatMuls<quint8, qint8>({0, 255}, {-128, 0, 127});
  CheckMatMuls<qint8, quint8>({-128, 3}, {0, 255});
  CheckMatMuls<qint8, qint8>({-128, 0, 127}, {-128, 0, 127});
}

TEST(QuantizedMatMul, IsExactInTiles) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{60, 700}, {700, 60}}) {
    CheckMatMul<quint8, quint8>(RandomIntegers<quint8>({m, 800}, 1), 9,
                                RandomIntegers<quint8>({800, n}, 2), 200, false, false);
    CheckMatMul<qint8, qint8>(RandomIntegers<qint8>({800, m}, 1), -7,
                              RandomIntegers<qint8>({n, 800}, 2), 0, true, true);
  }
}

TEST(QuantizedMatMul, IsExactWithoutZeroInTheRange) {
  CheckMatMuls<quint8, quint8>({-1, 256, 70000}, {0, -300});
}

TEST(QuantizedMatMul, SumsTheLargestProducts) {
  // 255 * 255 as often as a float can sum it, and much more often: the sum wraps around.
  for (const int64_t k : {256, 512, 40000}) {
    CheckMatMul<quint8, quint8>(LargestIntegers<quint8>({2, k}), 0, LargestIntegers<quint8>({k, 3}),
                                0, false, false);
    CheckMatMul<qint8, qint8>(LargestIntegers<qint8>({2, k}), -128, LargestIntegers<qint8>({k, 3}),
                              -128, false, false);
  }
}

/// TensorFlow forgets to transpose, and a minimum below 0 makes it add too much.
TEST(QuantizedMatMulWithBias, TransposesAndTakesTheMinimumOut) {
  // Steps of 1: 100 of a stands for 0.
  const Tensor a = RandomIntegers<quint8>({6, 3}, 1), b = RandomIntegers<qint8>({4, 6}, 2);
  Tensor bias = Tensor::Uninitialized(ElementType::kFloat, Shape({4}));
  for (int j = 0; j < 4; ++j)
    bias.mutable_data<float>()[j] = 1000.0f * static_cast<float>(j) - 1500;
  const auto run = [&](const char* name, std::vector<float> limits) {
    OpTest op(name);
    op.Attr("transpose_a", true).Attr("transpose_b", true);
    if (std::string(name).ends_with("Dequantize")) op.Attr("Toutput", ElementType::kFloat);
    op.Input(a).Input(b).Input(bias);
    for (const float limit : {-100.0f, 155.0f, -127.0f, 127.0f}) op.Input(Tensor::Scalar(limit));
    for (const float limit : limits) op.Input(Tensor::Scalar(limit));
    EXPECT_EQ(op.Run(), absl::OkStatus());
    return op.output(0);
  };
  const Tensor sums = run("QuantizedMatMulWithBias", {});
  const Tensor positive = run("QuantizedMatMulWithBiasAndRelu", {});
  const Tensor small = run("QuantizedMatMulWithBiasAndRequantize", {0.0f, 25500.0f});
  const Tensor reals = run("QuantizedMatMulWithBiasAndDequantize", {0.0f, 1.0f});
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      int want = static_cast<int>(bias.unchecked_data<float>()[j]);
      for (int l = 0; l < 6; ++l) {
        want += (a.unchecked_data<quint8>()[l * 3 + i].value - 100) *
                b.unchecked_data<qint8>()[j * 6 + l].value;
      }
      const int at = i * 4 + j;
      EXPECT_EQ(sums.unchecked_data<qint32>()[at].value, want);
      EXPECT_EQ(positive.unchecked_data<qint32>()[at].value, std::max(want, 0));
      EXPECT_NEAR(small.unchecked_data<quint8>()[at].value, std::clamp(want / 100.0, 0.0, 255.0),
                  .51);
      EXPECT_NEAR(reals.unchecked_data<float>()[at], want, 0.01);
    }
  }
}

TEST(QuantizedMatMulWithBias, RoundsWhatIsTooLargeOrNoNumber) {
  OpTest op("QuantizedMatMulWithBias");
  op.Input(RandomIntegers<quint8>({1, 1}, 1)).Input(RandomIntegers<qint8>({1, 3}, 2));
  op.Input(Tensor::Vector<float>({1e30f, -1e30f, std::numeric_limits<float>::quiet_NaN()}));
  for (const float limit : {0.0f, 255.0f, -127.0f, 127.0f}) op.Input(Tensor::Scalar(limit));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  EXPECT_EQ(op.output(0).unchecked_data<qint32>()[0].value, 2147483520);
  EXPECT_EQ(op.output(0).unchecked_data<qint32>()[1].value, std::numeric_limits<int32_t>::min());
  EXPECT_EQ(op.output(0).unchecked_data<qint32>()[2].value, 0);
}

TEST(QuantizedMatMulWithBias, RefusesABiasOfAnotherSize) {
  OpTest op("QuantizedMatMulWithBias");
  op.Input(RandomIntegers<quint8>({2, 3}, 1)).Input(RandomIntegers<qint8>({3, 4}, 2));
  op.Input(Tensor::Vector<float>({1, 2, 3}));
  for (const float limit : {0.0f, 1.0f, -1.0f, 1.0f}) op.Input(Tensor::Scalar(limit));
  EXPECT_EQ(op.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(QuantizedMatMul, TakesEmptyMatrices) {
  CheckMatMul<quint8, quint8>(RandomIntegers<quint8>({2, 0}, 1), 0,
                              RandomIntegers<quint8>({0, 3}, 2), 0, false, false);
  CheckMatMul<quint8, quint8>(RandomIntegers<quint8>({0, 4}, 1), 0,
                              RandomIntegers<quint8>({4, 3}, 2), 0, false, false);
}

struct ConvCase {
  Shape input, filter;
  int stride;
  bool same;
};

/// The first row or column of the image under the window at 0.
int64_t Before(int64_t input, int64_t window, int64_t output, int stride, bool same) {
  return same ? std::max<int64_t>(0, (output - 1) * stride + window - input) / 2 : 0;
}

template <typename A, typename B>
void CheckConv(const ConvCase& c, int a_zero, int b_zero, uint32_t seed) {
  SCOPED_TRACE(absl::StrCat(c.input.ToString(), " less ", a_zero, " and ", c.filter.ToString(),
                            " less ", b_zero, ", stride ", c.stride, c.same ? ", same" : ""));
  const Tensor a = RandomIntegers<A>(c.input, seed), b = RandomIntegers<B>(c.filter, seed + 1);
  const auto [a_min, a_max] = RangeWithZeroAt<A>(a_zero);
  const auto [b_min, b_max] = RangeWithZeroAt<B>(b_zero);
  OpTest op("QuantizedConv2D", 2);
  op.Attr("strides", {1, c.stride, c.stride, 1}).Attr("padding", c.same ? "SAME" : "VALID");
  op.Input(a).Input(b);
  for (const float limit : {a_min, a_max, b_min, b_max}) op.Input(Tensor::Scalar(limit));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  int64_t out[2], before[2];
  for (int d = 0; d < 2; ++d) {
    const int64_t size = c.input.dim(1 + d), window = c.filter.dim(d);
    out[d] = c.same ? (size + c.stride - 1) / c.stride : (size - window) / c.stride + 1;
    before[d] = Before(size, window, out[d], c.stride, c.same);
  }
  const int64_t depth = c.input.dim(3), out_depth = c.filter.dim(3);
  ASSERT_EQ(op.output(0).shape(), Shape({c.input.dim(0), out[0], out[1], out_depth}));
  const auto got = op.output(0).unchecked_values<qint32>();
  for (int64_t i = 0; i < op.output(0).num_elements(); ++i) {
    const int64_t o = i % out_depth, column = i / out_depth % out[1];
    const int64_t row = i / out_depth / out[1] % out[0], image = i / out_depth / out[1] / out[0];
    int64_t want = 0;
    for (int64_t y = 0; y < c.filter.dim(0); ++y) {
      for (int64_t x = 0; x < c.filter.dim(1); ++x) {
        const int64_t at_y = row * c.stride - before[0] + y,
                      at_x = column * c.stride - before[1] + x;
        if (at_y < 0 || at_y >= c.input.dim(1) || at_x < 0 || at_x >= c.input.dim(2)) continue;
        for (int64_t channel = 0; channel < depth; ++channel) {
          const int64_t from = ((image * c.input.dim(1) + at_y) * c.input.dim(2) + at_x) * depth;
          const int64_t weight = ((y * c.filter.dim(1) + x) * depth + channel) * out_depth + o;
          want += int64_t{a.unchecked_data<A>()[from + channel].value - a_zero} *
                  (b.unchecked_data<B>()[weight].value - b_zero);
        }
      }
    }
    ASSERT_EQ(got[i].value, Wrapped(want)) << i;
  }
}

TEST(QuantizedConv2D, IsExact) {
  const ConvCase cases[] = {
      {Shape({1, 1, 1, 1}), Shape({1, 1, 1, 1}), 1, false},
      {Shape({2, 7, 5, 3}), Shape({3, 3, 3, 4}), 1, true},
      {Shape({2, 8, 6, 3}), Shape({3, 2, 3, 4}), 2, true},
      {Shape({1, 9, 9, 40}), Shape({3, 3, 40, 17}), 1, false},
      {Shape({1, 4, 4, 2}), Shape({5, 6, 2, 3}), 1, true},
      {Shape({1, 6, 5, 300}), Shape({1, 1, 300, 8}), 1, false},
      {Shape({3, 40, 40, 8}), Shape({7, 7, 8, 2}), 3, true},  // several blocks of patches
      {Shape({2, 9, 10, 3}), Shape({4, 5, 3, 12}), 1, true},
      {Shape({1, 8, 9, 40}), Shape({1, 1, 40, 16}), 2, true},
      {Shape({1, 8, 9, 40}), Shape({1, 1, 40, 16}), 1, true},
  };
  uint32_t seed = 1;
  for (const ConvCase& c : cases) {
    CheckConv<quint8, quint8>(c, 0, 255, ++seed);
    CheckConv<quint8, quint8>(c, 131, 5, ++seed);
    CheckConv<quint8, qint8>(c, 100, 0, ++seed);
    CheckConv<qint8, qint8>(c, -128, 127, ++seed);
    CheckConv<quint8, quint8>(c, -9, 128, ++seed);   // 0 is below the range,
    CheckConv<quint8, quint8>(c, 400, 128, ++seed);  // or above:
    CheckConv<quint8, quint8>(c, 0, -1000, ++seed);  // what is outside of the image is 0 still.
  }
}

TEST(QuantizedConv2D, IsExactInBlocksOfBytes) {
  CheckConv<qint8, quint8>({Shape({1, 28, 30, 700}), Shape({3, 3, 700, 4}), 1, true}, 5, 99, 1);
}

TEST(QuantizedConv2D, RefusesWhatIsNotThere) {
  const Tensor image = RandomIntegers<quint8>({1, 4, 4, 2}, 1);
  const Tensor filter = RandomIntegers<quint8>({2, 2, 2, 3}, 2);
  const auto run = [&](const Tensor& input, std::initializer_list<int64_t> strides,
                       std::initializer_list<int64_t> dilations, const Tensor& limit) {
    OpTest op("QuantizedConv2D");
    op.Attr("strides", strides).Attr("padding", "VALID").Attr("dilations", dilations);
    op.Input(input).Input(filter).Input(limit);
    for (int i = 0; i < 3; ++i) op.Input(Tensor::Scalar(1.0f));
    return op.Run().code();
  };
  const Tensor zero = Tensor::Scalar(0.0f);
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(run(image, {1, 1, 1, 1}, {1, 1, 1, 1}, zero), absl::StatusCode::kOk);
  EXPECT_EQ(run(image, {1, 1, 2, 1}, {1, 1, 1, 1}, zero), invalid);
  EXPECT_EQ(run(image, {1, 0, 0, 1}, {1, 1, 1, 1}, zero), invalid);
  EXPECT_EQ(run(image, {1, 1, 1, 1}, {1, 2, 2, 1}, zero), invalid);
  EXPECT_EQ(run(image.Reshaped({4, 4, 2}), {1, 1, 1, 1}, {1, 1, 1, 1}, zero), invalid);
  EXPECT_EQ(run(image.Reshaped({1, 4, 2, 4}), {1, 1, 1, 1}, {1, 1, 1, 1}, zero), invalid);
  EXPECT_EQ(run(image, {1, 1, 1, 1}, {1, 1, 1, 1}, Tensor::Vector<float>({})), invalid);
  EXPECT_EQ(run(image, {1, 1, 1, 1}, {1, 1, 1, 1}, Tensor::Vector<float>({0, 1})), invalid);
}

}  // namespace
}  // namespace troupe::testing
