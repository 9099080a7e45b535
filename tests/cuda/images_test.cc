// Convolutions and poolings on a card, where TensorFlow's recorded cases do not reach: NCHW,
// gradients of convolutions with groups and dilations.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/session.h"
#include "graph/graph.h"

namespace troupe {
namespace {

constexpr const char* kCard = "/device:GPU:0";

Tensor Random(const Shape& shape, int seed) {
  std::mt19937 random(seed);
  // Few values, so that windows have several largest elements.
  std::uniform_int_distribution<int> values(-4, 4);
  Tensor tensor = Tensor::Uninitialized(ElementType::kFloat, shape);
  for (float& x : tensor.mutable_values<float>()) x = static_cast<float>(values(random)) / 4;
  return tensor;
}

/// NHWC to NCHW.
Tensor ChannelsFirst(const Tensor& t) {
  Tensor turned = Tensor::Uninitialized(t.type(), {t.dim(0), t.dim(3), t.dim(1), t.dim(2)});
  const absl::Span<const float> from = t.unchecked_values<float>();
  const absl::Span<float> to = turned.mutable_values<float>();
  const int64_t pixels = t.dim(1) * t.dim(2), depth = t.dim(3);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const int64_t channel = i % depth, pixel = i / depth % pixels, image = i / depth / pixels;
    to[(image * depth + channel) * pixels + pixel] = from[i];
  }
  return turned;
}

double Dot(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape().ToString(), b.shape().ToString());
  double sum = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    sum += double{a.unchecked_values<float>()[i]} * double{b.unchecked_values<float>()[i]};
  }
  return sum;
}

/// A graph in which nodes run on the card, or on the CPU.
class Program {
 public:
  Output Constant(const Tensor& value) {
    return Add(NodeSpec("Const", Name()).Attr("value", value).Attr("dtype", value.type()));
  }
  Output Add(const NodeSpec& spec) {
    const absl::StatusOr<Node*> node = graph_->AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return Output(*node);
  }
  std::string Name() { return StrCat("n", next_++); }

  std::unique_ptr<Session> Start() const {
    // Without folding of constants, which is the CPU's.
    auto session = Session::Create(graph_, {.devices = {{"GPU", {}}}, .optimize = false});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  std::vector<Tensor> Run(const std::vector<Output>& outputs) const {
    const auto session = Start();
    if (session == nullptr) return {};
    auto values = session->Run(outputs);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *values : std::vector<Tensor>();
  }

 private:
  const std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  int next_ = 0;
};

void ExpectSame(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape().ToString(), want.shape().ToString());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    ASSERT_NEAR(got.unchecked_values<float>()[i], want.unchecked_values<float>()[i], 1e-5) << i;
  }
}

struct Windows {
  int64_t rows, columns, row_stride, column_stride;
  const char* padding;
  std::vector<int64_t> paddings = {};  ///< Of rows and columns.
};

std::vector<int64_t> InFormat(bool nchw, int64_t rows, int64_t columns) {
  return nchw ? std::vector<int64_t>{1, 1, rows, columns}
              : std::vector<int64_t>{1, rows, columns, 1};
}

NodeSpec Pool(Program& program, const char* op, bool nchw, const Windows& w) {
  NodeSpec spec(op, program.Name());
  spec.Attr("ksize", InFormat(nchw, w.rows, w.columns))
      .Attr("strides", InFormat(nchw, w.row_stride, w.column_stride))
      .Attr("padding", w.padding)
      .Attr("data_format", nchw ? "NCHW" : "NHWC")
      .Device(nchw ? kCard : "/cpu:0");
  if (!w.paddings.empty()) {
    std::vector<int64_t> all(8);
    std::copy(w.paddings.begin(), w.paddings.end(), all.begin() + (nchw ? 4 : 2));
    spec.Attr("explicit_paddings", all);
  }
  return spec;
}

TEST(ImagesTest, PoolingIsTheSameWithChannelsFirst) {
  const Shape shape = {2, 7, 9, 5};
  int seed = 0;
  for (const Windows& w :
       {Windows{2, 2, 2, 2, "VALID"}, Windows{3, 2, 2, 1, "SAME"}, Windows{3, 3, 1, 2, "SAME"},
        Windows{2, 2, 3, 4, "VALID"}, Windows{7, 9, 1, 1, "SAME"}}) {
    SCOPED_TRACE(StrCat(w.rows, " x ", w.columns, " ", w.padding));
    const Tensor x = Random(shape, ++seed);
    std::vector<std::vector<Tensor>> results;
    for (const bool nchw : {false, true}) {
      const auto turned = [nchw](const Tensor& t) { return nchw ? ChannelsFirst(t) : t; };
      Program program;
      const Output input = program.Constant(turned(x));
      const Output max = program.Add(Pool(program, "MaxPool", nchw, w).Input(input));
      const Output mean = program.Add(Pool(program, "AvgPool", nchw, w).Input(input));
      // Gradients of the outputs: as the maxima are, for they differ.
      const Output max_grad =
          program.Add(Pool(program, "MaxPoolGrad", nchw, w).Input(input).Input(max).Input(max));
      const Output grad_grad = program.Add(
          Pool(program, "MaxPoolGradGrad", nchw, w).Input(input).Input(max).Input(input));
      const Output sizes = program.Constant(Tensor::Vector<int32_t>(
          {static_cast<int32_t>(shape.dim(0)), static_cast<int32_t>(shape.dim(nchw ? 3 : 1)),
           static_cast<int32_t>(shape.dim(nchw ? 1 : 2)),
           static_cast<int32_t>(shape.dim(nchw ? 2 : 3))}));
      const Output mean_grad =
          program.Add(Pool(program, "AvgPoolGrad", nchw, w).Input(sizes).Input(max));
      results.push_back(program.Run({max, mean, max_grad, grad_grad, mean_grad}));
    }
    ASSERT_EQ(results[0].size(), 5u);
    ASSERT_EQ(results[1].size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
      SCOPED_TRACE(i);
      ExpectSame(results[1][i], ChannelsFirst(results[0][i]));
    }
  }
}

TEST(ImagesTest, PaddingsOfPoolingAreInTheOrderOfTheFormat) {
  const Windows w{3, 2, 2, 1, "EXPLICIT", {2, 1, 0, 1}};
  const Tensor x = Random({2, 7, 9, 5}, 1);
  Program program;
  const Output usual = program.Add(Pool(program, "MaxPool", false, w).Input(program.Constant(x)));
  const Output turned =
      program.Add(Pool(program, "MaxPool", true, w).Input(program.Constant(ChannelsFirst(x))));
  const std::vector<Tensor> results = program.Run({usual, turned});
  ASSERT_EQ(results.size(), 2u);
  ExpectSame(results[1], ChannelsFirst(results[0]));
}

struct Conv {
  Shape image, filter;
  Windows windows;  ///< Without sizes.
  int64_t row_dilation = 1, column_dilation = 1;
};

NodeSpec ConvSpec(Program& program, const char* op, bool nchw, const char* device, const Conv& c) {
  NodeSpec spec(op, program.Name());
  spec.Attr("strides", InFormat(nchw, c.windows.row_stride, c.windows.column_stride))
      .Attr("dilations", InFormat(nchw, c.row_dilation, c.column_dilation))
      .Attr("padding", c.windows.padding)
      .Attr("data_format", nchw ? "NCHW" : "NHWC")
      .Device(device);
  if (!c.windows.paddings.empty()) {
    std::vector<int64_t> all(8);
    std::copy(c.windows.paddings.begin(), c.windows.paddings.end(), all.begin() + (nchw ? 4 : 2));
    spec.Attr("explicit_paddings", all);
  }
  return spec;
}

Tensor SizesOf(const Shape& shape) {
  std::vector<int32_t> sizes;
  for (int d = 0; d < shape.rank(); ++d) sizes.push_back(static_cast<int32_t>(shape.dim(d)));
  return Tensor::Vector<int32_t>(sizes);
}

TEST(ImagesTest, ConvolutionsAndTheirGradients) {
  const Conv kCases[] = {
      {{2, 7, 8, 3}, {3, 2, 3, 4}, {0, 0, 1, 1, "SAME"}},
      {{2, 8, 8, 3}, {3, 3, 3, 4}, {0, 0, 2, 2, "SAME"}},  // Padded behind alone.
      {{1, 9, 7, 4}, {2, 3, 4, 5}, {0, 0, 2, 1, "VALID"}},
      {{2, 9, 7, 4}, {3, 3, 2, 6}, {0, 0, 1, 2, "SAME"}},  // Two groups.
      {{2, 9, 9, 2}, {3, 3, 2, 3}, {0, 0, 1, 1, "VALID"}, 2, 3},
      {{2, 9, 9, 4}, {2, 2, 1, 8}, {0, 0, 2, 2, "EXPLICIT", {3, 0, 1, 2}}, 2, 1},
      {{2, 5, 6, 3}, {1, 1, 3, 4}, {0, 0, 1, 1, "SAME"}},   // One product.
      {{2, 5, 6, 3}, {5, 6, 3, 4}, {0, 0, 1, 1, "VALID"}},  // One product.
      {{1, 9, 9, 2}, {2, 2, 2, 2}, {0, 0, 4, 5, "VALID"}},  // Steps over pixels.
  };
  for (const Conv& c : kCases) {
    for (const bool nchw : {false, true}) {
      SCOPED_TRACE(StrCat(c.image.ToString(), " ", c.filter.ToString(), " ", c.windows.padding,
                          nchw ? " NCHW" : " NHWC"));
      const Tensor image = Random(c.image, 1), filter = Random(c.filter, 2);
      const Tensor x = nchw ? ChannelsFirst(image) : image;
      Program forward;
      const std::vector<Tensor> y =
          forward.Run({forward.Add(ConvSpec(forward, "Conv2D", nchw, kCard, c)
                                       .Input(forward.Constant(x))
                                       .Input(forward.Constant(filter))),
                       forward.Add(ConvSpec(forward, "Conv2D", false, "/cpu:0", c)
                                       .Input(forward.Constant(image))
                                       .Input(forward.Constant(filter)))});
      ASSERT_EQ(y.size(), 2u);
      ExpectSame(y[0], nchw ? ChannelsFirst(y[1]) : y[1]);

      // A convolution is linear in its input and in its filter, and the gradients are the adjoint
      // functions: <dy, conv(x, w)> = <dx, x> = <dw, w>, for any x, w and dy.
      const Tensor dy = Random(y[0].shape(), 3);
      Program backward;
      const std::vector<Tensor> gradients =
          backward.Run({backward.Add(ConvSpec(backward, "Conv2DBackpropInput", nchw, kCard, c)
                                         .Input(backward.Constant(SizesOf(x.shape())))
                                         .Input(backward.Constant(filter))
                                         .Input(backward.Constant(dy))),
                        backward.Add(ConvSpec(backward, "Conv2DBackpropFilter", nchw, kCard, c)
                                         .Input(backward.Constant(x))
                                         .Input(backward.Constant(SizesOf(filter.shape())))
                                         .Input(backward.Constant(dy)))});
      ASSERT_EQ(gradients.size(), 2u);
      EXPECT_NEAR(Dot(gradients[0], x), Dot(dy, y[0]), 1e-4);
      EXPECT_NEAR(Dot(gradients[1], filter), Dot(dy, y[0]), 1e-4);
    }
  }
}

/// Each of them may be the first to need the plan.
TEST(ImagesTest, ConvolutionsOfStepsAtOnce) {
  const Conv c = {{2, 11, 10, 3}, {4, 3, 3, 4}, {0, 0, 2, 2, "SAME"}};
  Program program;
  const Output y = program.Add(ConvSpec(program, "Conv2D", false, kCard, c)
                                   .Input(program.Constant(Random(c.image, 1)))
                                   .Input(program.Constant(Random(c.filter, 2))));
  const auto session = program.Start();
  ASSERT_NE(session, nullptr);
  constexpr int kSteps = 8;
  std::vector<absl::StatusOr<std::vector<Tensor>>> results(kSteps,
                                                           absl::UnknownError("has not run"));
  std::vector<std::thread> threads;
  for (int t = 0; t < kSteps; ++t) {
    threads.emplace_back([&, t] { results[t] = session->Run({y}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    const absl::Span<const float> got = result->front().unchecked_values<float>();
    EXPECT_EQ(got, results.front()->front().unchecked_values<float>());
  }
}

}  // namespace
}  // namespace troupe
