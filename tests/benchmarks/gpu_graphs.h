/// What gpu_benchmark measures: graphs of single kernels and of training steps.
#ifndef TROUPE_TESTS_BENCHMARKS_GPU_GRAPHS_H_
#define TROUPE_TESTS_BENCHMARKS_GPU_GRAPHS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/troupe.h"
#include "examples/fashion_cnn.h"

namespace troupe::benchmarks {

/// A step that is measured, after its graph's variables have been initialised.
struct Work {
  std::vector<Node*> targets;
  std::vector<Output> fetches;
  FeedMap feeds;
  int per = 1;            ///< What is measured is in a step so many times.
  bool optimize = false;  ///< What is alike would be computed once.
};

/// A variable of random numbers.
inline Output Random(const Scope& s, const Shape& shape, ElementType type = ElementType::kFloat) {
  const Scope here = s.NewSubScope("random");
  return ModelVariable(here, shape, RandomUniformInitializer(-0.1, 0.1), "v", /*trainable=*/false,
                       type)
      .value();
}

/// `count` nodes that `make` adds, all of them targets.
template <typename Make>
Work Repeat(int count, Make make) {
  Work work{.per = count};
  for (int i = 0; i < count; ++i) work.targets.push_back(make().node);
  return work;
}

// --- kernels ---------------------------------------------------------------------------------

/// A chain of kernels that have next to nothing to do: what a node costs.
inline Work Nodes(const Scope& s, int count) {
  Output x = Random(s, {16});
  for (int i = 0; i < count; ++i) x = ops::Neg(s, x);
  return {.targets = {x.node}, .per = count};
}

/// A chain of kernels that can be computed together.
inline Work Chain(const Scope& s, int count) {
  Output x = Random(s, {16});
  for (int i = 0; i < count; ++i) x = i % 2 == 0 ? ops::Neg(s, x) : ops::Tanh(s, x);
  return {.targets = {x.node}, .per = count, .optimize = true};
}

inline Work Products(const Scope& s, int64_t side, ElementType type) {
  const Output a = Random(s, {side, side}, type), b = Random(s, {side, side}, type);
  return Repeat(4, [&] { return ops::MatMul(s, a, b); });
}

/// Of images [batch, side, side, inputs], filters of size x size.
struct ConvSizes {
  int64_t batch, side, inputs, size, outputs, stride;
};

/// `kind`: "forward", or the gradient by "data" or "filter".
inline Work Convolutions(const Scope& s, const std::string& kind, const ConvSizes& z,
                         ElementType type) {
  const int64_t out = (z.side + z.stride - 1) / z.stride;
  const Shape images{z.batch, z.side, z.side, z.inputs};
  const Shape filters{z.size, z.size, z.inputs, z.outputs};
  const std::vector<int64_t> strides = {1, z.stride, z.stride, 1};
  const auto shape = [](const Shape& of) {
    Tensor dims = Tensor::Uninitialized(ElementType::kInt32, {of.rank()});
    for (int i = 0; i < of.rank(); ++i) {
      dims.mutable_data<int32_t>()[i] = static_cast<int32_t>(of.dim(i));
    }
    return dims;
  };
  const Output x = Random(s, images, type), w = Random(s, filters, type),
               dy = Random(s, {z.batch, out, out, z.outputs}, type);
  return Repeat(4, [&] {
    if (kind == "forward") return ops::Conv2D(s, x, w, strides, "SAME");
    if (kind == "data") {
      return ops::Conv2DBackpropInput(s, shape(images), w, dy, strides, "SAME");
    }
    return ops::Conv2DBackpropFilter(s, x, shape(filters), dy, strides, "SAME");
  });
}

/// Element-wise kernels and reductions of many floats.
inline Work Bandwidth(const Scope& s, const std::string& kind, int64_t side) {
  const Output x = Random(s, {side, side}), y = Random(s, {side, side});
  return Repeat(4, [&] {
    if (kind == "neg") return ops::Neg(s, x);
    if (kind == "add") return ops::Add(s, x, y);
    if (kind == "sum") return ops::Sum(s, x, Tensor::Vector<int32_t>({0, 1}));
    return ops::Sum(s, x, Tensor::Scalar<int32_t>(kind == "row_sum" ? 1 : 0));
  });
}

inline Work Feed(const Scope& s, int64_t count) {
  const Output x = ops::Placeholder(s.WithDevice(""), ElementType::kFloat);
  Tensor value = Tensor::Uninitialized(ElementType::kFloat, {count});
  std::fill_n(value.mutable_data<float>(), count, 1.0f);
  return {.targets = {ops::Identity(s, x).node}, .feeds = {{x, value}}};
}

inline Work Fetch(const Scope& s, int64_t count) {
  return {.fetches = {ops::Identity(s, Random(s, {count}))}};
}

// --- training steps -----------------------------------------------------------------------------

inline Work Training(const Scope& s, const Output& loss, Optimizer&& optimizer,
                     FeedMap feeds = {}) {
  return {.targets = {optimizer.Minimize(s, loss)}, .feeds = std::move(feeds), .optimize = true};
}

/// Classes that are fed, `count` of `classes`.
inline Tensor Labels(int64_t count, int32_t classes) {
  Tensor labels = Tensor::Uninitialized(ElementType::kInt32, {count});
  for (int64_t i = 0; i < count; ++i) {
    labels.mutable_data<int32_t>()[i] = static_cast<int32_t>(i % classes);
  }
  return labels;
}

inline Tensor Pixels(const Shape& shape) {
  Tensor pixels = Tensor::Uninitialized(ElementType::kFloat, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    pixels.mutable_data<float>()[i] = static_cast<float>(i % 255) / 255;
  }
  return pixels;
}

/// The network of the examples; images and labels are fed.
inline Work TrainCnn(const Scope& s, int64_t batch) {
  const fashion::Model m = fashion::CnnInputs(s.WithDevice(""));
  const fashion::Cnn cnn(s);
  const Output logits = cnn.Logits(s, cnn.Features(s, m.images), m.keep);
  return Training(s, fashion::Cnn::Loss(s, logits, m.labels), AdamOptimizer(0.003f),
                  {{m.images, Pixels({batch, fashion::kPixels})},
                   {m.labels, Labels(batch, fashion::kClasses)},
                   {m.keep, Tensor::Scalar(0.75f)}});
}

/// He and others, "Deep Residual Learning", 2015, table 1, 50 layers, whose `width` is 64; the
/// stride is in the 3x3 convolution, as in PyTorch's. Parameters and statistics are floats; `type`
/// is what is multiplied.
class ResNet50 {
 public:
  ResNet50(const Scope& s, int64_t width, ElementType type) : s_(s), width_(width), type_(type) {}

  Output Loss(const Output& images, const Output& labels, int64_t classes) {
    Output x = ops::Relu(s_, Conv(ops::Cast(s_, images, type_), 3, 7, width_, 2));
    x = ops::MaxPool(s_, x, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME");
    int64_t inputs = width_;
    const int blocks[] = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage) {
      const int64_t width = width_ << stage;
      for (int block = 0; block < blocks[stage]; ++block) {
        x = Bottleneck(x, inputs, width, block == 0 && stage > 0 ? 2 : 1);
        inputs = 4 * width;
      }
    }
    x = ops::Cast(s_, ops::Mean(s_, x, Tensor::Vector<int32_t>({1, 2})), ElementType::kFloat);
    const ModelVariable w(s_.NewSubScope("dense"), {inputs, classes}, GlorotUniformInitializer(),
                          "w");
    const ModelVariable b(s_.NewSubScope("dense"), {classes}, ZerosInitializer(), "b");
    const Output logits = ops::BiasAdd(s_, ops::MatMul(s_, x, w.value()), b.value());
    return ReduceMean(s_, ops::SparseSoftmaxCrossEntropyWithLogits(s_, logits, labels).loss);
  }

 private:
  /// A convolution and its normalisation.
  Output Conv(const Output& x, int64_t inputs, int64_t size, int64_t outputs, int64_t stride) {
    const Scope here = s_.NewSubScope("conv");
    const double deviation = std::sqrt(2.0 / static_cast<double>(size * size * outputs));
    const ModelVariable w(here, {size, size, inputs, outputs},
                          TruncatedNormalInitializer(0, deviation), "w");
    const ModelVariable scale(here, {outputs}, OnesInitializer(), "scale");
    const ModelVariable offset(here, {outputs}, ZerosInitializer(), "offset");
    const Output filter = ops::Cast(here, w.value(), type_);
    const Output y = ops::Conv2D(here, x, filter, {1, stride, stride, 1}, "SAME");
    const Tensor none = Tensor::Uninitialized(ElementType::kFloat, {0});
    return ops::FusedBatchNormV3(here, y, scale.value(), offset.value(), none, none).y;
  }
  Output Bottleneck(const Output& x, int64_t inputs, int64_t width, int64_t stride) {
    Output y = ops::Relu(s_, Conv(x, inputs, 1, width, 1));
    y = ops::Relu(s_, Conv(y, width, 3, width, stride));
    y = Conv(y, width, 1, 4 * width, 1);
    const Output by = inputs == 4 * width ? x : Conv(x, inputs, 1, 4 * width, stride);
    return ops::Relu(s_, ops::Add(s_, y, by));
  }

  const Scope s_;
  const int64_t width_;
  const ElementType type_;
};

/// Images of side x side pixels are on the device already.
inline Work TrainResNet50(const Scope& s, int64_t batch, int64_t side, int64_t width,
                          ElementType type) {
  const Output images = Random(s, {batch, side, side, 3});
  const Output labels =
      ops::Placeholder(s.WithDevice(""), ElementType::kInt32, {.shape = PartialShape({batch})});
  const Output loss = ResNet50(s, width, type).Loss(images, labels, 1000);
  return Training(s, loss, MomentumOptimizer(0.01f, 0.9f), {{labels, Labels(batch, 1000)}});
}

/// An LSTM (Hochreiter and Schmidhuber 1997) over [length, batch, units].
class Lstm {
 public:
  Lstm(const Scope& s, int64_t length, int64_t batch, int64_t units)
      : length_(length),
        units_(units),
        weights_(s, {2 * units, 4 * units}, GlorotUniformInitializer(), "weights"),
        biases_(s, {4 * units}, ZerosInitializer(), "biases"),
        zeros_(ops::Fill(
            s, Tensor::Vector<int32_t>({static_cast<int32_t>(batch), static_cast<int32_t>(units)}),
            0.0f)) {}

  /// The outputs of all steps, by a loop, as in the example.
  Output Loop(const Scope& s, const Output& x) const {
    const auto steps = static_cast<int32_t>(length_);
    const TensorArray in = TensorArray(s, steps, ElementType::kFloat).Unstack(s, x);
    const TensorArray out(s, steps, ElementType::kFloat);
    const std::vector<Output> end = WhileLoop(
        s, {0, zeros_, zeros_, out.flow()},
        [&](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], steps); },
        [&](const Scope& s, absl::Span<const Output> v) {
          const std::vector<Output> x_and_h = {in.Read(s, v[0]), v[1]};
          const Output all = ops::BiasAdd(
              s, ops::MatMul(s, ops::ConcatV2(s, x_and_h, 1), weights_.value()), biases_.value());
          const std::vector<Output> parts = ops::Split(s, 1, all, 4);
          const Output keep = ops::Sigmoid(s, ops::Add(s, parts[2], 1.0f));
          const Output c = ops::Add(s, ops::Mul(s, keep, v[2]),
                                    ops::Mul(s, ops::Sigmoid(s, parts[0]), ops::Tanh(s, parts[1])));
          const Output h = ops::Mul(s, ops::Sigmoid(s, parts[3]), ops::Tanh(s, c));
          return std::vector<Output>{ops::Add(s, v[0], 1), h, c,
                                     out.WithFlow(v[3]).Write(s, v[0], h).flow()};
        });
    return s.ok() ? out.WithFlow(end[3]).Stack(s) : Output();
  }

  /// The same by one node. BlockLSTM, unlike BlockLSTMV2, has the gates in the loop's order, and a
  /// gradient that is right.
  Output Block(const Scope& s, const Output& x) const {
    const Output none = ops::Fill(s, Tensor::Vector<int32_t>({static_cast<int32_t>(units_)}), 0.0f);
    return ops::BlockLSTM(s, Tensor::Scalar(length_), x, zeros_, zeros_, weights_.value(), none,
                          none, none, biases_.value(), {.forget_bias = 1, .cell_clip = -1})
        .h;
  }

  std::vector<Output> parameters() const { return {weights_.value(), biases_.value()}; }

 private:
  const int64_t length_, units_;
  const ModelVariable weights_, biases_;
  const Output zeros_;
};

/// `block`: by one node for all steps.
inline Work TrainLstm(const Scope& s, int64_t length, int64_t batch, int64_t units, bool block) {
  const Lstm lstm(s, length, batch, units);
  const Output x = Random(s, {length, batch, units});
  const Output y = block ? lstm.Block(s, x) : lstm.Loop(s, x);
  if (!s.ok()) return {};
  return Training(s, ReduceMean(s, ops::Square(s, y)), GradientDescentOptimizer(0.1f));
}

/// A block of a transformer, its norms first (Xiong and others 2020), on [batch, length, width].
class TransformerBlock {
 public:
  TransformerBlock(const Scope& s, int64_t batch, int64_t length, int64_t width, int64_t heads)
      : s_(s), batch_(batch), length_(length), width_(width), heads_(heads) {}

  Output operator()(Output x) {  // [batch * length, width]
    x = ops::Add(s_, x, Attention(Norm(x)));
    const Output h = Dense(Norm(x), width_, 4 * width_);
    // GELU by tanh (Hendrycks and Gimpel 2016).
    const Output cube = ops::Mul(s_, ops::Mul(s_, h, h), h);
    const Output inner = ops::Mul(s_, ops::Add(s_, h, ops::Mul(s_, cube, 0.044715f)), 0.7978846f);
    const Output gelu =
        ops::Mul(s_, ops::Mul(s_, h, 0.5f), ops::Add(s_, ops::Tanh(s_, inner), 1.f));
    return ops::Add(s_, x, Dense(gelu, 4 * width_, width_));
  }

 private:
  Output Dense(const Output& x, int64_t inputs, int64_t outputs) {
    const Scope here = s_.NewSubScope("dense");
    const ModelVariable w(here, {inputs, outputs}, GlorotUniformInitializer(), "w");
    const ModelVariable b(here, {outputs}, ZerosInitializer(), "b");
    return ops::BiasAdd(here, ops::MatMul(here, x, w.value()), b.value());
  }
  Output Norm(const Output& x) {
    const Scope here = s_.NewSubScope("norm");
    const ModelVariable scale(here, {width_}, OnesInitializer(), "scale");
    const ModelVariable offset(here, {width_}, ZerosInitializer(), "offset");
    const Tensor last = Tensor::Scalar<int32_t>(1);
    const Output mean = ops::Mean(here, x, last, {.keep_dims = true});
    const Output variance =
        ops::Mean(here, ops::SquaredDifference(here, x, mean), last, {.keep_dims = true});
    const Output by = ops::Rsqrt(here, ops::Add(here, variance, 1e-5f));
    const Output y = ops::Mul(here, ops::Sub(here, x, mean), by);
    return ops::Add(here, ops::Mul(here, y, scale.value()), offset.value());
  }
  /// [batch * length, width] as [batch, heads, length, width / heads].
  Output Heads(const Output& x) {
    const Output apart = ops::Reshape(s_, x, Dims({batch_, length_, heads_, width_ / heads_}));
    return ops::Transpose(s_, apart, Tensor::Vector<int32_t>({0, 2, 1, 3}));
  }
  Output Attention(const Output& x) {
    const std::vector<Output> parts = ops::Split(s_, 1, Dense(x, width_, 3 * width_), 3);
    const Output q = Heads(parts[0]), k = Heads(parts[1]), v = Heads(parts[2]);
    const int64_t depth = width_ / heads_;
    const auto by = static_cast<float>(1 / std::sqrt(static_cast<double>(depth)));
    const Output scores = ops::Mul(s_, ops::BatchMatMulV2(s_, q, k, {.adj_y = true}), by);
    const Output shares = ops::Reshape(
        s_, ops::Softmax(s_, ops::Reshape(s_, scores, Dims({batch_ * heads_ * length_, length_}))),
        Dims({batch_, heads_, length_, length_}));
    const Output mixed = ops::Transpose(s_, ops::BatchMatMulV2(s_, shares, v),
                                        Tensor::Vector<int32_t>({0, 2, 1, 3}));
    return Dense(ops::Reshape(s_, mixed, Dims({batch_ * length_, width_})), width_, width_);
  }
  static Tensor Dims(const std::vector<int64_t>& dims) { return Tensor::Vector<int64_t>(dims); }

  const Scope s_;
  const int64_t batch_, length_, width_, heads_;
};

inline Work TrainTransformer(const Scope& s, int64_t batch, int64_t length, int64_t width,
                             int64_t heads) {
  const Output y =
      TransformerBlock(s, batch, length, width, heads)(Random(s, {batch * length, width}));
  return Training(s, ReduceMean(s, ops::Square(s, y)), GradientDescentOptimizer(0.01f));
}

}  // namespace troupe::benchmarks

#endif  // TROUPE_TESTS_BENCHMARKS_GPU_GRAPHS_H_
