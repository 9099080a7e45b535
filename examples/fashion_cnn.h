// The convolutional network of several examples: three convolutions (6x6 to 6 channels; 5x5 to 12,
// stride 2; 4x4 to 24, stride 2), a dense layer of 200 units with dropout, and an output a class.

#ifndef TROUPE_EXAMPLES_FASHION_CNN_H_
#define TROUPE_EXAMPLES_FASHION_CNN_H_

#include "examples/shared/fashion_training.h"

namespace fashion {

/// A rectified convolution with a square filter and SAME padding on images [batch, height, width,
/// channels]. Its variables are made once, and used by every call.
class Convolution {
 public:
  Convolution(const troupe::Scope& scope, int64_t size, int64_t inputs, int64_t outputs,
              int64_t stride)
      : filter_(scope, {size, size, inputs, outputs}, troupe::TruncatedNormalInitializer(0.0, 0.1),
                "filter"),
        biases_(scope, {outputs}, troupe::ConstantInitializer(0.1), "biases"),
        stride_(stride) {}

  troupe::Output operator()(const troupe::Scope& scope, const troupe::Output& x) const {
    namespace ops = troupe::ops;
    const troupe::Output y =
        ops::Conv2D(scope, x, filter_.value(), {1, stride_, stride_, 1}, "SAME");
    return ops::Relu(scope, ops::BiasAdd(scope, y, biases_.value()));
  }

 private:
  troupe::ModelVariable filter_, biases_;
  int64_t stride_;
};

/// x * W + b with `units` outputs.
class Dense {
 public:
  Dense(const troupe::Scope& scope, int64_t inputs, int64_t units)
      : weights_(scope, {inputs, units}, troupe::TruncatedNormalInitializer(0.0, 0.1), "weights"),
        biases_(scope, {units}, troupe::ConstantInitializer(0.1), "biases") {}

  troupe::Output operator()(const troupe::Scope& scope, const troupe::Output& x) const {
    namespace ops = troupe::ops;
    return ops::BiasAdd(scope, ops::MatMul(scope, x, weights_.value()), biases_.value());
  }

 private:
  troupe::ModelVariable weights_, biases_;
};

/// The network in two halves, which may be on different devices.
class Cnn {
 public:
  static constexpr int64_t kFlat = 7 * 7 * 24;

  Cnn(const troupe::Scope& lower, const troupe::Scope& upper, int64_t classes = kClasses)
      : conv1_(lower.NewSubScope("conv1"), 6, 1, 6, 1),
        conv2_(lower.NewSubScope("conv2"), 5, 6, 12, 2),
        conv3_(lower.NewSubScope("conv3"), 4, 12, 24, 2),
        dense_(upper.NewSubScope("dense"), kFlat, 200),
        output_(upper.NewSubScope("output"), 200, classes) {}
  explicit Cnn(const troupe::Scope& scope, int64_t classes = kClasses)
      : Cnn(scope, scope, classes) {}

  /// Rows of pixels become pictures of one channel; strides halve them to 14x14 and 7x7.
  troupe::Output Features(const troupe::Scope& s, const troupe::Output& images) const {
    const troupe::Output x = troupe::ops::Reshape(s, images, {-1, kSide, kSide, 1});
    return troupe::ops::Reshape(s, conv3_(s, conv2_(s, conv1_(s, x))), {int64_t{-1}, kFlat});
  }
  troupe::Output Logits(const troupe::Scope& s, const troupe::Output& features,
                        const troupe::Output& keep) const {
    const troupe::Output x = troupe::ops::Relu(s, dense_(s, features));
    return output_(s, troupe::Dropout(s, x, keep));
  }
  /// The mean loss over a batch.
  static troupe::Output Loss(const troupe::Scope& s, const troupe::Output& logits,
                             const troupe::Output& labels) {
    auto entropy = troupe::ops::SparseSoftmaxCrossEntropyWithLogits(s, logits, labels);
    return troupe::ReduceMean(s, entropy.loss);
  }

 private:
  Convolution conv1_, conv2_, conv3_;
  Dense dense_, output_;
};

/// Placeholders for images, labels and dropout's probability.
inline Model CnnInputs(const troupe::Scope& s) {
  using troupe::ElementType;
  using troupe::PartialShape;
  Model model;
  model.images = troupe::ops::Placeholder(s.WithOpName("images"), ElementType::kFloat,
                                          {.shape = PartialShape({-1, kPixels})});
  model.labels = troupe::ops::Placeholder(s.WithOpName("labels"), ElementType::kInt32,
                                          {.shape = PartialShape({-1})});
  model.keep = troupe::ops::Placeholder(s.WithOpName("keep"), ElementType::kFloat,
                                        {.shape = PartialShape({})});
  model.keep_when_training = 0.75f;
  return model;
}

/// The learning rate 0.0001 + 0.0029 exp(-step / 2000).
inline troupe::Output LearningRate(const troupe::Scope& s, const troupe::ModelVariable& step) {
  namespace ops = troupe::ops;
  const troupe::Output progress =
      ops::RealDiv(s, ops::Cast(s, step.value(), troupe::ElementType::kFloat), -2000.0f);
  return ops::Add(s, ops::Mul(s, ops::Exp(s, progress), 0.0029f), 0.0001f);
}

}  // namespace fashion

#endif  // TROUPE_EXAMPLES_FASHION_CNN_H_
