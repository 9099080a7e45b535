// Cast, Select, AddN, ClipByValue, bias, softmax and cross entropy.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using enum ElementType;

Tensor Cast(const Tensor& x, ElementType to, bool truncate = false) {
  OpTest op("Cast");
  op.Input(x).Attr("DstT", to).Attr("Truncate", truncate);
  const absl::Status status = op.Run();
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? op.output(0) : Tensor();
}

TEST(CastTest, EveryPairOfTypes) {
  const ElementType types[] = {kFloat,  kDouble, kHalf,      kBfloat16,   kInt8,
                               kInt16,  kInt32,  kInt64,     kUint8,      kUint16,
                               kUint32, kUint64, kComplex64, kComplex128, kBool};
  const double values[] = {0, 1, 2, 17, 100, 3};
  for (ElementType from : types) {
    for (ElementType to : types) {
      SCOPED_TRACE(ElementTypeName(from) + " to " + ElementTypeName(to));
      Tensor x = Tensor::Uninitialized(from, Shape({40}));
      Tensor want = Tensor::Uninitialized(to, Shape({40}));
      for (int i = 0; i < 40; ++i) {
        const double v = from == kBool || to == kBool ? values[i % 6] != 0 : values[i % 6];
        Set(&x, i, values[i % 6]);
        Set(&want, i, v);
      }
      ExpectEqual(Cast(x, to), want);
    }
  }
}

TEST(CastTest, CutsOffAndRounds) {
  ExpectEqual(Cast(Tensor::Vector<float>({-1.9f, 1.9f}), kInt32), Tensor::Vector<int32_t>({-1, 1}));
  // 1 + 2^-8 lies halfway between two bfloat16: to even, or cut off.
  const Tensor x = Tensor::Vector<float>({1 + 0x1.8p-7f});
  EXPECT_EQ(static_cast<float>(Cast(x, kBfloat16).unchecked_data<bfloat16>()[0]), 1 + 0x1p-6f);
  EXPECT_EQ(static_cast<float>(Cast(x, kBfloat16, true).unchecked_data<bfloat16>()[0]),
            1 + 0x1p-7f);
  OpTest op("Cast");
  op.Input(Tensor::Scalar("1")).Attr("DstT", kFloat);
  EXPECT_EQ(op.Run().code(), absl::StatusCode::kUnimplemented);
}

TEST(SelectTest, ConditionForms) {
  const Tensor x = Tensor::FromValues<float>({1, 2, 3, 4}, Shape({2, 2})).value();
  const Tensor y = Tensor::FromValues<float>({5, 6, 7, 8}, Shape({2, 2})).value();
  auto run = [&](Tensor condition) {
    OpTest op("Select");
    op.Input(std::move(condition)).Input(x, true).Input(y, true);
    EXPECT_TRUE(op.Run().ok());
    return op.output(0);
  };
  ExpectEqual(run(Tensor::Scalar(true)), x);
  ExpectEqual(run(Tensor::Scalar(false)), y);
  ExpectEqual(run(Tensor::Vector<bool>({false, true})),
              Tensor::FromValues<float>({5, 6, 3, 4}, Shape({2, 2})).value());
  ExpectEqual(run(Tensor::FromValues<bool>({false, true, true, false}, Shape({2, 2})).value()),
              Tensor::FromValues<float>({5, 2, 3, 8}, Shape({2, 2})).value());
  OpTest wrong("Select");
  wrong.Input(Tensor::Vector<bool>({true, false, true})).Input(x).Input(y);
  EXPECT_EQ(wrong.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SelectTest, BroadcastsThreeWays) {
  OpTest op("SelectV2");
  op.Input(Tensor::FromValues<bool>({true, false}, Shape({2, 1})).value())
      .Input(Tensor::Vector<std::string>({"a", "b", "c"}))
      .Input(Tensor::Scalar("-"));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(
      op.output(0),
      Tensor::FromValues<std::string>({"a", "b", "c", "-", "-", "-"}, Shape({2, 3})).value());
}

TEST(SelectTest, RowsOfEveryElementSize) {
  for (const ElementType type : {ElementType::kInt8, ElementType::kHalf, ElementType::kInt32,
                                 ElementType::kDouble, ElementType::kComplex128}) {
    for (const int64_t n : {1, 3, 16, 17, 70}) {
      SCOPED_TRACE(::testing::Message() << ElementTypeName(type) << " " << n);
      const Tensor x = RandomTensor(ElementType::kInt8, Shape({2, n}), 0, 100, 1);
      const Tensor y = RandomTensor(ElementType::kInt8, Shape({n}), 0, 100, 2);
      const Tensor by_row = Tensor::FromValues<bool>({true, false}, Shape({2, 1})).value();
      Tensor by_element = Tensor::Uninitialized(ElementType::kBool, Shape({n}));
      Tensor rows = Tensor::Uninitialized(ElementType::kInt8, Shape({2, n}));
      Tensor elements = Tensor::Uninitialized(ElementType::kInt8, Shape({2, n}));
      Tensor scalars = Tensor::Uninitialized(ElementType::kInt8, Shape({2, n}));
      for (int64_t i = 0; i < 2 * n; ++i) {
        if (i < n) by_element.mutable_data<bool>()[i] = i % 3 == 1;
        Set(&rows, i, i < n ? At(x, i) : At(y, i - n));
        Set(&elements, i, i % n % 3 == 1 ? At(x, i) : At(y, i % n));
        Set(&scalars, i, i % n % 3 == 1 ? 5 : At(x, i));
      }
      const auto cast = [type](const Tensor& t) {
        OpTest op("Cast");
        op.Input(t).Attr("DstT", type);
        EXPECT_TRUE(op.Run().ok());
        return op.output(0);
      };
      const auto check = [&](const Tensor& condition, const Tensor& a, const Tensor& b,
                             const Tensor& want) {
        OpTest op("SelectV2");
        op.Input(condition).Input(cast(a), true).Input(cast(b), true);
        ASSERT_TRUE(op.Run().ok());
        ExpectEqual(op.output(0), cast(want));
      };
      check(by_row, x, y, rows);
      check(by_element, x, y, elements);
      check(by_element, Tensor::Scalar<int8_t>(5), x, scalars);
    }
  }
}

TEST(AddNTest, AddsInOrderWhicheverBufferIsTaken) {
  for (int count : {1, 2, 3, 5}) {
    for (int forwarded = -1; forwarded < count; ++forwarded) {
      std::vector<Tensor> inputs;
      Tensor want = Tensor::Uninitialized(kFloat, Shape({3000}));
      for (int k = 0; k < count; ++k) {
        inputs.push_back(RandomTensor(kFloat, Shape({3000}), -1e6, 1e6, k + 1));
      }
      for (int i = 0; i < 3000; ++i) {
        float sum = inputs[0].unchecked_data<float>()[i];
        for (int k = 1; k < count; ++k) sum += inputs[k].unchecked_data<float>()[i];
        Set(&want, i, sum);
      }
      OpTest op("AddN");
      for (int k = 0; k < count; ++k) op.Input(inputs[k], k == forwarded);
      ASSERT_TRUE(op.Run().ok());
      ExpectEqual(op.output(0), want);
    }
  }
}

TEST(ClipTest, BoundsOfBothForms) {
  const float nan = std::nanf("");
  auto run = [](Tensor x, Tensor low, Tensor high) {
    OpTest op("ClipByValue");
    op.Input(std::move(x), true).Input(std::move(low)).Input(std::move(high));
    EXPECT_TRUE(op.Run().ok());
    return op.output(0);
  };
  const Tensor x = Tensor::Vector<float>({nan, 1, 5, -2});
  ExpectEqual(run(x, Tensor::Scalar(0.f), Tensor::Scalar(3.f)),
              Tensor::Vector<float>({nan, 1, 3, 0}));
  ExpectEqual(run(x, Tensor::Vector<float>({0, 2, 0, -5}), Tensor::Scalar(3.f)),
              Tensor::Vector<float>({nan, 2, 3, -2}));
  OpTest wrong("ClipByValue");
  wrong.Input(x).Input(Tensor::Vector<float>({1})).Input(Tensor::Scalar(1.f));
  EXPECT_EQ(wrong.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BiasTest, BothFormats) {
  for (bool channels_first : {false, true}) {
    for (const Shape& shape : {Shape({4, 5}), Shape({2, 3, 4, 5}), Shape({3, 7, 300})}) {
      const int channel = channels_first && shape.rank() > 2 ? 1 : shape.rank() - 1;
      const int64_t channels = shape.dim(channel);
      int64_t inner = 1;
      for (int d = channel + 1; d < shape.rank(); ++d) inner *= shape.dim(d);
      const Tensor x = RandomTensor(kFloat, shape, -3, 3);
      const Tensor bias = RandomTensor(kFloat, Shape({channels}), -3, 3, 2);
      Tensor want = *x.Clone();
      std::vector<double> sums(channels);
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        const int64_t c = i / inner % channels;
        Set(&want, i, x.unchecked_data<float>()[i] + bias.unchecked_data<float>()[c]);
        sums[c] += At(x, i);
      }
      const char* format = channels_first ? "NCHW" : "NHWC";
      OpTest op("BiasAdd");
      op.Input(x, true).Input(bias).Attr("data_format", format);
      ASSERT_TRUE(op.Run().ok());
      ExpectEqual(op.output(0), want);
      OpTest gradient("BiasAddGrad");
      gradient.Input(x).Attr("data_format", format);
      ASSERT_TRUE(gradient.Run().ok());
      ExpectNear(gradient.output(0), MakeTensor(kFloat, Shape({channels}), sums), 1e-5, 1e-4);
    }
  }
  OpTest wrong("BiasAdd");
  wrong.Input(RandomTensor(kFloat, Shape({2, 3}), 0, 1)).Input(Tensor::Vector<float>({1, 2}));
  EXPECT_EQ(wrong.Run().code(), absl::StatusCode::kInvalidArgument);
}

// Softmax of row r of logits, in double.
std::vector<double> SoftmaxRow(const Tensor& logits, int64_t r, int64_t cols) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t c = 0; c < cols; ++c) max = std::max(max, At(logits, r * cols + c));
  std::vector<double> row(cols);
  for (int64_t c = 0; c < cols; ++c) sum += row[c] = std::exp(At(logits, r * cols + c) - max);
  for (double& v : row) v /= sum;
  return row;
}

TEST(SoftmaxTest, RowsAndLosses) {
  for (ElementType type : {kFloat, kDouble, kHalf, kBfloat16}) {
    const double tolerance = type == kFloat    ? 2e-6
                             : type == kDouble ? 1e-13
                             : type == kHalf   ? 5e-3
                                               : 4e-2;
    for (int64_t cols : {1, 2, 3, 10, 16, 32, 33, 50, 1000}) {
      SCOPED_TRACE(::testing::Message() << ElementTypeName(type) << " " << cols);
      const int64_t rows = cols < 100 ? 37 : 7;
      const Shape shape({rows, cols});
      const Tensor x = RandomTensor(type, shape, -5, 5);
      const Tensor labels = RandomTensor(type, shape, 0, 1, 3);
      Tensor softmax = Tensor::Uninitialized(type, shape), log = softmax, backprop = softmax;
      log = Tensor::Uninitialized(type, shape);
      backprop = Tensor::Uninitialized(type, shape);
      Tensor sparse_backprop = Tensor::Uninitialized(type, shape);
      Tensor loss = Tensor::Uninitialized(type, Shape({rows}));
      Tensor sparse_loss = Tensor::Uninitialized(type, Shape({rows}));
      Tensor classes = Tensor::Uninitialized(kInt32, Shape({rows}));
      for (int64_t r = 0; r < rows; ++r) {
        const std::vector<double> p = SoftmaxRow(x, r, cols);
        const int64_t label = r % cols;
        classes.mutable_data<int32_t>()[r] = static_cast<int32_t>(label);
        double sum = 0;
        for (int64_t c = 0; c < cols; ++c) {
          const int64_t i = r * cols + c;
          Set(&softmax, i, p[c]);
          Set(&log, i, std::log(p[c]));
          Set(&backprop, i, p[c] - At(labels, i));
          Set(&sparse_backprop, i, p[c] - (c == label ? 1 : 0));
          sum -= At(labels, i) * std::log(p[c]);
        }
        Set(&loss, r, sum);
        Set(&sparse_loss, r, -std::log(p[label]));
      }
      for (bool in_place : {false, true}) {
        OpTest a("Softmax"), b("LogSoftmax"), c("SoftmaxCrossEntropyWithLogits"),
            d("SparseSoftmaxCrossEntropyWithLogits");
        a.Input(x, in_place);
        b.Input(x, in_place);
        c.Input(x, in_place).Input(labels);
        d.Input(x, in_place).Input(classes);
        for (OpTest* op : {&a, &b, &c, &d}) ASSERT_TRUE(op->Run().ok());
        ExpectNear(a.output(0), softmax, tolerance, tolerance / 10);
        ExpectNear(b.output(0), log, tolerance, tolerance);
        ExpectNear(c.output(0), loss, tolerance, tolerance);
        ExpectNear(c.output(1), backprop, tolerance, tolerance);
        ExpectNear(d.output(0), sparse_loss, tolerance, tolerance);
        ExpectNear(d.output(1), sparse_backprop, tolerance, tolerance);
      }
    }
  }
}

TEST(SoftmaxTest, RefusesBadInput) {
  auto code = [](const char* name, Tensor x, Tensor y) {
    OpTest op(name);
    op.Input(std::move(x)).Input(std::move(y));
    return op.Run().code();
  };
  const Tensor logits = RandomTensor(kFloat, Shape({2, 3}), 0, 1);
  const char* sparse = "SparseSoftmaxCrossEntropyWithLogits";
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(sparse, logits, Tensor::Vector<int32_t>({0, 3})), invalid);
  EXPECT_EQ(code(sparse, logits, Tensor::Vector<int64_t>({-1, 0})), invalid);
  EXPECT_EQ(code(sparse, logits, Tensor::Vector<int32_t>({0})), invalid);
  const Tensor row = RandomTensor(kFloat, Shape({3}), 0, 1);
  EXPECT_EQ(code("SoftmaxCrossEntropyWithLogits", row, row), invalid);
  EXPECT_EQ(code("SoftmaxCrossEntropyWithLogits", logits, row), absl::StatusCode::kOk);
  OpTest scalar("Softmax");
  scalar.Input(Tensor::Scalar(1.f));
  EXPECT_EQ(scalar.Run().code(), invalid);
}

}  // namespace
}  // namespace troupe::testing
