#include <omp.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/nn/conv_shape.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

struct ConvCase {
  Shape input, filter;
  int64_t strides[2] = {1, 1};
  const char* padding = "SAME";
  int64_t pads[4] = {0, 0, 0, 0};  // top, bottom, left, right of EXPLICIT
  int64_t dilations[2] = {1, 1};
};

// What the naive loops need.
struct Sizes {
  int64_t out[2], before[2];
  Shape output;
};

Sizes SizesOf(const ConvCase& c) {
  Sizes s;
  for (int d = 0; d < 2; ++d) {
    const int64_t in = c.input.dim(d + 1), stride = c.strides[d];
    const int64_t window = (c.filter.dim(d) - 1) * c.dilations[d] + 1;
    if (std::string(c.padding) == "SAME") {
      s.out[d] = (in + stride - 1) / stride;
      s.before[d] = std::max<int64_t>(0, (s.out[d] - 1) * stride + window - in) / 2;
    } else {
      s.out[d] = (in + c.pads[2 * d] + c.pads[2 * d + 1] - window) / stride + 1;
      s.before[d] = c.pads[2 * d];
    }
  }
  s.output = Shape({c.input.dim(0), s.out[0], s.out[1], c.filter.dim(3)});
  return s;
}

// Products of the convolution, one for each channel that comes in: of the elements of the input
// from one on, with those of the filter that are `step` apart, all for one element of the output.
struct Products {
  double* input;
  double* filter;
  double* output;
  int64_t count, step;
};

// Calls f(Products) until there are all.
template <typename F>
void ForProducts(const ConvCase& c, double* input, double* filter, double* output, F f) {
  const Sizes s = SizesOf(c);
  const Shape &in = c.input, &fi = c.filter;
  const int64_t groups = in.dim(3) / fi.dim(2), group_out = fi.dim(3) / groups;
  for (int64_t n = 0; n < in.dim(0); ++n)
    for (int64_t y = 0; y < s.out[0]; ++y)
      for (int64_t x = 0; x < s.out[1]; ++x)
        for (int64_t k = 0; k < fi.dim(3); ++k)
          for (int64_t r = 0; r < fi.dim(0); ++r)
            for (int64_t q = 0; q < fi.dim(1); ++q) {
              const int64_t iy = y * c.strides[0] - s.before[0] + r * c.dilations[0];
              const int64_t ix = x * c.strides[1] - s.before[1] + q * c.dilations[1];
              if (iy < 0 || iy >= in.dim(1) || ix < 0 || ix >= in.dim(2)) continue;
              f(Products{input + ((n * in.dim(1) + iy) * in.dim(2) + ix) * in.dim(3) +
                             k / group_out * fi.dim(2),
                         filter + (r * fi.dim(1) + q) * fi.dim(2) * fi.dim(3) + k,
                         output + ((n * s.out[0] + y) * s.out[1] + x) * fi.dim(3) + k, fi.dim(2),
                         fi.dim(3)});
            }
}

std::vector<double> Doubles(const Tensor& tensor) {
  std::vector<double> values(tensor.num_elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = At(tensor, static_cast<int64_t>(i));
  return values;
}

const ConvCase kCases[] = {
    {{2, 5, 6, 3}, {3, 3, 3, 4}},
    {{1, 7, 5, 2}, {2, 4, 2, 9}, {2, 3}},
    {{2, 8, 8, 1}, {6, 6, 1, 6}},
    {{3, 9, 8, 6}, {5, 5, 6, 12}, {2, 2}},
    {{2, 6, 6, 16}, {1, 1, 16, 24}, {2, 1}, "VALID"},
    {{2, 9, 7, 8}, {3, 2, 8, 8}, {2, 3}, "VALID"},
    {{1, 4, 5, 3}, {3, 2, 3, 5}, {1, 1}, "EXPLICIT", {1, 0, 1, 2}},
    {{2, 7, 5, 2}, {2, 1, 2, 3}, {3, 3}},
    {{2, 2, 2, 2}, {5, 4, 2, 1}},
    {{1, 4, 4, 3}, {2, 3, 3, 2}, {2, 2}, "EXPLICIT", {3, 2, 0, 4}},
    {{1, 6, 6, 32}, {3, 3, 32, 32}},
    {{19, 12, 12, 4}, {3, 3, 4, 20}},
};
// Few images of much work: cut by rows (see CutConv). Narrow ones and oneDNN's; strides that leave
// rows over or skip rows; windows that reach far into the padding.
const ConvCase kFewImages[] = {
    {{1, 32, 32, 16}, {3, 3, 16, 16}},
    {{1, 33, 31, 16}, {3, 3, 16, 32}, {2, 2}},
    {{1, 40, 36, 12}, {5, 5, 12, 24}, {2, 2}},
    {{1, 8, 9, 64}, {3, 3, 64, 64}},
    {{2, 17, 19, 48}, {3, 3, 48, 72}, {2, 2}},
    {{1, 30, 30, 128}, {1, 1, 128, 128}, {2, 2}},
    {{1, 20, 20, 40}, {7, 3, 40, 48}, {1, 1}, "EXPLICIT", {5, 4, 0, 2}},
    {{1, 20, 20, 16}, {4, 3, 16, 30}, {3, 1}, "EXPLICIT", {6, 7, 1, 1}},
    {{1, 41, 40, 40}, {3, 3, 40, 48}, {3, 3}, "VALID"},
    {{1, 7, 7, 128}, {3, 3, 128, 128}},
};
const ConvCase kForwardOnly[] = {
    {{2, 7, 8, 3}, {3, 2, 3, 5}, {1, 1}, "SAME", {}, {2, 3}},
    {{1, 9, 9, 4}, {3, 3, 4, 8}, {2, 1}, "VALID", {}, {2, 2}},
    {{2, 4, 4, 4}, {3, 3, 2, 4}},
    {{1, 5, 5, 12}, {2, 2, 4, 6}, {2, 2}},
    {{1, 5, 5, 6}, {3, 3, 1, 12}, {1, 1}, "VALID", {}, {1, 2}},
};

std::string Name(const ConvCase& c) {
  return absl::StrCat(c.input.ToString(), " * ", c.filter.ToString(), " stride ", c.strides[0],
                      c.strides[1], " ", c.padding, " dilation ", c.dilations[0], c.dilations[1]);
}

OpTest& Configure(OpTest& op, const ConvCase& c) {
  op.Attr("strides", {1, c.strides[0], c.strides[1], 1})
      .Attr("padding", c.padding)
      .Attr("dilations", {1, c.dilations[0], c.dilations[1], 1});
  if (std::string(c.padding) == "EXPLICIT") {
    op.Attr("explicit_paddings", {0, 0, c.pads[0], c.pads[1], c.pads[2], c.pads[3], 0, 0});
  }
  return op;
}

Tensor SizesTensor(const Shape& shape) {
  std::vector<int32_t> sizes(shape.dims().begin(), shape.dims().end());
  return Tensor::Vector<int32_t>(sizes);
}

double ToleranceOf(ElementType type) {
  switch (type) {
    case ElementType::kDouble:
      return 1e-12;
    case ElementType::kFloat:
      return 2e-5;
    case ElementType::kHalf:
      return 2e-3;
    case ElementType::kBfloat16:
      return 1e-2;
    default:
      return 0;
  }
}

void ExpectSum(const Tensor& got, const std::vector<double>& want) {
  const double tolerance = ToleranceOf(got.type());
  ExpectNear(got, MakeTensor(got.type(), got.shape(), want), tolerance, 4 * tolerance);
}

const ElementType kFloatTypes[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf,
                                   ElementType::kBfloat16};

void TestForward(const ConvCase& c, ElementType type) {
  SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", Name(c)));
  const double bound = IsFloating(type) ? 1 : 9;
  const Tensor input = RandomTensor(type, c.input, -bound, bound, 1);
  const Tensor filter = RandomTensor(type, c.filter, -bound, bound, 2);
  OpTest op("Conv2D");
  Configure(op, c).Input(input).Input(filter);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ASSERT_EQ(op.output(0).shape(), SizesOf(c).output);
  std::vector<double> want(op.output(0).num_elements()), in = Doubles(input), fi = Doubles(filter);
  ForProducts(c, in.data(), fi.data(), want.data(), [](const Products& p) {
    for (int64_t d = 0; d < p.count; ++d) *p.output += p.input[d] * p.filter[d * p.step];
  });
  ExpectSum(op.output(0), want);
}

void TestInputGradient(const ConvCase& c, ElementType type) {
  SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", Name(c)));
  const Tensor filter = RandomTensor(type, c.filter, -1, 1, 3);
  const Tensor gradient = RandomTensor(type, SizesOf(c).output, -1, 1, 4);
  OpTest op("Conv2DBackpropInput");
  Configure(op, c).Input(SizesTensor(c.input)).Input(filter).Input(gradient);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ASSERT_EQ(op.output(0).shape(), c.input);
  std::vector<double> want(c.input.num_elements()), fi = Doubles(filter), out = Doubles(gradient);
  ForProducts(c, want.data(), fi.data(), out.data(), [](const Products& p) {
    for (int64_t d = 0; d < p.count; ++d) p.input[d] += *p.output * p.filter[d * p.step];
  });
  ExpectSum(op.output(0), want);
}

void TestFilterGradient(const ConvCase& c, ElementType type) {
  SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", Name(c)));
  const Tensor input = RandomTensor(type, c.input, -1, 1, 5);
  const Tensor gradient = RandomTensor(type, SizesOf(c).output, -1, 1, 6);
  OpTest op("Conv2DBackpropFilter");
  Configure(op, c).Input(input).Input(SizesTensor(c.filter)).Input(gradient);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ASSERT_EQ(op.output(0).shape(), c.filter);
  std::vector<double> want(c.filter.num_elements()), in = Doubles(input), out = Doubles(gradient);
  ForProducts(c, in.data(), want.data(), out.data(), [](const Products& p) {
    for (int64_t d = 0; d < p.count; ++d) p.filter[d * p.step] += *p.output * p.input[d];
  });
  ExpectSum(op.output(0), want);
}

TEST(Conv2DTest, AgreesWithNaiveLoops) {
  for (const ConvCase& c : kCases) {
    for (ElementType type : kFloatTypes) TestForward(c, type);
    TestForward(c, ElementType::kInt32);
  }
}

TEST(Conv2DTest, FewImagesAreCutByRows) {
  for (const ConvCase& c : kFewImages) {
    SCOPED_TRACE(Name(c));
    for (ElementType type : {ElementType::kFloat, ElementType::kHalf, ElementType::kBfloat16}) {
      TestForward(c, type);
      TestInputGradient(c, type);
      TestFilterGradient(c, type);
    }
    // The test would prove nothing if there were one piece.
    const Sizes sizes = SizesOf(c);
    ConvShape shape;
    shape.batch = c.input.dim(0);
    shape.in_depth = c.filter.dim(2);
    shape.out_depth = c.filter.dim(3);
    shape.rows = {
        c.input.dim(1), sizes.out[0], c.filter.dim(0), c.strides[0], 1, sizes.before[0], 0};
    shape.columns = {
        c.input.dim(2), sizes.out[1], c.filter.dim(1), c.strides[1], 1, sizes.before[1], 0};
    if (c.pads[0] < c.filter.dim(0)) {
      EXPECT_GT(CutConv(ConvOp::kForward, shape, 8).size(), static_cast<size_t>(shape.batch));
    }
  }
}

TEST(Conv2DTest, KeepsWhatItMakesOfAConstantFilter) {
  constexpr auto kFloat = ElementType::kFloat;
  // A narrow one and oneDNN's.
  for (const auto& [type, depth] : {std::pair(kFloat, 8),
                                    {kFloat, 64},
                                    {ElementType::kHalf, 64},
                                    {ElementType::kBfloat16, 64}}) {
    const Tensor filter = RandomTensor(type, Shape({3, 3, depth, depth}), -1, 1, 1);
    const Tensor other = RandomTensor(type, Shape({3, 3, depth, depth}), -1, 1, 2);
    OpTest constant("Conv2D");
    constant.Attr("strides", {1, 1, 1, 1}).Attr("padding", "SAME");
    int seed = 3;
    // The same filter twice, then another one, and images of another size.
    for (const auto& [used, side] : {std::pair(filter, 9), {filter, 9}, {other, 9}, {other, 30}}) {
      const Tensor input = RandomTensor(type, Shape({1, side, side, depth}), -1, 1, seed++);
      OpTest fresh("Conv2D");
      fresh.Attr("strides", {1, 1, 1, 1}).Attr("padding", "SAME").Input(input).Input(used);
      ASSERT_EQ(fresh.Run(), absl::OkStatus());
      constant.ClearInputs().Input(input).ConstantInput(used);
      ASSERT_EQ(constant.Run(), absl::OkStatus());
      ExpectEqual(constant.output(0), fresh.output(0));
    }
  }
}

TEST(Conv2DTest, DilationsAndGroups) {
  for (const ConvCase& c : kForwardOnly) {
    for (ElementType type : kFloatTypes) TestForward(c, type);
    TestForward(c, ElementType::kInt32);
  }
}

TEST(Conv2DTest, GradientOfTheInput) {
  for (const ConvCase& c : kCases) {
    for (ElementType type : kFloatTypes) TestInputGradient(c, type);
  }
}

TEST(Conv2DTest, GradientOfTheFilter) {
  for (const ConvCase& c : kCases) {
    for (ElementType type : kFloatTypes) TestFilterGradient(c, type);
  }
}

TEST(Conv2DTest, ManyBlocksOfPatches) {
  for (const ConvCase& c : {ConvCase{{3, 37, 41, 24}, {3, 3, 24, 20}},
                            ConvCase{{2, 45, 50, 30}, {5, 4, 30, 17}, {2, 1}}}) {
    SCOPED_TRACE(Name(c));
    TestForward(c, ElementType::kInt32);
    TestForward(c, ElementType::kDouble);
    TestInputGradient(c, ElementType::kDouble);
    TestFilterGradient(c, ElementType::kDouble);
  }
}

TEST(Conv2DTest, SameBitsWithTwoThreads) {
  const ConvCase cases[] = {{{37, 20, 20, 1}, {6, 6, 1, 6}},
                            {{41, 14, 14, 6}, {5, 5, 6, 12}, {2, 2}},
                            {{5, 14, 14, 40}, {3, 3, 40, 48}}};
  std::vector<ConvCase> all(std::begin(cases), std::end(cases));
  all.insert(all.end(), std::begin(kFewImages), std::end(kFewImages));
  for (const ConvCase& c : all) {
    for (int i = 0; i < 12; ++i) {
      const int which = i % 3;
      const ElementType type = kFloatTypes[i / 3];
      SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", Name(c)));
      const Tensor input = RandomTensor(type, c.input, -1, 1, 1);
      const Tensor filter = RandomTensor(type, c.filter, -1, 1, 2);
      const Tensor gradient = RandomTensor(type, SizesOf(c).output, -1, 1, 3);
      std::vector<Tensor> outs;
      for (int threads : {1, 2, 3}) {
        OpTest op(which == 0   ? "Conv2D"
                  : which == 1 ? "Conv2DBackpropInput"
                               : "Conv2DBackpropFilter",
                  threads);
        Configure(op, c);
        if (which == 0) op.Input(input).Input(filter);
        if (which == 1) op.Input(SizesTensor(c.input)).Input(filter).Input(gradient);
        if (which == 2) op.Input(input).Input(SizesTensor(c.filter)).Input(gradient);
        ASSERT_EQ(op.Run(), absl::OkStatus());
        outs.push_back(op.output(0));
      }
      ExpectEqual(outs[1], outs[0]);
      ExpectEqual(outs[2], outs[0]);
    }
  }
}

// An application has its own loops on the thread that runs a step.
TEST(Conv2DTest, LeavesWhatOpenMpWasTold) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  TestForward({Shape({2, 12, 12, 3}), Shape({3, 3, 3, 8})}, ElementType::kFloat);
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(before);
}

TEST(Conv2DTest, EmptyTensors) {
  for (ElementType type : kFloatTypes) {
    OpTest forward("Conv2D");
    forward.Attr("strides", {1, 1, 1, 1})
        .Attr("padding", "SAME")
        .Input(Tensor::Uninitialized(type, Shape({0, 4, 5, 2})))
        .Input(RandomTensor(type, Shape({3, 3, 2, 3}), -1, 1));
    ASSERT_EQ(forward.Run(), absl::OkStatus());
    EXPECT_EQ(forward.output(0).shape(), Shape({0, 4, 5, 3}));
    OpTest filter("Conv2DBackpropFilter");
    filter.Attr("strides", {1, 1, 1, 1})
        .Attr("padding", "SAME")
        .Input(Tensor::Uninitialized(type, Shape({0, 4, 5, 2})))
        .Input(Tensor::Vector<int32_t>({3, 3, 2, 3}))
        .Input(Tensor::Uninitialized(type, Shape({0, 4, 5, 3})));
    ASSERT_EQ(filter.Run(), absl::OkStatus());
    ASSERT_EQ(filter.output(0).shape(), Shape({3, 3, 2, 3}));
    for (int i = 0; i < 54; ++i) EXPECT_EQ(At(filter.output(0), i), 0);
  }
}

absl::StatusCode CodeOf(const Shape& input, const Shape& filter,
                        std::initializer_list<int64_t> strides, const char* padding = "VALID",
                        const char* format = "NHWC",
                        std::initializer_list<int64_t> dilations = {1, 1, 1, 1}) {
  OpTest op("Conv2D");
  op.Attr("strides", strides)
      .Attr("padding", padding)
      .Attr("data_format", format)
      .Attr("dilations", dilations)
      .Input(RandomTensor(ElementType::kFloat, input, -1, 1))
      .Input(RandomTensor(ElementType::kFloat, filter, -1, 1));
  return op.Run().code();
}

TEST(Conv2DTest, RefusesWhatDoesNotFit) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const auto unimplemented = absl::StatusCode::kUnimplemented;
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {2, 2, 2, 2}, {1, 1, 1, 1}), invalid);
  EXPECT_EQ(CodeOf({4, 4, 3}, {2, 2, 3, 2}, {1, 1, 1, 1}), invalid);
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {2, 3, 2}, {1, 1, 1, 1}), invalid);
  EXPECT_EQ(CodeOf({1, 2, 2, 3}, {4, 4, 3, 2}, {1, 1, 1, 1}), invalid);
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {0, 2, 3, 2}, {1, 1, 1, 1}), invalid);
  EXPECT_EQ(CodeOf({1, 4, 4, 4}, {2, 2, 2, 3}, {1, 1, 1, 1}), invalid);
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {2, 2, 3, 2}, {2, 1, 1, 1}), unimplemented);
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {2, 2, 3, 2}, {1, 1, 1, 2}), unimplemented);
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {2, 2, 3, 2}, {1, 0, 1, 1}), invalid);
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {2, 2, 3, 2}, {1, 1, 1}), invalid);
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {2, 2, 3, 2}, {1, 1, 1, 1}, "SAME", "NCHW"), unimplemented);
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {2, 2, 3, 2}, {1, 1, 1, 1}, "SAME", "NHWC", {1, 0, 1, 1}),
            invalid);
  // A window one larger than the input gives nothing.
  EXPECT_EQ(CodeOf({2, 3, 3, 2}, {4, 4, 2, 3}, {1, 1, 1, 1}), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf({1, 4, 4, 3}, {2, 2, 3, 2}, {1, int64_t{1} << 62, 1, 1}), invalid);
}

TEST(DepthwiseConvTest, DilationsBeyondTheImage) {
  for (const int64_t dilation : {int64_t{9}, int64_t{100'000}, int64_t{1} << 30}) {
    for (const int64_t channels : {3, 32}) {
      const Tensor x = RandomTensor(ElementType::kFloat, Shape({1, 4, 4, channels}), -1, 1);
      const Tensor filter = RandomTensor(ElementType::kFloat, Shape({3, 3, channels, 1}), -1, 1);
      OpTest op("DepthwiseConv2dNative");
      op.Attr("strides", {1, 1, 1, 1}).Attr("padding", "SAME");
      op.Attr("dilations", {1, dilation, dilation, 1}).Input(x).Input(filter);
      ASSERT_EQ(op.Run(), absl::OkStatus());
      // The middle of the filter alone meets the image.
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        const float middle = filter.unchecked_data<float>()[4 * channels + i % channels];
        EXPECT_FLOAT_EQ(op.output(0).unchecked_data<float>()[i],
                        x.unchecked_data<float>()[i] * middle)
            << dilation << " " << channels << " " << i;
      }
    }
  }
}

TEST(Conv2DTest, GradientsRefuseWhatDoesNotFit) {
  const auto run = [](std::initializer_list<int32_t> sizes, const Shape& gradient, bool filter,
                      std::initializer_list<int64_t> dilations = {1, 1, 1, 1}) {
    OpTest op(filter ? "Conv2DBackpropFilter" : "Conv2DBackpropInput");
    op.Attr("strides", {1, 1, 1, 1}).Attr("padding", "VALID").Attr("dilations", dilations);
    const Tensor g = RandomTensor(ElementType::kFloat, gradient, -1, 1);
    if (filter) {
      op.Input(RandomTensor(ElementType::kFloat, Shape({1, 4, 4, 3}), -1, 1))
          .Input(Tensor::Vector<int32_t>(sizes))
          .Input(g);
    } else {
      op.Input(Tensor::Vector<int32_t>(sizes))
          .Input(RandomTensor(ElementType::kFloat, Shape({2, 2, 3, 2}), -1, 1))
          .Input(g);
    }
    return op.Run().code();
  };
  const auto ok = absl::StatusCode::kOk, invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(run({1, 4, 4, 3}, {1, 3, 3, 2}, false), ok);
  EXPECT_EQ(run({4, 4}, {1, 3, 3, 2}, false), ok);
  EXPECT_EQ(run({1, 5, 4, 3}, {1, 3, 3, 2}, false), invalid);
  EXPECT_EQ(run({2, 4, 4, 3}, {1, 3, 3, 2}, false), invalid);
  EXPECT_EQ(run({1, 4, 4, 3}, {1, 3, 3, 5}, false), invalid);
  EXPECT_EQ(run({1, -4, 4, 3}, {1, 3, 3, 2}, false), invalid);
  EXPECT_EQ(run({4, 4, 3}, {1, 3, 3, 2}, false), invalid);
  EXPECT_EQ(run({1, 4, 4, 3}, {1, 3, 3, 2}, false, {1, 2, 2, 1}), invalid);
  EXPECT_EQ(run({2, 2, 3, 2}, {1, 3, 3, 2}, true), ok);
  EXPECT_EQ(run({3, 2, 3, 2}, {1, 3, 3, 2}, true), invalid);
  EXPECT_EQ(run({2, 2, 3, 2}, {2, 3, 3, 2}, true), invalid);
  EXPECT_EQ(run({2, 2, 1, 6}, {1, 3, 3, 6}, true), invalid);
}

}  // namespace
}  // namespace troupe::testing
