// Elements in whole vectors and in the rest of them, on both sides of halves, against the
// definition for one number.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "devices/quantized.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

const int64_t kLengths[] = {0, 1, 7, 16, 33, 63, 64, 65, 1001};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Halves of a step, and what is next to them, about from -1.5 to 1.5; what is no number.
std::vector<float> Numbers(int64_t n, float steps) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < n; ++i) {
    const float half = static_cast<float>((i * 37) % 601 - 300) / 2 / std::min(steps, 100.0f);
    numbers.push_back(i % 3 == 0   ? half
                      : i % 3 == 1 ? std::nextafter(half, 2.0f)
                                   : std::nextafter(half, -2.0f));
  }
  const float odd[] = {kNan, kInfinity, -kInfinity, -0.0f, 1e-30f};
  for (int64_t i = 0; i < n / 7; ++i) numbers[i * 7 + 3] = odd[i % 5];
  return numbers;
}

float Clip(float x, float min, float max) { return std::max(std::min(x, max), min); }

Tensor VectorOf(const std::vector<float>& values) {
  return Tensor::Vector<float>(absl::MakeConstSpan(values));
}

/// What the integers of a type are for numbers from -1 to 1 with a mode and a way of rounding.
struct Quantization {
  std::string mode, rounding;
  double lowest, highest;

  float scale() const {
    if (mode == "SCALED") {
      return static_cast<float>(lowest < 0 ? std::min(-lowest, highest) : highest);
    }
    return static_cast<float>((highest - lowest) / 2.0);
  }

  double Quantize(float x) const {
    const float low = static_cast<float>(lowest), high = static_cast<float>(highest);
    float steps = 0;
    if (mode == "MIN_FIRST") {
      steps = std::round(x * scale()) - (std::round(-scale()) - low);
    } else if (mode == "MIN_COMBINED") {
      const float from_min = (Clip(x, -1, 1) + 1) * scale();
      steps = lowest < 0 ? std::round(from_min + low) : std::floor(from_min + 0.5f);
    } else {
      const float scaled = Clip(x, low / scale(), high / scale()) * scale();
      steps = rounding == "HALF_TO_EVEN" ? std::nearbyint(scaled) : std::round(scaled);
    }
    if (std::isnan(steps)) return 0;
    // The largest float that is an int32.
    const double most = mode == "MIN_FIRST" ? std::min(highest, 2147483520.0) : highest;
    return std::clamp(static_cast<double>(steps), lowest, most);
  }

  float Dequantize(double q) const {
    const auto value = static_cast<float>(q);
    const float low = static_cast<float>(lowest), high = static_cast<float>(highest);
    if (mode == "MIN_COMBINED") return (value - low) * (2 / (high - low)) - 1;
    if (mode == "SCALED") return value * (lowest == 0 ? 1 / high : std::max(-1 / low, 1 / high));
    const auto step = static_cast<float>(2 / (highest - lowest));
    return std::round(-1 / step) * step - low * step + value * step;
  }
};

template <typename Q>
void CheckQuantization() {
  using Limits = std::numeric_limits<typename Q::Storage>;
  for (const char* mode : {"MIN_COMBINED", "MIN_FIRST", "SCALED"}) {
    for (const char* rounding : {"HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"}) {
      const bool scaled = std::string(mode) == "SCALED";
      if (!scaled && std::string(rounding) == "HALF_TO_EVEN") continue;
      const Quantization want{mode, rounding, static_cast<double>(Limits::lowest()),
                              static_cast<double>(Limits::max())};
      for (const int64_t n : kLengths) {
        SCOPED_TRACE(absl::StrCat(ElementTypeName(kElementType<Q>), " ", mode, " ", n));
        const std::vector<float> numbers = Numbers(n, want.scale());
        OpTest quantize("QuantizeV2");
        quantize.Attr("mode", mode).Attr("round_mode", rounding).Attr("T", kElementType<Q>);
        quantize.Input(VectorOf(numbers)).Input(Tensor::Scalar(-1.0f)).Input(Tensor::Scalar(1.0f));
        ASSERT_EQ(quantize.Run(), absl::OkStatus());
        OpTest dequantize("Dequantize");
        dequantize.Attr("mode", mode).Input(quantize.output(0));
        dequantize.Input(Tensor::Scalar(-1.0f)).Input(Tensor::Scalar(1.0f));
        ASSERT_EQ(dequantize.Run(), absl::OkStatus());
        for (int64_t i = 0; i < n; ++i) {
          const auto q = quantize.output(0).unchecked_data<Q>()[i].value;
          ASSERT_EQ(static_cast<double>(q), want.Quantize(numbers[i])) << numbers[i];
          ASSERT_EQ(dequantize.output(0).unchecked_data<float>()[i], want.Dequantize(q)) << q;
        }
      }
    }
  }
}

TEST(QuantizeV2, EveryNumberAsOneByOne) {
  CheckQuantization<quint8>();
  CheckQuantization<qint8>();
  CheckQuantization<quint16>();
  CheckQuantization<qint16>();
  CheckQuantization<qint32>();
}

TEST(QuantizeAndDequantizeV2, EveryNumberAsOneByOne) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kDouble}) {
    for (const char* rounding : {"HALF_TO_EVEN", "HALF_UP"}) {
      for (const bool given : {false, true}) {
        for (const int64_t n : kLengths) {
          SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", rounding, " ", given, " ", n));
          // Of 256 integers, -128 stands for -8, and 127 for 127 / 16.
          std::vector<double> numbers(n), want(n);
          for (int64_t i = 0; i < n; ++i) {
            numbers[i] = static_cast<double>((i * 37) % 509 - 254) / 32;
            if (i % 5 == 4) numbers[i] = given ? 1e6 : 127.0 / 16;
          }
          if (n > 0) numbers[n / 2] = given ? -kInfinity : -8;
          for (int64_t i = 0; i < n; ++i) {
            const double steps = std::clamp(numbers[i] * 16, -128.0, 127.0);
            const bool half_up = std::string(rounding) == "HALF_UP";
            want[i] = (half_up ? std::floor(steps + 0.5) : std::nearbyint(steps)) / 16;
          }
          OpTest op("QuantizeAndDequantizeV2");
          op.Attr("range_given", given).Attr("round_mode", rounding).Attr("num_bits", 8);
          op.Input(MakeTensor(type, Shape({n}), numbers));
          op.Input(MakeTensor(type, Shape(), {-8})).Input(MakeTensor(type, Shape(), {127.0 / 16}));
          ASSERT_EQ(op.Run(), absl::OkStatus());
          ExpectEqual(op.output(0), MakeTensor(type, Shape({n}), want));
        }
      }
    }
  }
}

/// FakeQuant's range of 256 integers, moved so that one of them stands for 0.
struct MovedRange {
  float min = 0, max = 0, step = 0;

  MovedRange(float least, float most) {
    if (least == 0 && most == 0) return;
    step = (most - least) / 255;
    const float shift = std::clamp(std::round(-least / step), 0.0f, 255.0f);
    min = (0 - shift) * step;
    max = (255 - shift) * step;
  }

  float Value(float x, bool by_product) const {
    if (step == 0) return 0;
    const float from_min = Clip(x, min, max) - min, reciprocal = 1 / step;
    const float zero = std::floor(-min * reciprocal + 0.5f);
    return std::floor((by_product ? from_min * reciprocal : from_min / step) - zero + 0.5f) * step;
  }
  bool Passes(float x) const { return step == 0 || (x >= min && x <= max); }
};

TEST(FakeQuantWithMinMaxArgs, EveryNumberAsOneByOne) {
  const MovedRange range(-1.2f, 1.1f);
  for (const int64_t n : kLengths) {
    const std::vector<float> numbers = Numbers(n, 100);
    OpTest op("FakeQuantWithMinMaxArgs"), gradient("FakeQuantWithMinMaxArgsGradient");
    op.Input(VectorOf(numbers));
    gradient.Input(RandomTensor(ElementType::kFloat, Shape({n}), -1, 1)).Input(VectorOf(numbers));
    for (OpTest* each : {&op, &gradient}) {
      each->Attr("min", -1.2f).Attr("max", 1.1f);
      ASSERT_EQ(each->Run(), absl::OkStatus());
    }
    std::vector<float> want(n), dx(n);
    for (int64_t i = 0; i < n; ++i) {
      want[i] = range.Value(numbers[i], /*by_product=*/true);
      dx[i] = RandomTensor(ElementType::kFloat, Shape({n}), -1, 1).unchecked_data<float>()[i] *
              static_cast<float>(range.Passes(numbers[i]));
    }
    ExpectEqual(op.output(0), VectorOf(want));
    ExpectEqual(gradient.output(0), VectorOf(dx));
  }
}

TEST(FakeQuantWithMinMaxVarsPerChannel, EveryNumberAsOneByOne) {
  for (const int64_t channels : {1, 2, 3, 5, 33, 63, 64, 65, 130}) {
    const int64_t rows = 200 / channels + 3;
    SCOPED_TRACE(channels);
    const Shape shape({rows, channels});
    std::vector<float> min, max;
    std::vector<MovedRange> ranges;
    for (int64_t c = 0; c < channels; ++c) {  // Some are from 0 to 0.
      min.push_back(-0.3f * static_cast<float>(c % 3));
      max.push_back(0.2f * static_cast<float>((c + 1) % 4));
      ranges.emplace_back(min[c], max[c]);
    }
    const std::vector<float> numbers = Numbers(rows * channels, 100);
    const Tensor x = VectorOf(numbers).Reshaped(shape);
    const Tensor dy = RandomTensor(ElementType::kFloat, shape, -1, 1);
    OpTest op("FakeQuantWithMinMaxVarsPerChannel");
    OpTest gradient("FakeQuantWithMinMaxVarsPerChannelGradient");
    op.Input(x).Input(VectorOf(min)).Input(VectorOf(max));
    gradient.Input(dy).Input(x).Input(VectorOf(min)).Input(VectorOf(max));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ASSERT_EQ(gradient.Run(), absl::OkStatus());
    std::vector<float> want, dx;
    std::vector<double> below(channels), above(channels);
    for (int64_t i = 0; i < rows * channels; ++i) {
      const MovedRange& range = ranges[i % channels];
      const float g = dy.unchecked_data<float>()[i];
      want.push_back(range.Value(numbers[i], /*by_product=*/false));
      dx.push_back(g * static_cast<float>(range.Passes(numbers[i])));
      if (range.step == 0) continue;
      if (numbers[i] < range.min) below[i % channels] += g;
      if (numbers[i] > range.max) above[i % channels] += g;
    }
    ExpectEqual(op.output(0), VectorOf(want).Reshaped(shape));
    ExpectEqual(gradient.output(0), VectorOf(dx).Reshaped(shape));
    ExpectNear(gradient.output(1), MakeTensor(ElementType::kFloat, Shape({channels}), below));
    ExpectNear(gradient.output(2), MakeTensor(ElementType::kFloat, Shape({channels}), above));
    if (channels > 1) continue;
    OpTest scalar("FakeQuantWithMinMaxVars");
    scalar.Input(x).Input(Tensor::Scalar(min[0])).Input(Tensor::Scalar(max[0]));
    ASSERT_EQ(scalar.Run(), absl::OkStatus());
    ExpectEqual(scalar.output(0), op.output(0));
  }
}

}  // namespace
}  // namespace troupe::testing
