#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

struct PoolCase {
  Shape input;
  int64_t window[2], strides[2];
  const char* padding = "SAME";
};

const PoolCase kCases[] = {
    {{2, 5, 6, 3}, {2, 2}, {2, 2}},           {{1, 6, 5, 10}, {3, 2}, {1, 1}},
    {{2, 7, 8, 1}, {3, 3}, {2, 2}, "VALID"},  {{1, 4, 5, 300}, {2, 3}, {3, 1}},
    {{2, 2, 2, 2}, {4, 5}, {1, 1}},           {{3, 9, 9, 16}, {2, 2}, {3, 3}, "VALID"},
    {{1, 9, 40, 4}, {2, 4}, {2, 3}},          {{1, 3, 300, 8}, {3, 3}, {1, 2}},
    {{1, 3, 40, 9}, {2, 3}, {2, 1}, "VALID"}, {{1, 2, 700, 20}, {2, 650}, {1, 30}, "VALID"},
    {{1, 4, 90, 2}, {1, 1}, {2, 7}},          {{1, 3, 9, 600}, {3, 3}, {1, 2}},
};

struct Sizes {
  int64_t out[2], before[2];
  Shape output;
};

Sizes SizesOf(const PoolCase& c) {
  Sizes s;
  for (int d = 0; d < 2; ++d) {
    const int64_t in = c.input.dim(d + 1), stride = c.strides[d], window = c.window[d];
    const bool same = std::string(c.padding) == "SAME";
    s.out[d] = same ? (in + stride - 1) / stride : (in - window) / stride + 1;
    s.before[d] = same ? std::max<int64_t>(0, (s.out[d] - 1) * stride + window - in) / 2 : 0;
  }
  s.output = Shape({c.input.dim(0), s.out[0], s.out[1], c.input.dim(3)});
  return s;
}

// Calls f(index of an output, indices of its window's inputs in order) for every output.
template <typename F>
void ForWindows(const PoolCase& c, F f) {
  const Sizes s = SizesOf(c);
  const int64_t depth = c.input.dim(3);
  std::vector<int64_t> window;
  for (int64_t o = 0; o < s.output.num_elements(); ++o) {
    const int64_t channel = o % depth, x = o / depth % s.out[1],
                  y = o / depth / s.out[1] % s.out[0];
    const int64_t n = o / depth / s.out[1] / s.out[0];
    window.clear();
    for (int64_t r = 0; r < c.window[0]; ++r) {
      for (int64_t q = 0; q < c.window[1]; ++q) {
        const int64_t iy = y * c.strides[0] - s.before[0] + r;
        const int64_t ix = x * c.strides[1] - s.before[1] + q;
        if (iy < 0 || iy >= c.input.dim(1) || ix < 0 || ix >= c.input.dim(2)) continue;
        window.push_back(((n * c.input.dim(1) + iy) * c.input.dim(2) + ix) * depth + channel);
      }
    }
    f(o, window);
  }
}

int64_t FirstMax(const Tensor& in, const std::vector<int64_t>& window) {
  int64_t best = window[0];
  for (int64_t i : window) {
    if (At(in, i) > At(in, best)) best = i;
  }
  return best;
}

std::string Name(const PoolCase& c, ElementType type) {
  return absl::StrCat(ElementTypeName(type), c.input.ToString(), " window ", c.window[0], "x",
                      c.window[1], " stride ", c.strides[0], c.strides[1], " ", c.padding);
}

OpTest& Configure(OpTest& op, const PoolCase& c) {
  return op.Attr("ksize", {1, c.window[0], c.window[1], 1})
      .Attr("strides", {1, c.strides[0], c.strides[1], 1})
      .Attr("padding", c.padding);
}
Tensor Four(int64_t a, int64_t b) {
  return Tensor::Vector<int32_t>({1, static_cast<int32_t>(a), static_cast<int32_t>(b), 1});
}

const ElementType kAllTypes[] = {
    ElementType::kFloat, ElementType::kDouble, ElementType::kHalf,   ElementType::kBfloat16,
    ElementType::kInt8,  ElementType::kInt16,  ElementType::kInt32,  ElementType::kInt64,
    ElementType::kUint8, ElementType::kUint16, ElementType::kUint32, ElementType::kUint64};
const ElementType kFloatTypes[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf,
                                   ElementType::kBfloat16};

// Few distinct values, so that there are ties.
Tensor WithTies(ElementType type, const Shape& shape, uint32_t seed) {
  Tensor t = RandomTensor(ElementType::kInt32, shape, 0, 5, seed);
  std::vector<double> values(t.num_elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = At(t, static_cast<int64_t>(i));
  return MakeTensor(type, shape, values);
}

TEST(PoolTest, MaxPoolAndItsGradients) {
  for (ElementType type : kAllTypes) {
    for (const PoolCase& c : kCases) {
      SCOPED_TRACE(Name(c, type));
      const Sizes s = SizesOf(c);
      const Tensor in = WithTies(type, c.input, 1);
      const Tensor dy = WithTies(type, s.output, 2), ddx = WithTies(type, c.input, 3);
      std::vector<double> y(s.output.num_elements()), ddy(y.size()), dx(c.input.num_elements());
      ForWindows(c, [&](int64_t o, const std::vector<int64_t>& window) {
        const int64_t i = FirstMax(in, window);
        y[o] = At(in, i);
        ddy[o] = At(ddx, i);
        dx[i] += At(dy, o);
      });
      const Tensor want = MakeTensor(type, s.output, y);
      for (int version : {1, 2}) {
        OpTest forward(version == 1 ? "MaxPool" : "MaxPoolV2");
        OpTest gradient(version == 1 ? "MaxPoolGrad" : "MaxPoolGradV2");
        OpTest second(version == 1 ? "MaxPoolGradGrad" : "MaxPoolGradGradV2");
        forward.Input(in);
        gradient.Input(in).Input(want).Input(dy);
        second.Input(in).Input(want).Input(ddx);
        for (OpTest* op : {&forward, &gradient, &second}) {
          if (version == 1) {
            Configure(*op, c);
          } else {
            op->Attr("padding", c.padding)
                .Input(Four(c.window[0], c.window[1]))
                .Input(Four(c.strides[0], c.strides[1]));
          }
          ASSERT_EQ(op->Run(), absl::OkStatus());
        }
        ExpectEqual(forward.output(0), want);
        ExpectEqual(gradient.output(0), MakeTensor(type, c.input, dx));
        ExpectEqual(second.output(0), MakeTensor(type, s.output, ddy));
      }
    }
  }
}

TEST(PoolTest, AvgPoolAndItsGradient) {
  for (ElementType type : kFloatTypes) {
    const double tolerance = type == ElementType::kDouble  ? 1e-13
                             : type == ElementType::kFloat ? 1e-6
                                                           : 1e-2;
    for (const PoolCase& c : kCases) {
      SCOPED_TRACE(Name(c, type));
      const Sizes s = SizesOf(c);
      const Tensor in = RandomTensor(type, c.input, -1, 1, 1);
      const Tensor dy = RandomTensor(type, s.output, -1, 1, 2);
      std::vector<double> y(s.output.num_elements()), dx(c.input.num_elements());
      ForWindows(c, [&](int64_t o, const std::vector<int64_t>& window) {
        const double count = static_cast<double>(window.size());
        for (int64_t i : window) {
          y[o] += At(in, i) / count;
          dx[i] += At(dy, o) / count;
        }
      });
      OpTest forward("AvgPool");
      Configure(forward, c).Input(in);
      ASSERT_EQ(forward.Run(), absl::OkStatus());
      ExpectNear(forward.output(0), MakeTensor(type, s.output, y), tolerance, tolerance);
      OpTest gradient("AvgPoolGrad");
      std::vector<int32_t> sizes(c.input.dims().begin(), c.input.dims().end());
      Configure(gradient, c).Input(Tensor::Vector<int32_t>(sizes)).Input(dy);
      ASSERT_EQ(gradient.Run(), absl::OkStatus());
      ExpectNear(gradient.output(0), MakeTensor(type, c.input, dx), tolerance, tolerance);
    }
  }
}

TEST(PoolTest, MaxPoolOverDepth) {
  OpTest op("MaxPool");
  op.Attr("ksize", {1, 1, 1, 3})
      .Attr("strides", {1, 1, 1, 3})
      .Attr("padding", "VALID")
      .Input(MakeTensor(ElementType::kFloat, Shape({1, 1, 2, 6}),
                        {1, 5, 2, -3, -1, -2, 9, 8, 7, 0, 0, 1}));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectEqual(op.output(0), MakeTensor(ElementType::kFloat, Shape({1, 1, 2, 2}), {5, -1, 9, 1}));
}

TEST(PoolTest, InfinitiesAndNan) {
  const float inf = std::numeric_limits<float>::infinity();
  const float lowest = std::numeric_limits<float>::lowest();
  OpTest op("MaxPool");
  op.Attr("ksize", {1, 1, 2, 1})
      .Attr("strides", {1, 1, 2, 1})
      .Attr("padding", "VALID")
      .Input(MakeTensor(ElementType::kFloat, Shape({1, 1, 6, 1}), {-inf, -inf, NAN, 3, 2, NAN}));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectEqual(op.output(0), MakeTensor(ElementType::kFloat, Shape({1, 1, 3, 1}), {lowest, 3, 2}));
}

TEST(PoolTest, SameBitsWithTwoThreads) {
  const PoolCase c = {{50, 20, 20, 16}, {3, 3}, {2, 2}};
  const Tensor in = RandomTensor(ElementType::kFloat, c.input, -1, 1, 1);
  const Tensor dy = RandomTensor(ElementType::kFloat, SizesOf(c).output, -1, 1, 2);
  std::vector<Tensor> outs[2];
  for (int threads : {1, 2}) {
    for (const char* name : {"MaxPool", "AvgPool", "MaxPoolGrad"}) {
      OpTest op(name, threads);
      Configure(op, c).Input(in);
      if (std::string(name) == "MaxPoolGrad") op.Input(dy).Input(dy);
      ASSERT_EQ(op.Run(), absl::OkStatus());
      outs[threads - 1].push_back(op.output(0));
    }
  }
  for (int i = 0; i < 3; ++i) ExpectEqual(outs[0][i], outs[1][i]);
}

absl::StatusCode CodeOf(const char* name, const Shape& input, std::initializer_list<int64_t> ksize,
                        std::initializer_list<int64_t> strides, const char* padding = "VALID") {
  OpTest op(name);
  op.Attr("ksize", ksize).Attr("strides", strides).Attr("padding", padding);
  op.Input(RandomTensor(ElementType::kFloat, input, -1, 1));
  return op.Run().code();
}

TEST(PoolTest, RefusesWhatDoesNotFit) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const auto unimplemented = absl::StatusCode::kUnimplemented;
  for (const char* name : {"MaxPool", "AvgPool"}) {
    EXPECT_EQ(CodeOf(name, {4, 4, 2}, {1, 2, 2, 1}, {1, 1, 1, 1}), invalid);
    EXPECT_EQ(CodeOf(name, {1, 1, 1, 2}, {1, 3, 3, 1}, {1, 1, 1, 1}), invalid);
    EXPECT_EQ(CodeOf(name, {1, 4, 4, 2}, {1, 0, 2, 1}, {1, 1, 1, 1}), invalid);
    EXPECT_EQ(CodeOf(name, {1, 4, 4, 2}, {1, 2, 2}, {1, 1, 1, 1}), invalid);
    EXPECT_EQ(CodeOf(name, {1, 4, 4, 2}, {2, 2, 2, 1}, {1, 1, 1, 1}), unimplemented);
    EXPECT_EQ(CodeOf(name, {1, 4, 4, 2}, {1, 2, 2, 2}, {1, 1, 1, 2}), unimplemented);
    EXPECT_EQ(CodeOf(name, {0, 4, 4, 2}, {1, 2, 2, 1}, {1, 1, 1, 1}), absl::StatusCode::kOk);
  }
  EXPECT_EQ(CodeOf("MaxPool", {1, 2, 2, 5}, {1, 1, 1, 2}, {1, 1, 1, 2}), unimplemented);
  EXPECT_EQ(CodeOf("AvgPool", {1, 2, 2, 4}, {1, 1, 1, 2}, {1, 1, 1, 2}), unimplemented);

  OpTest gradient("MaxPoolGrad");
  gradient.Attr("ksize", {1, 2, 2, 1}).Attr("strides", {1, 2, 2, 1}).Attr("padding", "VALID");
  gradient.Input(RandomTensor(ElementType::kFloat, Shape({1, 4, 4, 2}), -1, 1))
      .Input(RandomTensor(ElementType::kFloat, Shape({1, 2, 2, 2}), -1, 1))
      .Input(RandomTensor(ElementType::kFloat, Shape({1, 3, 2, 2}), -1, 1));
  EXPECT_EQ(gradient.Run().code(), invalid);
}

}  // namespace
}  // namespace troupe::testing
