// Gradients through tensor arrays, tensor lists and optionals, run in a session.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "api/session.h"
#include "graph/gradients/add_gradients.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe {
namespace {

using enum ElementType;

class DataGradientsTest : public ::testing::TestWithParam<bool> {
 protected:
  explicit DataGradientsTest() : graph_(std::make_shared<Graph>()), b_(graph_.get(), "f") {}

  Output Placeholder(const PartialShape& shape) {
    return b_.Op("Placeholder", {},
                 [&](NodeSpec& spec) { spec.Attr("dtype", kFloat).Attr("shape", shape); });
  }
  Output Grad(Output y, Output x) {
    std::vector<Output> grads;
    const absl::Status status = AddSymbolicGradients({y}, {x}, {}, &grads);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? grads[0] : Output();
  }
  std::vector<float> Run(const NamedTensors& feeds, Output fetch) {
    EXPECT_TRUE(b_.status().ok()) << b_.status();
    SessionOptions options;
    options.threads = 2;
    options.optimize = GetParam();
    auto session = Session::Create(graph_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    std::vector<Tensor> values;
    const absl::Status status = (*session)->Run(feeds, {fetch.name()}, {}, &values);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return {};
    return {values[0].unchecked_values<float>().begin(), values[0].unchecked_values<float>().end()};
  }

  std::shared_ptr<Graph> graph_;
  GradientBuilder b_;
};

INSTANTIATE_TEST_SUITE_P(Optimize, DataGradientsTest, ::testing::Bool());

/// y = x[0]^2 x[1], by way of an array of version 2 or 3.
Output CubicByArray(GradientBuilder& b, const std::string& version, Output x) {
  Node* array = b.Add("TensorArray" + version, {b.Scalar<int32_t>(2)}, [](NodeSpec& spec) {
    spec.Attr("dtype", kFloat).Attr("clear_after_read", false);
  });
  if (array == nullptr) return Output();
  Output flow = array->num_outputs() > 1 ? Output(array, 1) : b.Scalar(0.0f);
  flow = b.Op("TensorArrayScatter" + version, {Output(array, 0), b.IntVector({0, 1}), x, flow});
  auto read = [&](int32_t i) {
    return b.Op("TensorArrayRead" + version, {Output(array, 0), b.Scalar(i), flow},
                [](NodeSpec& spec) { spec.Attr("dtype", kFloat); });
  };
  return b.Op("Mul", {b.Op("Mul", {read(0), read(0)}), read(1)});
}

TEST_P(DataGradientsTest, ArraysWithResourceHandles) {
  Output x = Placeholder({2});
  Output y = CubicByArray(b_, "V3", x);
  Output first = Grad(y, x);
  const NamedTensors feeds = {{x.name(), Tensor::Vector<float>({3, 5})}};
  EXPECT_EQ(Run(feeds, first), (std::vector<float>{30, 9}));
  // The gradients of two reads of an element are added up in one element, whose own gradient is
  // read twice.
  Output second = Grad(first, x);
  EXPECT_EQ(Run(feeds, second), (std::vector<float>{2 * 5 + 2 * 3, 2 * 3}));
}

TEST_P(DataGradientsTest, TwoDifferentiationsInOneStep) {
  Output x = Placeholder({2});
  Output y = CubicByArray(b_, "V3", x);
  Output sum = b_.Op("AddV2", {Grad(y, x), Grad(y, x)});
  EXPECT_EQ(Run({{x.name(), Tensor::Vector<float>({3, 5})}}, sum), (std::vector<float>{60, 18}));
}

TEST_P(DataGradientsTest, ArraysWithStringHandles) {
  graph_->set_producer(20);  // They were removed later.
  Output x = Placeholder({2});
  Output y = CubicByArray(b_, "V2", x);
  EXPECT_EQ(Run({{x.name(), Tensor::Vector<float>({3, 5})}}, Grad(y, x)),
            (std::vector<float>{30, 9}));
}

TEST_P(DataGradientsTest, SplitAndConcat) {
  Output x = Placeholder({3});
  Node* array = b_.Add("TensorArrayV3", {b_.Scalar<int32_t>(2)},
                       [](NodeSpec& spec) { spec.Attr("dtype", kFloat); });
  Output flow =
      b_.Op("TensorArraySplitV3", {Output(array, 0), b_.Op("Square", {x}),
                                   b_.Const(Tensor::Vector<int64_t>({1, 2})), Output(array, 1)});
  Output joined = b_.Op("TensorArrayConcatV3", {Output(array, 0), flow},
                        [](NodeSpec& spec) { spec.Attr("dtype", kFloat); });
  EXPECT_EQ(Run({{x.name(), Tensor::Vector<float>({1, 2, 3})}}, Grad(joined, x)),
            (std::vector<float>{2, 4, 6}));
}

TEST_P(DataGradientsTest, ListsPopped) {
  Output x = Placeholder({2});
  auto elements = [](NodeSpec& spec) { spec.Attr("element_dtype", kFloat); };
  Output list = b_.Op("EmptyTensorList", {b_.IntVector({2}), b_.Scalar<int32_t>(-1)}, elements);
  list = b_.Op("TensorListPushBack", {list, x}, elements);
  list = b_.Op("TensorListPushBack", {list, b_.Op("Square", {x})}, elements);
  Node* last = b_.Add("TensorListPopBack", {list, b_.IntVector({2})}, elements);
  // Nothing depends on the rest of the list, then something does.
  const NamedTensors feeds = {{x.name(), Tensor::Vector<float>({3, 5})}};
  EXPECT_EQ(Run(feeds, Grad(Output(last, 1), x)), (std::vector<float>{6, 10}));
  Output rest = b_.Op("TensorListStack", {Output(last, 0), b_.IntVector({2})}, elements);
  Output y = b_.Op("AddV2", {rest, Output(last, 1)});
  EXPECT_EQ(Run(feeds, Grad(y, x)), (std::vector<float>{7, 11}));
}

TEST_P(DataGradientsTest, Optionals) {
  Output x = Placeholder({2});
  NodeSpec spec("OptionalFromValue", "optional");
  spec.Input(absl::MakeConstSpan(std::vector<Output>{b_.Op("Square", {x}), x}));
  Node* optional = b_.Add(std::move(spec));
  Node* values = b_.Add("OptionalGetValue", {Output(optional, 0)}, [](NodeSpec& s) {
    s.Attr("output_types", absl::MakeConstSpan(std::vector<ElementType>{kFloat, kFloat}))
        .Attr("output_shapes",
              absl::MakeConstSpan(std::vector<PartialShape>{PartialShape({2}), PartialShape()}));
  });
  const NamedTensors feeds = {{x.name(), Tensor::Vector<float>({3, 5})}};
  EXPECT_EQ(Run(feeds, Grad(Output(values, 0), x)), (std::vector<float>{6, 10}));
  EXPECT_EQ(Run(feeds, Grad(b_.Op("AddV2", {Output(values, 0), Output(values, 1)}), x)),
            (std::vector<float>{7, 11}));
}

}  // namespace
}  // namespace troupe
