// Against what TensorFlow 2.21 and, for locally connected layers, NumPy give for the same inputs
// and weights: results, and gradients by inputs and weights.
#include "api/layers/convolution.h"

#include <functional>

#include <gmock/gmock.h>

#include "api/gradients.h"
#include "api/layers/layers.h"
#include "api/layers/rnn.h"
#include "api/training/optimizers.h"
#include "tests/api/layers/recorded.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Options, size_t N>
Options With(std::array<int64_t, N> strides, const std::string& padding, bool use_bias = false) {
  Options options;
  options.use_bias = use_bias;
  options.bias_initializer = ConstantInitializer(0.1);
  options.strides = strides;
  options.padding = padding;
  return options;
}

struct LayerCase {
  const char* name;
  Shape input;
  std::function<Output(const Scope& s, const Output& x)> layer;
};

std::vector<LayerCase> LayerCases() {
  using layers::ConvOptions;
  using layers::DepthwiseConvOptions;
  using layers::SeparableConvOptions;
  const Shape volume = {2, 4, 5, 3, 2}, image = {2, 5, 6, 3}, line = {2, 6, 3};
  std::vector<LayerCase> cases;
  cases.push_back({"conv3d", volume, [](const Scope& s, const Output& x) {
                     return layers::Conv3D(s, x, 4, {2, 3, 2},
                                           With<ConvOptions<3>, 3>({2, 1, 1}, "SAME", true));
                   }});
  cases.push_back({"conv3d/dilated", volume, [](const Scope& s, const Output& x) {
                     auto options = With<ConvOptions<3>, 3>({1, 1, 1}, "VALID");
                     options.dilations = {1, 2, 1};
                     return layers::Conv3D(s, x, 4, {2, 2, 2}, options);
                   }});
  for (const std::string padding : {"SAME", "VALID"}) {
    cases.push_back({padding == "SAME" ? "conv3d_transpose/same" : "conv3d_transpose/valid", volume,
                     [padding](const Scope& s, const Output& x) {
                       return layers::Conv3DTranspose(s, x, 3, {3, 2, 2},
                                                      With<ConvOptions<3>, 3>({2, 1, 2}, padding));
                     }});
  }
  cases.push_back({"depthwise", image, [](const Scope& s, const Output& x) {
                     auto options = With<DepthwiseConvOptions<2>, 2>({2, 2}, "SAME", true);
                     options.depth_multiplier = 2;
                     return layers::DepthwiseConv2D(s, x, {3, 2}, options);
                   }});
  cases.push_back({"depthwise/dilated", image, [](const Scope& s, const Output& x) {
                     auto options = With<DepthwiseConvOptions<2>, 2>({1, 1}, "VALID");
                     options.depth_multiplier = 2;
                     options.dilations = {2, 1};
                     return layers::DepthwiseConv2D(s, x, {2, 2}, options);
                   }});
  cases.push_back({"separable2d", image, [](const Scope& s, const Output& x) {
                     auto options = With<SeparableConvOptions<2>, 2>({1, 1}, "SAME", true);
                     options.depth_multiplier = 2;
                     return layers::SeparableConv2D(s, x, 4, {3, 2}, options);
                   }});
  cases.push_back({"separable1d", line, [](const Scope& s, const Output& x) {
                     auto options = With<SeparableConvOptions<1>, 1>({2}, "SAME");
                     options.depth_multiplier = 2;
                     return layers::SeparableConv1D(s, x, 4, 3, options);
                   }});
  cases.push_back({"depthwise/dilated_same", image, [](const Scope& s, const Output& x) {
                     auto options = With<DepthwiseConvOptions<2>, 2>({1, 1}, "SAME");
                     options.depth_multiplier = 2;
                     options.dilations = {2, 3};
                     return layers::DepthwiseConv2D(s, x, {2, 2}, options);
                   }});
  cases.push_back({"separable1d/dilated", line, [](const Scope& s, const Output& x) {
                     auto options = With<SeparableConvOptions<1>, 1>({1}, "SAME");
                     options.depth_multiplier = 2;
                     options.dilations = {2};
                     return layers::SeparableConv1D(s, x, 4, 3, options);
                   }});
  cases.push_back({"max_pool3d", volume, [](const Scope& s, const Output& x) {
                     return layers::MaxPooling3D(s, x, {2, 2, 2}, {2, 1, 1});
                   }});
  cases.push_back({"average_pool3d", volume, [](const Scope& s, const Output& x) {
                     return layers::AveragePooling3D(s, x, {2, 3, 2}, {2, 2, 1}, "SAME");
                   }});
  cases.push_back({"global_max", volume, layers::GlobalMaxPooling});
  cases.push_back(
      {"time_distributed", {2, 3, 5, 4, 2}, [](const Scope& s, const Output& x) {
         return layers::TimeDistributed(s, x, [](const Scope& each, const Output& one) {
           return layers::Conv2D(each, one, 3, {2, 2}, With<ConvOptions<2>, 2>({1, 1}, "VALID"));
         });
       }});
  return cases;
}

class ConvolutionTest : public RecordedTest {
 protected:
  /// The layer's result on a wave is the one recorded, and so are its gradients.
  void Check(const LayerCase& layer, const Output& x, const FeedMap& feeds) {
    const Shape shape = RecordedTensor(layer.name).shape();
    const Output y = layer.layer(Given(), x);
    ASSERT_TRUE(s_.ok()) << layer.name << ": " << s_.status();
    if (feeds.empty()) {
      EXPECT_EQ(y.shape(), PartialShape(shape));
    } else {
      ASSERT_EQ(y.shape().rank(), shape.rank());
      EXPECT_EQ(y.shape().dim(shape.rank() - 1), shape.dim(shape.rank() - 1));
    }
    const Output sums[] = {WaveSum(y, shape)};
    std::vector<Output> variables = {x};
    for (const ModelVariable& variable : ModelVariable::Trainable(*s_.graph())) {
      variables.push_back(variable.value());
    }
    const OutputList gradients = Gradients(s_, sums, variables);
    Start();
    ExpectRecorded(layer.name, Value(y, feeds));
    for (size_t i = 0; i < variables.size(); ++i) {
      const std::string name = StrCat(layer.name, "/gradient_", i);
      ASSERT_TRUE(gradients[i].valid()) << name;
      ExpectRecorded(name, Value(gradients[i], feeds));
    }
  }
};

class EachLayerTest : public ConvolutionTest, public ::testing::WithParamInterface<size_t> {};

TEST_P(EachLayerTest, EqualsTensorFlowsOfKnownSizes) {
  const LayerCase layer = LayerCases()[GetParam()];
  Check(layer, Const(s_, WaveOf(layer.input)), {});
}

TEST_P(EachLayerTest, EqualsTensorFlowsOfUnknownSizes) {
  const LayerCase layer = LayerCases()[GetParam()];
  std::vector<int64_t> sizes(static_cast<size_t>(layer.input.rank()), -1);
  sizes.back() = layer.input.dim(layer.input.rank() - 1);
  const Output x = Fed(PartialShape(sizes));
  Check(layer, x, {{x, WaveOf(layer.input)}});
}

INSTANTIATE_TEST_SUITE_P(All, EachLayerTest, ::testing::Range<size_t>(0, LayerCases().size()),
                         [](const auto& info) {
                           std::string name = LayerCases()[info.param].name;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

TEST_F(ConvolutionTest, LocallyConnectedEqualsItsDefinition) {
  layers::ConvOptions<2> options;
  options.strides = {2, 1};
  const Scope given = VariableScope(s_, "given", {.initializer = Cosine()});
  options.bias_initializer = Cosine();
  layers::ConvOptions<1> of_line;
  of_line.bias_initializer = Cosine();
  const Output image = Fed({-1, 5, 6, 3}), line = Fed({-1, 6, 3});
  const Output y = layers::LocallyConnected2D(given, image, 2, {3, 2}, options);
  const Output z = layers::LocallyConnected1D(given, line, 2, 3, of_line);
  // Gradients against differences of the loss: the layer is linear in its kernel.
  const Output loss = WaveSum(y, {2, 2, 5, 2});
  const ModelVariable kernel = ModelVariable::Trainable(*s_.graph())[0];
  const Output losses[] = {loss}, kernels[] = {kernel.value()};
  const Output gradient = Gradients(s_, losses, kernels)[0];
  const Output direction = Const(s_, WaveOf({10, 18, 2}, 1.1));
  const Output slope = ReduceSum(s_, ops::Mul(s_, gradient, direction));
  Node* move = kernel.AssignAdd(s_, direction);
  Start();
  const FeedMap feeds = {{image, WaveOf({2, 5, 6, 3})}, {line, WaveOf({2, 6, 3})}};
  ExpectRecorded("locally_connected2d", Value(y, feeds));
  ExpectRecorded("locally_connected1d", Value(z, feeds));
  const float before = Number(loss, feeds), expected = Number(slope, feeds);
  ASSERT_EQ(session_->RunTargets({move}), absl::OkStatus());
  EXPECT_NEAR(Number(loss, feeds) - before, expected, 1e-3);
}

TEST_F(ConvolutionTest, NamesAreTensorFlows) {
  layers::Conv3D(s_, Fed({1, 4, 4, 4, 2}), 3, {2, 2, 2});
  layers::Conv3DTranspose(s_, Fed({1, 4, 4, 4, 2}), 3, {2, 2, 2});
  layers::SeparableConv1D(s_, Fed({1, 4, 2}), 3, 2);
  layers::SeparableConv2D(s_, Fed({1, 4, 4, 2}), 3, {2, 2});
  layers::DepthwiseConv2D(s_, Fed({1, 4, 4, 2}), {2, 2});
  layers::LocallyConnected2D(s_, Fed({1, 4, 4, 2}), 3, {2, 2});
  std::vector<std::string> names;
  for (const ModelVariable& variable : ModelVariable::Trainable(*s_.graph())) {
    names.push_back(variable.name() + variable.shape().ToString());
  }
  EXPECT_THAT(names,
              ElementsAre("conv3d/kernel[2,2,2,2,3]", "conv3d/bias[3]",
                          "conv3d_transpose/kernel[2,2,2,3,2]", "conv3d_transpose/bias[3]",
                          "separable_conv1d/depthwise_kernel[2,2,1]",
                          "separable_conv1d/pointwise_kernel[1,2,3]", "separable_conv1d/bias[3]",
                          "separable_conv2d/depthwise_kernel[2,2,2,1]",
                          "separable_conv2d/pointwise_kernel[1,1,2,3]", "separable_conv2d/bias[3]",
                          "depthwise_conv2d/depthwise_kernel[2,2,2,1]", "depthwise_conv2d/bias[2]",
                          "locally_connected2d/kernel[9,8,3]", "locally_connected2d/bias[3,3,3]"));
  EXPECT_TRUE(s_.ok()) << s_.status();
}

TEST_F(ConvolutionTest, OptionsOfBothKernelsHold) {
  layers::SeparableConvOptions<2> options;
  options.kernel_initializer = ConstantInitializer(2.0);
  options.pointwise_initializer = ConstantInitializer(-3.0);
  options.kernel_regularizer = L1Regularizer(1.0);
  options.pointwise_regularizer = L1Regularizer(10.0);
  options.pointwise_constraint = NonNegative();
  const Output x = Const(s_, WaveOf({1, 4, 4, 1}));
  const Output y = layers::SeparableConv2D(s_, x, 2, {2, 2}, options);
  const Output loss = RegularizationLoss(s_);
  GradientDescentOptimizer optimizer(1e-3f);
  Node* train = optimizer.Minimize(s_, ReduceSum(s_, y));
  const Output pointwise = ModelVariable::Trainable(*s_.graph())[1].value();
  Start();
  EXPECT_FLOAT_EQ(Number(loss), 4 * 2 + 10 * 2 * 3);
  ASSERT_EQ(session_->RunTargets({train}), absl::OkStatus());
  EXPECT_THAT(Numbers(pointwise), ElementsAre(0, 0));
}

TEST_F(ConvolutionTest, MultiplyAddsAreCounted) {
  const Output x = Fed({-1, 8, 8, 3});
  Output h = layers::Conv2D(s_, x, 4, {3, 3});                 // 36 positions of 3 * 3 * 3 * 4.
  h = layers::SeparableConv2D(s_, h, 5, {3, 3});               // 16 of 3 * 3 * 4, and of 4 * 5.
  h = layers::Conv2DTranspose(s_, h, 2, {2, 2});               // 16 of 2 * 2 * 2 * 5.
  h = layers::Dense(s_, layers::Flatten(s_, h), 10);           // 50 * 10.
  const Output words = layers::Dense(s_, Fed({-1, 7, 6}), 2);  // 7 of 6 * 2.
  layers::LocallyConnected1D(s_, words, 3, 2);                 // 6 of 2 * 2 * 3.
  DynamicRnn(s_, BasicRnnCell(5), Fed({-1, -1, 3}));           // A step of 8 * 5.
  GradientDescentOptimizer optimizer(1e-3f);
  optimizer.Minimize(s_, ReduceSum(s_, h));  // Gradients are not.
  ASSERT_TRUE(s_.ok()) << s_.status();
  const std::string summary = layers::Summary(*s_.graph());
  const int64_t sum = 36 * 108 + 16 * 36 + 16 * 20 + 16 * 40 + 500 + 7 * 12 + 6 * 12 + 40;
  EXPECT_THAT(summary, HasSubstr(StrCat(sum, " multiply-adds"))) << summary;
}

TEST_F(ConvolutionTest, WhatCannotBeIsRefusedByName) {
  const auto refused = [](const PartialShape& shape, const std::string& says,
                          const std::function<void(const Scope&, const Output&)>& add) {
    const Scope s = Scope::NewRoot();
    add(s, ops::Placeholder(s, ElementType::kFloat, {.shape = shape}));
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << s.status();
    EXPECT_THAT(std::string(s.status().message()), HasSubstr(says));
  };
  refused({1, 4, 4, 2}, "conv3d: ", [](const Scope& s, const Output& x) {
    layers::Conv3D(s, x, 3, {2, 2, 2});
  });
  refused({1, 4, 4, -1}, "separable_conv2d: ", [](const Scope& s, const Output& x) {
    layers::SeparableConv2D(s, x, 3, {2, 2});
  });
  refused({1, 4, 4, 2}, "negative size", [](const Scope& s, const Output& x) {
    layers::DepthwiseConvOptions<2> options;
    options.depth_multiplier = -1;
    layers::DepthwiseConv2D(s, x, {2, 2}, options);
  });
  refused({1, -1, 4, 2}, "locally_connected2d: ", [](const Scope& s, const Output& x) {
    layers::LocallyConnected2D(s, x, 3, {2, 2});
  });
  refused({1, 4, 2}, "padding must be VALID", [](const Scope& s, const Output& x) {
    layers::ConvOptions<1> options;
    options.padding = "SAME";
    layers::LocallyConnected1D(s, x, 3, 2, options);
  });
  refused({1, 4, 4, 4, 2}, "dilations", [](const Scope& s, const Output& x) {
    layers::ConvOptions<3> options;
    options.dilations = {2, 1, 1};
    layers::Conv3DTranspose(s, x, 3, {2, 2, 2}, options);
  });
  refused({1, 4, 4, 4, 2}, "strides 1 with them", [](const Scope& s, const Output& x) {
    layers::ConvOptions<3> options;
    options.dilations = {2, 1, 1};
    options.strides = {1, 2, 1};
    layers::Conv3D(s, x, 3, {2, 2, 2}, options);
  });
  refused({3}, "time_distributed: ", [](const Scope& s, const Output& x) {
    layers::TimeDistributed(s, x, layers::Relu);
  });
  refused({1, 4, 2}, "time_distributed: there is no layer",
          [](const Scope& s, const Output& x) { layers::TimeDistributed(s, x, nullptr); });
  refused({3, 2}, "global_max_pooling: ", [](const Scope& s, const Output& x) {
    layers::GlobalMaxPooling(s, x);
  });
}

}  // namespace
}  // namespace troupe
