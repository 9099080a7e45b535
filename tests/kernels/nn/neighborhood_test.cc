// Ops on neighborhoods against loops in double precision: convolutions and pooling beside those of
// images, dilation, local normalization, fractional pooling.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

// Windows over any number of dimensions, a pixel being a number.
struct Windows {
  std::vector<int64_t> input, size, stride, rate;
  bool same = true;
  std::vector<int64_t> output = {}, before = {};

  void Resolve() {
    for (size_t d = 0; d < input.size(); ++d) {
      const int64_t extent = (size[d] - 1) * rate[d] + 1;
      output.push_back(same ? (input[d] + stride[d] - 1) / stride[d]
                            : (input[d] - extent) / stride[d] + 1);
      const int64_t total = (output[d] - 1) * stride[d] + extent - input[d];
      before.push_back(same ? std::max<int64_t>(0, total) / 2 : 0);
    }
  }
  static int64_t Count(const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (const int64_t s : sizes) count *= s;
    return count;
  }
  // Calls visit(output pixel, input pixel, element of the window) for all pairs inside the input.
  template <typename Visit>
  void ForAll(Visit visit) const {
    for (int64_t o = 0; o < Count(output); ++o) {
      for (int64_t w = 0; w < Count(size); ++w) {
        int64_t in = 0, out_left = o, window_left = w, scale = 1;
        bool inside = true;
        for (size_t d = input.size(); d-- > 0;) {
          const int64_t at =
              out_left % output[d] * stride[d] - before[d] + window_left % size[d] * rate[d];
          out_left /= output[d];
          window_left /= size[d];
          inside = inside && at >= 0 && at < input[d];
          in += at * scale;
          scale *= input[d];
        }
        if (inside) visit(o, in, w);
      }
    }
  }
  Shape ShapeOf(int64_t batch, const std::vector<int64_t>& sizes, int64_t depth) const {
    std::vector<int64_t> dims = {batch};
    dims.insert(dims.end(), sizes.begin(), sizes.end());
    dims.push_back(depth);
    return Shape::Create(dims).value();
  }
  Shape Filter(std::vector<int64_t> depths) const {
    std::vector<int64_t> dims = size;
    dims.insert(dims.end(), depths.begin(), depths.end());
    return Shape::Create(dims).value();
  }
};

void SetList(OpTest* op, const char* name, const std::vector<int64_t>& inner) {
  if (inner.size() == 2) {
    op->Attr(name, {1, inner[0], inner[1], 1});
  } else {
    op->Attr(name, {1, inner[0], inner[1], inner[2], 1});
  }
}
void Configure(OpTest* op, const Windows& w) {
  SetList(op, "strides", w.stride);
  SetList(op, "dilations", w.rate);
  op->Attr("padding", w.same ? "SAME" : "VALID");
}
Tensor SizesOf(const Shape& shape) {
  return Tensor::Vector<int32_t>(std::vector<int32_t>(shape.dims().begin(), shape.dims().end()));
}

double ToleranceOf(ElementType type) {
  return type == ElementType::kDouble ? 1e-12 : type == ElementType::kFloat ? 1e-4 : 0.1;
}
const ElementType kFloatTypes[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf,
                                   ElementType::kBfloat16};

struct ConvCase {
  Windows windows;
  int64_t batch, in_depth, out_depth;  // of a channel if it is depthwise
};

std::vector<ConvCase> ConvCases(bool depthwise) {
  if (depthwise) {
    return {{{{5, 6}, {3, 3}, {1, 1}, {1, 1}}, 2, 3, 1},
            {{{7, 5}, {2, 3}, {2, 2}, {1, 1}, false}, 1, 4, 3},
            {{{9, 9}, {3, 3}, {1, 1}, {1, 1}}, 3, 17, 1},
            {{{8, 8}, {3, 3}, {2, 2}, {1, 1}}, 1, 32, 2},
            // One window of each channel, in whole vectors and not, in blocks of pixels and single
            // ones, in one row and in pairs.
            {{{7, 19}, {3, 3}, {1, 1}, {1, 1}}, 2, 64, 1},
            {{{6, 30}, {5, 5}, {1, 1}, {1, 1}}, 1, 48, 1},
            {{{9, 12}, {7, 7}, {1, 1}, {1, 1}}, 1, 40, 1},
            {{{8, 11}, {2, 2}, {1, 1}, {1, 1}, false}, 1, 33, 1},
            {{{9, 21}, {3, 3}, {2, 2}, {1, 1}}, 2, 37, 1},
            {{{12, 23}, {5, 5}, {2, 2}, {1, 1}}, 1, 32, 1},
            {{{11, 9}, {2, 4}, {3, 3}, {1, 1}, false}, 1, 16, 1},
            {{{3, 4}, {1, 1}, {1, 1}, {1, 1}}, 1, 20, 1},
            {{{2, 2}, {5, 5}, {1, 1}, {1, 1}}, 1, 17, 1},
            {{{5, 6}, {3, 3}, {1, 1}, {1, 1}}, 2, 512, 1},
            // Several pixels as one, and several outputs of a channel.
            {{{9, 17}, {3, 3}, {1, 1}, {1, 1}}, 2, 5, 1},
            {{{4, 2}, {3, 3}, {1, 1}, {1, 1}}, 1, 3, 1},
            {{{6, 9}, {2, 3}, {1, 1}, {1, 1}, false}, 2, 7, 3},
            {{{6, 9}, {3, 3}, {2, 2}, {1, 1}}, 2, 9, 4},
            // Windows with gaps.
            {{{7, 9}, {3, 3}, {1, 1}, {2, 2}}, 2, 5, 1},
            {{{9, 13}, {3, 2}, {1, 1}, {3, 4}, false}, 1, 33, 1},
            {{{6, 8}, {2, 3}, {1, 1}, {2, 1}}, 2, 6, 3},
            {{{11, 10}, {3, 3}, {2, 2}, {1, 3}}, 1, 17, 1},
            {{{4, 5}, {3, 3}, {1, 1}, {5, 6}}, 1, 4, 2}};
  }
  return {{{{3, 4, 5}, {2, 3, 2}, {1, 1, 1}, {1, 1, 1}}, 2, 3, 4},
          {{{5, 4, 3}, {2, 2, 3}, {2, 1, 2}, {1, 1, 1}, false}, 1, 2, 5},
          {{{9, 9, 9}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}}, 1, 16, 16},
          {{{8, 7, 6}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}}, 4, 8, 16}};
}

void CheckConvolution(bool depthwise, ElementType type, ConvCase c) {
  c.windows.Resolve();
  const Windows& w = c.windows;
  const int64_t in_depth = c.in_depth, out = depthwise ? in_depth * c.out_depth : c.out_depth;
  const Tensor x = RandomTensor(type, w.ShapeOf(c.batch, w.input, in_depth), -1, 1, 1);
  const Tensor f = RandomTensor(type, w.Filter({in_depth, c.out_depth}), -1, 1, 2);
  const Tensor dy = RandomTensor(type, w.ShapeOf(c.batch, w.output, out), -1, 1, 3);
  std::vector<double> y(dy.num_elements()), dx(x.num_elements()), df(f.num_elements());
  const int64_t in_pixels = Windows::Count(w.input), out_pixels = Windows::Count(w.output);
  w.ForAll([&](int64_t o, int64_t in, int64_t tap) {
    for (int64_t n = 0; n < c.batch; ++n) {
      for (int64_t d = 0; d < in_depth; ++d) {
        for (int64_t e = 0; e < c.out_depth; ++e) {
          const int64_t yi = (n * out_pixels + o) * out + (depthwise ? d * c.out_depth + e : e);
          const int64_t xi = (n * in_pixels + in) * in_depth + d;
          const int64_t fi = (tap * in_depth + d) * c.out_depth + e;
          y[yi] += At(x, xi) * At(f, fi);
          dx[xi] += At(dy, yi) * At(f, fi);
          df[fi] += At(dy, yi) * At(x, xi);
        }
      }
    }
  });
  const std::string name = depthwise ? "DepthwiseConv2dNative" : "Conv3D";
  const std::string suffix = depthwise ? "" : "V2";
  const double tolerance = ToleranceOf(type);
  OpTest forward(name), backward(name + "BackpropInput" + suffix);
  OpTest filter(name + "BackpropFilter" + suffix);
  forward.Input(x).Input(f);
  backward.Input(SizesOf(x.shape())).Input(f).Input(dy);
  filter.Input(x).Input(SizesOf(f.shape())).Input(dy);
  for (OpTest* op : {&forward, &backward, &filter}) {
    Configure(op, w);
    ASSERT_EQ(op->Run(), absl::OkStatus());
  }
  ExpectNear(forward.output(0), MakeTensor(type, dy.shape(), y), tolerance, tolerance);
  ExpectNear(backward.output(0), MakeTensor(type, x.shape(), dx), tolerance, tolerance);
  ExpectNear(filter.output(0), MakeTensor(type, f.shape(), df), tolerance, 4 * tolerance);
  if (depthwise) return;
  OpTest general("Conv");
  general.Input(x).Input(f);
  Configure(&general, w);
  ASSERT_EQ(general.Run(), absl::OkStatus());
  ExpectNear(general.output(0), MakeTensor(type, dy.shape(), y), tolerance, tolerance);
}

TEST(NeighborhoodTest, ConvolutionsAndTheirGradients) {
  for (const bool depthwise : {true, false}) {
    for (const ElementType type : kFloatTypes) {
      for (const ConvCase& c : ConvCases(depthwise)) {
        SCOPED_TRACE(absl::StrCat(ElementTypeName(type), depthwise ? " depthwise " : " 3-D ",
                                  c.in_depth, " to ", c.out_depth));
        CheckConvolution(depthwise, type, c);
      }
    }
  }
}

absl::StatusCode ConvCode(const char* name, const Shape& input, const Shape& filter,
                          std::initializer_list<int64_t> strides,
                          std::initializer_list<int64_t> dilations) {
  OpTest op(name);
  op.Attr("strides", strides).Attr("dilations", dilations).Attr("padding", "VALID");
  op.Input(RandomTensor(ElementType::kFloat, input, -1, 1));
  op.Input(RandomTensor(ElementType::kFloat, filter, -1, 1));
  return op.Run().code();
}

TEST(NeighborhoodTest, RefusesConvolutionsThatDoNotFit) {
  const char* depthwise = "DepthwiseConv2dNative";
  const Shape image({1, 4, 4, 2}), filter({2, 2, 2, 1});
  EXPECT_EQ(ConvCode(depthwise, image, {2, 2, 3, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(ConvCode(depthwise, image, filter, {1, 1, 2, 1}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(ConvCode(depthwise, image, filter, {2, 1, 1, 1}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(ConvCode(depthwise, image, filter, {1, 0, 0, 1}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(ConvCode(depthwise, image, filter, {1, 1, 1, 1}, {1, 1, 1, 2}), kInvalid);
  EXPECT_EQ(ConvCode(depthwise, image, filter, {1, 1, 1, 1}, {1, 0, 1, 1}), kInvalid);
  EXPECT_EQ(ConvCode(depthwise, image, filter, {1, 1, 1, 1}, {1, 2, 5, 1}), kInvalid);
  EXPECT_EQ(ConvCode(depthwise, {4, 4, 2}, filter, {1, 1, 1, 1}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(ConvCode(depthwise, image, {6, 2, 2, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}), kInvalid);
  const Shape volume({1, 3, 3, 3, 2}), cube({2, 2, 2, 2, 1});
  for (const char* name : {"Conv3D", "Conv"}) {
    EXPECT_EQ(ConvCode(name, volume, {2, 2, 2, 3, 1}, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}), kInvalid);
    EXPECT_EQ(ConvCode(name, volume, cube, {1, 1, 1, 1, 2}, {1, 1, 1, 1, 1}), kInvalid);
    EXPECT_EQ(ConvCode(name, volume, cube, {1, 0, 1, 1, 1}, {1, 1, 1, 1, 1}), kInvalid);
    EXPECT_EQ(ConvCode(name, volume, cube, {1, 1, 1, 1, 1}, {1, 2, 1, 1, 1}), kInvalid);
    EXPECT_EQ(ConvCode(name, {3, 3, 3, 2}, cube, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}), kInvalid);
    EXPECT_EQ(ConvCode(name, volume, {5, 2, 2, 2, 1}, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}), kInvalid);
  }
  OpTest gradient("Conv3DBackpropInputV2");
  gradient.Attr("strides", {1, 1, 1, 1, 1}).Attr("padding", "VALID");
  gradient.Input(SizesOf(volume)).Input(RandomTensor(ElementType::kFloat, cube, -1, 1));
  gradient.Input(RandomTensor(ElementType::kFloat, Shape({1, 2, 2, 3, 1}), -1, 1));
  EXPECT_EQ(gradient.Run().code(), kInvalid);
  OpTest groups("Conv");
  groups.Attr("strides", {1, 1, 1, 1}).Attr("padding", "VALID").Attr("groups", 2);
  groups.Input(RandomTensor(ElementType::kFloat, image, -1, 1));
  groups.Input(RandomTensor(ElementType::kFloat, Shape({2, 2, 1, 2}), -1, 1));
  EXPECT_EQ(groups.Run().code(), kUnimplemented);
}

TEST(NeighborhoodTest, FusedPadConvMirrors) {
  const Tensor x = MakeTensor(ElementType::kFloat, Shape({1, 1, 3, 1}), {1, 2, 3});
  const Tensor one = MakeTensor(ElementType::kFloat, Shape({1, 1, 1, 1}), {1});
  const auto run = [&](const char* mode, std::initializer_list<int32_t> pads) {
    OpTest op("FusedPadConv2D");
    op.Attr("mode", mode).Attr("strides", {1, 1, 1, 1}).Attr("padding", "VALID");
    op.Input(x).Input(Tensor::FromValues<int32_t>(pads, Shape({4, 2})).value()).Input(one);
    const absl::Status status = op.Run();
    return status.ok() ? absl::StatusOr<Tensor>(op.output(0)) : status;
  };
  ExpectEqual(run("REFLECT", {0, 0, 0, 0, 2, 1, 0, 0}).value(),
              MakeTensor(ElementType::kFloat, Shape({1, 1, 6, 1}), {3, 2, 1, 2, 3, 2}));
  ExpectEqual(
      run("SYMMETRIC", {0, 0, 1, 0, 1, 2, 0, 0}).value(),
      MakeTensor(ElementType::kFloat, Shape({1, 2, 6, 1}), {1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2}));
  EXPECT_EQ(run("REFLECT", {0, 0, 0, 0, 3, 0, 0, 0}).status().code(), kInvalid);
  EXPECT_EQ(run("SYMMETRIC", {0, 0, 0, 0, 4, 0, 0, 0}).status().code(), kInvalid);
  EXPECT_EQ(run("SYMMETRIC", {0, 0, 0, 0, -1, 0, 0, 0}).status().code(), kInvalid);

  OpTest resize("FusedResizeAndPadConv2D");
  resize.Attr("mode", "REFLECT").Attr("strides", {1, 1, 1, 1}).Attr("padding", "VALID");
  resize.Attr("resize_align_corners", true);
  resize.Input(x).Input(Tensor::Vector<int32_t>({1, 5}));
  resize.Input(Tensor::FromValues<int32_t>({0, 0, 0, 0, 1, 0, 0, 0}, Shape({4, 2})).value());
  resize.Input(one);
  ASSERT_EQ(resize.Run(), absl::OkStatus());
  ExpectNear(resize.output(0),
             MakeTensor(ElementType::kFloat, Shape({1, 1, 6, 1}), {1.5, 1, 1.5, 2, 2.5, 3}));
}

void CheckPoolingOfVolumes(Windows w, int64_t depth) {
  w.Resolve();
  const int64_t batch = 2;
  const int64_t in_pixels = Windows::Count(w.input), out_pixels = Windows::Count(w.output);
  for (const ElementType type : kFloatTypes) {
    SCOPED_TRACE(ElementTypeName(type));
    const Tensor x = RandomTensor(type, w.ShapeOf(batch, w.input, depth), -1, 1, 1);
    const Tensor dy = RandomTensor(type, w.ShapeOf(batch, w.output, depth), -1, 1, 2);
    std::vector<double> counts(out_pixels), mean(dy.num_elements()), mean_dx(x.num_elements());
    std::vector<double> most(dy.num_elements(), -9), most_dx(x.num_elements());
    w.ForAll([&](int64_t o, int64_t, int64_t) { ++counts[o]; });
    const auto for_all = [&](auto visit) {
      w.ForAll([&](int64_t o, int64_t in, int64_t) {
        for (int64_t n = 0; n < batch; ++n) {
          for (int64_t c = 0; c < depth; ++c) {
            visit((n * out_pixels + o) * depth + c, (n * in_pixels + in) * depth + c, counts[o]);
          }
        }
      });
    };
    for_all([&](int64_t yi, int64_t xi, double count) {
      mean[yi] += At(x, xi) / count;
      mean_dx[xi] += At(dy, yi) / count;
      most[yi] = std::max(most[yi], At(x, xi));
    });
    for_all([&](int64_t yi, int64_t xi, double) {
      if (At(x, xi) == most[yi]) most_dx[xi] += At(dy, yi);
    });
    const double tolerance = ToleranceOf(type) / 10;
    OpTest average("AvgPool3D"), average_grad("AvgPool3DGrad");
    average.Input(x);
    average_grad.Input(SizesOf(x.shape())).Input(dy);
    OpTest max("MaxPool3D"), max_grad("MaxPool3DGrad");
    const Tensor largest = MakeTensor(type, dy.shape(), most);
    max.Input(x);
    max_grad.Input(x).Input(largest).Input(dy);
    for (OpTest* op : {&average, &average_grad, &max, &max_grad}) {
      if (type == ElementType::kDouble && (op == &max || op == &max_grad)) continue;
      Configure(op, w);
      SetList(op, "ksize", w.size);
      ASSERT_EQ(op->Run(), absl::OkStatus());
    }
    ExpectNear(average.output(0), MakeTensor(type, dy.shape(), mean), tolerance, tolerance);
    ExpectNear(average_grad.output(0), MakeTensor(type, x.shape(), mean_dx), tolerance, tolerance);
    if (type == ElementType::kDouble) continue;
    ExpectEqual(max.output(0), largest);
    ExpectNear(max_grad.output(0), MakeTensor(type, x.shape(), most_dx), tolerance, tolerance);
  }
}

TEST(NeighborhoodTest, PoolingOfVolumes) {
  CheckPoolingOfVolumes({{3, 4, 5}, {2, 3, 2}, {2, 1, 2}, {1, 1, 1}}, 3);
  // Windows that overlap by half or more, in long rows.
  CheckPoolingOfVolumes({{3, 4, 90}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}}, 17);
  CheckPoolingOfVolumes({{2, 5, 70}, {2, 2, 5}, {1, 2, 2}, {1, 1, 1}, false}, 33);
  // By less.
  CheckPoolingOfVolumes({{4, 5, 23}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}}, 19);
  // Windows side by side, apart, and of which the last elements are in none.
  CheckPoolingOfVolumes({{4, 6, 9}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}}, 20);
  CheckPoolingOfVolumes({{5, 7, 11}, {1, 2, 2}, {2, 3, 4}, {1, 1, 1}, false}, 18);
  CheckPoolingOfVolumes({{5, 7, 12}, {2, 2, 3}, {2, 2, 5}, {1, 1, 1}}, 1);
  // Fewer channels than the widest registers have lanes.
  for (const int channels : {4, 7, 8, 13}) {
    CheckPoolingOfVolumes({{3, 4, 19}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}}, channels);
    CheckPoolingOfVolumes({{4, 6, 9}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}}, channels);
  }
}

TEST(NeighborhoodTest, RefusesPoolingOfVolumesThatDoesNotFit) {
  const auto code = [](const Shape& shape, std::initializer_list<int64_t> ksize,
                       std::initializer_list<int64_t> strides) {
    OpTest op("MaxPool3D");
    op.Attr("ksize", ksize).Attr("strides", strides).Attr("padding", "VALID");
    return op.Input(RandomTensor(ElementType::kFloat, shape, -1, 1)).Run().code();
  };
  const Shape volume({1, 2, 2, 2, 2});
  EXPECT_EQ(code({2, 2, 2, 2}, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(code(volume, {1, 0, 1, 1, 1}, {1, 1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(code(volume, {1, 1, 1, 1, 1}, {1, 0, 1, 1, 1}), kInvalid);
  EXPECT_EQ(code(volume, {1, 4, 1, 1, 1}, {1, 1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(code(volume, {1, 1, 1, 1, 2}, {1, 1, 1, 1, 1}), kUnimplemented);
  EXPECT_EQ(code(volume, {2, 1, 1, 1, 1}, {1, 1, 1, 1, 1}), kUnimplemented);
}

TEST(NeighborhoodTest, VolumePatches) {
  Windows w = {{2, 3, 2}, {2, 2, 2}, {1, 2, 1}, {1, 1, 1}};
  w.Resolve();
  const Tensor x = RandomTensor(ElementType::kInt32, w.ShapeOf(1, w.input, 2), -9, 9, 1);
  const int64_t patch = Windows::Count(w.size) * 2;
  std::vector<double> patches(Windows::Count(w.output) * patch);
  w.ForAll([&](int64_t o, int64_t in, int64_t tap) {
    for (int64_t c = 0; c < 2; ++c) patches[o * patch + tap * 2 + c] = At(x, in * 2 + c);
  });
  OpTest op("ExtractVolumePatches");
  Configure(&op, w);
  SetList(&op, "ksizes", w.size);
  ASSERT_EQ(op.Input(x).Run(), absl::OkStatus());
  ExpectEqual(op.output(0),
              MakeTensor(ElementType::kInt32, w.ShapeOf(1, w.output, patch), patches));
}

TEST(NeighborhoodTest, ArgmaxOfPooling) {
  const Tensor x =
      MakeTensor(ElementType::kInt32, Shape({2, 2, 3, 1}), {1, 5, 5, 2, 0, 3, -4, -4, 7, 9, 8, 7});
  for (const bool include_batch : {false, true}) {
    OpTest op("MaxPoolWithArgmax");
    op.Attr("ksize", {1, 2, 2, 1}).Attr("strides", {1, 1, 1, 1}).Attr("padding", "VALID");
    op.Attr("include_batch_in_index", include_batch);
    ASSERT_EQ(op.Input(x).Run(), absl::OkStatus());
    ExpectEqual(op.output(0), MakeTensor(ElementType::kInt32, Shape({2, 1, 2, 1}), {5, 5, 9, 8}));
    const double first = include_batch ? 6 : 0;
    ExpectEqual(op.output(1),
                MakeTensor(ElementType::kInt64, Shape({2, 1, 2, 1}), {1, 1, first + 3, first + 4}));
    OpTest gradient("MaxPoolGradWithArgmax");
    gradient.Attr("ksize", {1, 2, 2, 1}).Attr("strides", {1, 1, 1, 1}).Attr("padding", "VALID");
    gradient.Attr("include_batch_in_index", include_batch);
    gradient.Input(x).Input(MakeTensor(ElementType::kInt32, Shape({2, 1, 2, 1}), {1, 2, 3, 4}));
    gradient.Input(op.output(1));
    ASSERT_EQ(gradient.Run(), absl::OkStatus());
    ExpectEqual(gradient.output(0),
                MakeTensor(ElementType::kInt32, x.shape(), {0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0}));
  }
  for (const double bad : {-1.0, 6.0}) {
    OpTest gradient("MaxPoolGradWithArgmax");
    gradient.Attr("ksize", {1, 2, 2, 1}).Attr("strides", {1, 1, 1, 1}).Attr("padding", "VALID");
    gradient.Input(x).Input(MakeTensor(ElementType::kInt32, Shape({2, 1, 2, 1}), {1, 2, 3, 4}));
    gradient.Input(MakeTensor(ElementType::kInt64, Shape({2, 1, 2, 1}), {0, 1, bad, 2}));
    EXPECT_EQ(gradient.Run().code(), kInvalid);
  }
}

TEST(NeighborhoodTest, DilationAndItsGradients) {
  Windows w = {{4, 5}, {2, 3}, {1, 2}, {2, 1}};
  w.Resolve();
  for (const ElementType type : {ElementType::kFloat, ElementType::kHalf, ElementType::kInt16,
                                 ElementType::kUint8, ElementType::kInt64}) {
    SCOPED_TRACE(ElementTypeName(type));
    const Tensor x = RandomTensor(type, w.ShapeOf(1, w.input, 2), 0, 9, 1);
    const Tensor f = RandomTensor(type, w.Filter({2}), 0, 5, 2);
    const Tensor dy = RandomTensor(type, w.ShapeOf(1, w.output, 2), 0, 3, 3);
    std::vector<double> y(dy.num_elements(), -99), dx(x.num_elements()), df(f.num_elements());
    std::vector<int64_t> from_x(dy.num_elements()), from_f(dy.num_elements());
    w.ForAll([&](int64_t o, int64_t in, int64_t tap) {
      for (int64_t c = 0; c < 2; ++c) {
        const Tensor sum = MakeTensor(type, Shape(), {At(x, in * 2 + c) + At(f, tap * 2 + c)});
        const int64_t at = o * 2 + c;
        if (At(sum, 0) <= y[at]) continue;
        y[at] = At(sum, 0);
        from_x[at] = in * 2 + c;
        from_f[at] = tap * 2 + c;
      }
    });
    for (size_t i = 0; i < y.size(); ++i) {
      dx[from_x[i]] += At(dy, static_cast<int64_t>(i));
      df[from_f[i]] += At(dy, static_cast<int64_t>(i));
    }
    OpTest forward("Dilation2D"), to_x("Dilation2DBackpropInput"), to_f("Dilation2DBackpropFilter");
    forward.Input(x).Input(f);
    to_x.Input(x).Input(f).Input(dy);
    to_f.Input(x).Input(f).Input(dy);
    for (OpTest* op : {&forward, &to_x, &to_f}) {
      Configure(op, w);
      SetList(op, "rates", w.rate);
      ASSERT_EQ(op->Run(), absl::OkStatus());
    }
    const double tolerance = type == ElementType::kHalf ? 0.01 : 1e-5;
    ExpectNear(forward.output(0), MakeTensor(type, dy.shape(), y), tolerance, tolerance);
    ExpectNear(to_x.output(0), MakeTensor(type, x.shape(), dx), tolerance, tolerance);
    ExpectNear(to_f.output(0), MakeTensor(type, f.shape(), df), tolerance, tolerance);
  }
  OpTest depth("Dilation2D");
  depth.Attr("strides", {1, 1, 1, 1}).Attr("rates", {1, 1, 1, 1}).Attr("padding", "SAME");
  depth.Input(RandomTensor(ElementType::kFloat, Shape({1, 3, 3, 2}), 0, 1));
  depth.Input(RandomTensor(ElementType::kFloat, Shape({2, 2, 3}), 0, 1));
  EXPECT_EQ(depth.Run().code(), kInvalid);
}

TEST(NeighborhoodTest, LocalNormalization) {
  const struct {
    Shape shape;
    int64_t radius;
    float beta;
  } cases[] = {{{2, 1, 2, 7}, 2, 0.75f}, {{1, 2, 1, 3}, 5, 0.5f}, {{3, 20, 20, 40}, 5, 1.25f}};
  for (const auto& c : cases) {
    for (const ElementType type :
         {ElementType::kFloat, ElementType::kHalf, ElementType::kBfloat16}) {
      SCOPED_TRACE(absl::StrCat(c.shape.ToString(), ElementTypeName(type)));
      const Tensor x = RandomTensor(type, c.shape, -2, 2, 1);
      const int64_t depth = c.shape.dim(3);
      std::vector<double> y(x.num_elements());
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        double sum = 0;
        for (int64_t k = i / depth * depth; k < i / depth * depth + depth; ++k) {
          if (std::abs(k - i) <= c.radius) sum += At(x, k) * At(x, k);
        }
        y[i] = At(x, i) / std::pow(1.5 + 0.25 * sum, c.beta);
      }
      OpTest op("LRN", 2);
      op.Attr("depth_radius", c.radius).Attr("bias", 1.5f).Attr("alpha", 0.25f);
      ASSERT_EQ(op.Attr("beta", c.beta).Input(x).Run(), absl::OkStatus());
      const double tolerance = ToleranceOf(type);
      ExpectNear(op.output(0), MakeTensor(type, x.shape(), y), tolerance, tolerance);
    }
  }
  const Tensor x = RandomTensor(ElementType::kFloat, Shape({2, 1, 2, 7}), -2, 2, 1);
  OpTest radius("LRN");
  EXPECT_EQ(radius.Attr("depth_radius", -1).Input(x).Run().code(), kInvalid);
}

TEST(NeighborhoodTest, FractionalPooling) {
  const Tensor x = RandomTensor(ElementType::kInt32, Shape({2, 7, 5, 2}), -50, 50, 1);
  for (const bool overlapping : {false, true}) {
    for (const bool pseudo_random : {false, true}) {
      for (const char* name : {"FractionalMaxPool", "FractionalAvgPool"}) {
        OpTest op(name);
        op.Attr("overlapping", overlapping).Attr("pseudo_random", pseudo_random);
        op.Attr("pooling_ratio", std::vector<float>{1, 1.5f, 2.1f, 1});
        ASSERT_EQ(op.Input(x).Run(), absl::OkStatus());
        const Tensor &y = op.output(0), &rows = op.output(1), &columns = op.output(2);
        ASSERT_EQ(y.shape(), Shape({2, 4, 2, 2}));
        ASSERT_EQ(rows.shape(), Shape({5}));
        EXPECT_EQ(At(rows, 4), 7);
        EXPECT_EQ(At(columns, 2), 5);
        for (int64_t i = 0; i < y.num_elements(); ++i) {
          const int64_t c = i % 2, column = i / 2 % 2, row = i / 4 % 4, n = i / 16;
          const double more = overlapping ? 1 : 0;
          double most = -99, sum = 0, count = 0;
          for (double r = At(rows, row); r < std::min(7.0, At(rows, row + 1) + more); ++r) {
            for (double k = At(columns, column); k < std::min(5.0, At(columns, column + 1) + more);
                 ++k, ++count) {
              const int64_t at =
                  ((n * 7 + static_cast<int64_t>(r)) * 5 + static_cast<int64_t>(k)) * 2;
              most = std::max(most, At(x, at + c));
              sum += At(x, at + c);
            }
          }
          EXPECT_EQ(At(y, i), name[10] == 'M' ? most : std::trunc(sum / count));
        }
      }
    }
  }
  OpTest seeded("FractionalMaxPool");
  seeded.Attr("pooling_ratio", std::vector<float>{1, 1.5f, 2.1f, 1}).Attr("seed", 3);
  EXPECT_EQ(seeded.Input(x).Run().code(), kInvalid);
  OpTest large("FractionalMaxPool");
  large.Attr("pooling_ratio", std::vector<float>{1, 8, 1, 1});
  EXPECT_EQ(large.Input(x).Run().code(), kInvalid);
  OpTest batch("FractionalMaxPool");
  batch.Attr("pooling_ratio", std::vector<float>{2, 1, 1, 1});
  EXPECT_EQ(batch.Input(x).Run().code(), kUnimplemented);
}

TEST(NeighborhoodTest, GradientsOfFractionalPoolingRefuseBadSequences) {
  const Tensor x = MakeTensor(ElementType::kFloat, Shape({1, 2, 2, 1}), {1, 2, 3, 4});
  const Tensor y = MakeTensor(ElementType::kFloat, Shape({1, 1, 1, 1}), {4});
  const Tensor all = Tensor::Vector<int64_t>({0, 2});
  for (const std::vector<int64_t>& bad :
       {std::vector<int64_t>{0}, {0, 1, 2}, {2, 0}, {5, 9}, {-3, -1}}) {
    OpTest op("FractionalMaxPoolGrad");
    op.Input(x).Input(y).Input(y).Input(Tensor::Vector<int64_t>(bad)).Input(all);
    EXPECT_EQ(op.Run().code(), kInvalid) << bad[0];
    OpTest average("FractionalAvgPoolGrad");
    average.Input(Tensor::Vector<int64_t>({1, 2, 2, 1})).Input(y);
    average.Input(Tensor::Vector<int64_t>(bad)).Input(all);
    if (bad[0] != 5) {
      EXPECT_EQ(average.Run().code(), kInvalid) << bad[0];
    }
  }
  OpTest other("FractionalMaxPoolGrad");
  other.Input(x).Input(MakeTensor(ElementType::kFloat, y.shape(), {3})).Input(y);
  EXPECT_EQ(other.Input(all).Input(all).Run().code(), kInvalid);
}

}  // namespace
}  // namespace troupe::testing
