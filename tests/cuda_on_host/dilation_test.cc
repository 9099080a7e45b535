// Grayscale dilation of cards against the CPU's.
#include <string>
#include <vector>

#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Dilation : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

struct Case {
  Shape input, filter, output;
  int64_t row_stride, column_stride, row_rate, column_rate;
  const char* padding;

  AgainstCpu::Attrs attrs() const {
    return [*this](NodeSpec& node) {
      node.Attr("strides", std::vector<int64_t>{1, row_stride, column_stride, 1})
          .Attr("rates", std::vector<int64_t>{1, row_rate, column_rate, 1})
          .Attr("padding", padding);
    };
  }
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {Shape({2, 6, 7, 3}), Shape({3, 2, 3}), Shape({2, 6, 7, 3}), 1, 1, 1, 1, "SAME"},
      {Shape({1, 9, 8, 4}), Shape({2, 3, 4}), Shape({1, 3, 3, 4}), 3, 2, 2, 1, "VALID"},
      {Shape({2, 5, 5, 1}), Shape({4, 4, 1}), Shape({2, 3, 5, 1}), 2, 1, 1, 2, "SAME"},
      {Shape({2, 25, 31, 40}), Shape({2, 2, 40}), Shape({2, 25, 31, 40}), 1, 1, 1, 1, "SAME"},
      {Shape({0, 4, 4, 2}), Shape({2, 2, 2}), Shape({0, 4, 4, 2}), 1, 1, 1, 1, "SAME"},
      {Shape({2, 4, 4, 2}), Shape({5, 2, 2}), Shape({2, 0, 3, 2}), 1, 1, 1, 1, "VALID"},
  };
  return *cases;
}

TEST_F(Dilation, SameBits) {
  AgainstCpu both;
  for (const ElementType type : {kHalf, kBfloat16, kFloat, kDouble}) {
    for (const Case& c : Cases()) {
      if (c.output.dim(1) == 0) continue;  // The op's shape function refuses it.
      for (const Values values : {Values::kAny, Values::kModerate}) {
        both.Add("Dilation2D",
                 {Numbers(type, c.input, 1, values), Numbers(type, c.filter, 2, values)}, {},
                 c.attrs());
      }
    }
  }
  both.Compare();
}

TEST_F(Dilation, Gradients) {
  AgainstCpu both;
  for (const ElementType type : {kFloat, kDouble}) {
    for (const Case& c : Cases()) {
      for (const Values values : {Values::kAny, Values::kModerate}) {
        const Tensor input = Numbers(type, c.input, 1, values);
        const Tensor filter = Numbers(type, c.filter, 2, values);
        const Tensor gradient = Numbers(type, c.output, 3, Values::kModerate);
        for (const char* op : {"Dilation2DBackpropInput", "Dilation2DBackpropFilter"}) {
          both.Add(op, {input, filter, gradient}, {4, type == kFloat ? 1e-3 : 1e-10}, c.attrs());
        }
      }
    }
  }
  both.Compare();
}

/// The CPU rounds every sum to 16 bits. Sums of small whole numbers are exact.
TEST_F(Dilation, GradientsOfSmallTypes) {
  AgainstCpu both;
  for (const ElementType type : {kHalf, kBfloat16}) {
    for (const Case& c : Cases()) {
      if (c.input.num_elements() > 1000) continue;
      Tensor gradient = *Tensor::Allocate(type, c.output);
      SwitchPlain(type, [&]<typename T>() {
        if constexpr (kIsRealFloat<T>) {
          for (int64_t i = 0; i < gradient.num_elements(); ++i) {
            gradient.mutable_data<T>()[i] = T(static_cast<float>(i % 3) - 1);
          }
        }
      });
      const Tensor input = Numbers(type, c.input, 1, Values::kModerate);
      const Tensor filter = Numbers(type, c.filter, 2, Values::kModerate);
      for (const char* op : {"Dilation2DBackpropInput", "Dilation2DBackpropFilter"}) {
        both.Add(op, {input, filter, gradient}, {}, c.attrs());
      }
    }
  }
  both.Compare();
}

TEST_F(Dilation, BadShapes) {
  const Case& c = Cases()[0];
  const Tensor input = Numbers(kFloat, c.input, 1), filter = Numbers(kFloat, c.filter, 1);
  EXPECT_EQ(
      AgainstCpu::StatusOf("Dilation2DBackpropInput",
                           {input, filter, Numbers(kFloat, Shape({2, 6, 6, 3}), 1)}, c.attrs())
          .code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
