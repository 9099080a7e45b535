// Max poolings with indices on cards against the CPU's.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class ArgmaxPool : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

Tensor Moderate(ElementType type, const Shape& shape, int seed) {
  return Numbers(type, shape, seed, Values::kModerate);
}

struct Case {
  Shape input;
  int64_t rows, columns, row_stride, column_stride;
  const char* padding;
  bool include_batch;
  AgainstCpu::Attrs attrs() const {
    return [*this](NodeSpec& node) {
      node.Attr("ksize", std::vector<int64_t>{1, rows, columns, 1})
          .Attr("strides", std::vector<int64_t>{1, row_stride, column_stride, 1})
          .Attr("padding", padding)
          .Attr("include_batch_in_index", include_batch);
    };
  }
};
std::vector<Case> Cases() {
  return {{Shape({2, 7, 9, 3}), 2, 2, 2, 2, "VALID", false},
          {Shape({2, 8, 5, 4}), 3, 2, 2, 1, "SAME", true},
          {Shape({3, 5, 5, 1}), 3, 3, 1, 1, "SAME", false},
          {Shape({2, 6, 6, 2}), 1, 2, 3, 3, "VALID", true},
          {Shape({1, 2, 2, 2}), 2, 2, 1, 1, "SAME", true}};
}

/// Where the CPU finds the largest elements.
Tensor ArgmaxOf(const Tensor& input, const Case& c) {
  const auto graph = std::make_shared<Graph>();
  Node* const constant =
      *graph->AddNode(NodeSpec("Const", "input").Attr("value", input).Attr("dtype", input.type()));
  NodeSpec pool("MaxPoolWithArgmax", "pool");
  c.attrs()(pool.Input(Output(constant)));
  Node* const node = *graph->AddNode(pool);
  return (*(*Session::Create(graph, {}))->Run({Output(node, 1)}))[0];
}

TEST_F(ArgmaxPool, SameBits) {
  AgainstCpu both;
  for (const ElementType type : {kHalf, kBfloat16, kFloat, kDouble}) {
    for (const Case& c : Cases()) {
      const auto attrs = [&](NodeSpec& node) { c.attrs()(node.Attr("Targmax", kInt64)); };
      both.Add("MaxPoolWithArgmax", {Numbers(type, c.input, 1)}, {}, attrs);
      both.Add("MaxPoolWithArgmax", {{Numbers(type, c.input, 2), Operand::kView}}, {}, attrs);
    }
  }
  both.Compare();
}

TEST_F(ArgmaxPool, Gradient) {
  AgainstCpu both;
  for (const ElementType type : {kHalf, kBfloat16, kFloat, kDouble}) {
    // The CPU rounds every sum to 16 bits.
    const Within within{type == kHalf || type == kBfloat16 ? 4.0 : 0.0, type == kBfloat16 ? 0.5
                                                                        : type == kHalf   ? 0.1
                                                                                          : 0.0};
    for (const Case& c : Cases()) {
      const Tensor input = Moderate(type, c.input, 1);
      const Tensor argmax = ArgmaxOf(input, c);
      const Shape shape = argmax.shape();
      // Indices that no pooling gives.
      Tensor anywhere = *Tensor::Allocate(kInt64, shape);
      const int64_t size = input.num_elements() / input.dim(0);
      const int64_t outputs = shape.num_elements() / input.dim(0);
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        anywhere.mutable_data<int64_t>()[i] =
            (c.include_batch ? i / outputs * size : 0) + i * 37 % size;
      }
      const Tensor gradient = Moderate(type, shape, 2);
      both.Add("MaxPoolGradWithArgmax", {input, gradient, anywhere}, within, c.attrs());
      both.Add("MaxPoolGradWithArgmax", {input, gradient, argmax}, within, c.attrs());
    }
  }
  both.Compare();
}

/// Places in such a window are beyond 2^31.
TEST_F(ArgmaxPool, GradientOfWindowsFarLargerThanTheImage) {
  Tensor input = Tensor::Vector<float>({4, 3, 2, 1}), ones = Tensor::Vector<float>({1, 1, 1, 1});
  const Shape image({1, 2, 2, 1});
  input.set_shape(image);
  ones.set_shape(image);
  const absl::StatusOr<Tensor> gradient =
      AgainstCpu::OnCard("MaxPoolGrad", {input, ones, ones}, [](NodeSpec& node) {
        node.Attr("ksize", std::vector<int64_t>{1, 70000, 70000, 1})
            .Attr("strides", std::vector<int64_t>{1, 1, 1, 1})
            .Attr("padding", "SAME");
      });
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_THAT(gradient->unchecked_values<float>(), ::testing::ElementsAre(4, 0, 0, 0));
}

TEST_F(ArgmaxPool, BadIndices) {
  for (const bool include_batch : {false, true}) {
    const Case c{Shape({2, 2, 2, 1}), 2, 2, 2, 2, "VALID", include_batch};
    const Tensor input = Moderate(kFloat, c.input, 1),
                 gradient = Moderate(kFloat, Shape({2, 1, 1, 1}), 1);
    for (const int64_t bad : {-1, 3, 8}) {
      if (bad == 3 && !include_batch) continue;
      Tensor argmax = *Tensor::Allocate(kInt64, Shape({2, 1, 1, 1}));
      argmax.mutable_data<int64_t>()[0] = 2;
      argmax.mutable_data<int64_t>()[1] = bad;
      const absl::Status status =
          AgainstCpu::StatusOf("MaxPoolGradWithArgmax", {input, gradient, argmax}, c.attrs());
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(status.message().find(StrCat("argmax has ", bad, " at 1")), std::string::npos)
          << status;
    }
  }
}

}  // namespace
}  // namespace troupe::testing
