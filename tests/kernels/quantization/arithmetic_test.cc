// What TensorFlow's CPU has no kernels for, or takes fewer shapes of, against the definition; and
// what is not a number.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "devices/quantized.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// All integers of 8 bits.
Tensor AllIntegers() {
  Tensor t = Tensor::Uninitialized(ElementType::kQuint8, Shape({256}));
  for (int i = 0; i < 256; ++i) t.mutable_data<quint8>()[i] = quint8(static_cast<uint8_t>(i));
  return t;
}

Tensor Integers(const std::vector<uint8_t>& values, const Shape& shape) {
  Tensor t = Tensor::Uninitialized(ElementType::kQuint8, shape);
  for (size_t i = 0; i < values.size(); ++i) t.mutable_data<quint8>()[i] = quint8(values[i]);
  return t;
}

TEST(QuantizedReluX, ClipsWhatIntegersStandFor) {
  // Steps of a quarter: 40 stands for 0.
  const float min = -10, max = 53.75;
  for (const float most : {0.0f, 6.0f, 20.0f, 53.75f, 100.0f}) {
    OpTest op("QuantizedReluX");
    op.Input(AllIntegers()).Input(Tensor::Scalar(most));
    op.Input(Tensor::Scalar(min)).Input(Tensor::Scalar(max));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    for (int i = 0; i < 256; ++i) {
      const float stands_for = min + 0.25f * static_cast<float>(i);
      const float want = std::min(std::max(stands_for, 0.0f), most);
      EXPECT_EQ(min + 0.25f * op.output(0).unchecked_data<quint8>()[i].value, want) << i;
    }
    EXPECT_EQ(op.output(1).unchecked_scalar<float>(), min);
    EXPECT_EQ(op.output(2).unchecked_scalar<float>(), max);
  }
}

TEST(QuantizedConcatV2, KeepsAllOfTheRangesFromAnyAxis) {
  // Steps of a half from -10, and of one from -100.
  OpTest op("QuantizedConcatV2");
  op.Attr("N", 2);
  op.Input(Integers({0, 20, 255, 40}, Shape({2, 2}))).Input(Integers({90, 130}, Shape({2, 1})));
  op.Input(Tensor::Scalar<int32_t>(-1));
  for (const float end : {-10.0f, -100.0f, 117.5f, 155.0f}) op.Input(Tensor::Scalar(end));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  EXPECT_EQ(op.output(1).unchecked_scalar<float>(), -100);
  EXPECT_EQ(op.output(2).unchecked_scalar<float>(), 155);
  ASSERT_EQ(op.output(0).shape(), Shape({2, 3}));
  const std::vector<int> want = {90, 100, 90, 218, 110, 130};
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(op.output(0).unchecked_values<quint8>()[i].value, want[i]) << i;
  }

  OpTest outside("QuantizedConcatV2");
  outside.Attr("N", 2);
  outside.Input(Integers({0}, Shape({1}))).Input(Integers({0}, Shape({1})));
  outside.Input(Tensor::Scalar<int32_t>(-2));
  for (const float end : {0.0f, 0.0f, 1.0f, 1.0f}) outside.Input(Tensor::Scalar(end));
  EXPECT_EQ(outside.Run().code(), absl::StatusCode::kInvalidArgument);
}

/// x op y of shapes [2,1,3] and [2,1], of which TensorFlow takes only what repeats as a whole.
std::vector<double> Broadcast(const char* name) {
  OpTest op(name);
  op.Input(Integers({0, 50, 255, 7, 128, 200}, Shape({2, 1, 3})));
  op.Input(Integers({10, 240}, Shape({2, 1})));
  for (const float limit : {-10.0f, 245.0f, 0.0f, 510.0f}) op.Input(Tensor::Scalar(limit));
  EXPECT_EQ(op.Run(), absl::OkStatus());
  EXPECT_EQ(op.output(0).shape(), Shape({2, 2, 3}));
  const double min = op.output(1).unchecked_scalar<float>();
  const double step = (op.output(2).unchecked_scalar<float>() - min) / 4294967295.0;
  std::vector<double> reals;
  for (const qint32 q : op.output(0).unchecked_values<qint32>()) {
    reals.push_back(min + step * (static_cast<double>(q.value) + 2147483648.0));
  }
  return reals;
}

TEST(QuantizedAddAndMul, BroadcastLikeAnyBinaryOp) {
  const double x[2][3] = {{-10, 40, 245}, {-3, 118, 190}}, y[2] = {20, 480};
  const std::vector<double> sums = Broadcast("QuantizedAdd"), products = Broadcast("QuantizedMul");
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int k = 0; k < 3; ++k) {
        const int at = (i * 2 + j) * 3 + k;
        EXPECT_NEAR(sums[at], x[i][k] + y[j], 0.01) << i << j << k;
        EXPECT_NEAR(products[at], x[i][k] * y[j], 2.0) << i << j << k;  // half a step
      }
    }
  }
}

TEST(QuantizeAndDequantizeV2, TakesARangeForEachSlice) {
  const Tensor input =
      MakeTensor(ElementType::kFloat, Shape({2, 4}), {-2, 0.3, 0.6, 9, -2, 0.3, 0.6, 9});
  for (const char* name : {"QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"}) {
    OpTest op(name);
    op.Attr("axis", 0).Attr("range_given", true).Attr("num_bits", 2);
    op.Input(input).Input(Tensor::Vector<float>({-2, -4})).Input(Tensor::Vector<float>({1, 2}));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    // Integers of 2 bits are -2 to 1.
    ExpectEqual(op.output(0),
                MakeTensor(ElementType::kFloat, Shape({2, 4}), {-2, 0, 1, 1, -2, 0, 0, 2}));
  }
}

TEST(QuantizeV2, NanIsZeroAndExtremesStay) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const char* mode : {"MIN_COMBINED", "MIN_FIRST", "SCALED"}) {
    OpTest op("QuantizeV2");
    op.Attr("mode", mode).Attr("T", ElementType::kQint32);
    op.Input(Tensor::Vector<float>({kNan, infinity, -infinity, 1, -1}));
    op.Input(Tensor::Scalar(-1.0f)).Input(Tensor::Scalar(1.0f));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    const auto q = op.output(0).unchecked_values<qint32>();
    EXPECT_EQ(q[0].value, 0) << mode;
    EXPECT_GE(q[1].value, 2147483520) << mode;
    EXPECT_EQ(q[2].value, INT32_MIN) << mode;
    EXPECT_EQ(q[3].value, q[1].value) << mode;
  }
}

TEST(QuantizedOps, TakeAnyRangeWithoutACrash) {
  const float values[] = {0,
                          -1,
                          1,
                          kNan,
                          1e38f,
                          -1e38f,
                          std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::denorm_min()};
  const Tensor small = AllIntegers();
  Tensor sums = Tensor::Uninitialized(ElementType::kQint32, Shape({3}));
  sums.mutable_data<qint32>()[0] = qint32(INT32_MIN);
  sums.mutable_data<qint32>()[1] = qint32(INT32_MAX);
  sums.mutable_data<qint32>()[2] = qint32(0);
  for (const float min : values) {
    for (const float max : values) {
      const Tensor low = Tensor::Scalar(min), high = Tensor::Scalar(max);
      const auto run = [&](OpTest& op) {
        const absl::Status status = op.Run();
        EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
      };
      for (const char* name : {"QuantizedAdd", "QuantizedMul", "QuantizedBiasAdd"}) {
        OpTest op(name);
        if (std::string(name) == "QuantizedBiasAdd") op.Attr("out_type", ElementType::kQint32);
        op.Input(small.Reshaped({1, 256})).Input(small);
        op.Input(low).Input(high).Input(low).Input(high);
        run(op);
      }
      OpTest product("QuantizedMatMul");
      product.Input(small.Reshaped({16, 16})).Input(small.Reshaped({16, 16}));
      product.Input(low).Input(high).Input(high).Input(low);
      run(product);
      for (const char* name : {"QuantizedRelu6", "Dequantize"}) {
        OpTest op(name);
        op.Input(small).Input(low).Input(high);
        run(op);
      }
      OpTest down("QuantizeDownAndShrinkRange");
      down.Attr("out_type", ElementType::kQuint8).Input(sums).Input(low).Input(high);
      run(down);
      for (const ElementType type : {ElementType::kQint8, ElementType::kQuint8}) {
        OpTest op("Requantize");
        op.Attr("out_type", type).Input(sums).Input(low).Input(high).Input(low).Input(high);
        run(op);
      }
      OpTest fake("FakeQuantWithMinMaxVars");
      fake.Input(Tensor::Vector<float>({kNan, 1, -1e38f})).Input(low).Input(high);
      run(fake);
    }
  }
}

}  // namespace
}  // namespace troupe::testing
