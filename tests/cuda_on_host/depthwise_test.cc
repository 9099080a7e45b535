// Depthwise convolutions of cards against the CPU's.
#include <string>
#include <vector>

#include "tests/cuda_on_host/against_cpu.h"
#include "tests/cuda_on_host/permuted.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr const char* kForward = "DepthwiseConv2dNative";
constexpr const char* kInputGrad = "DepthwiseConv2dNativeBackpropInput";
constexpr const char* kFilterGrad = "DepthwiseConv2dNativeBackpropFilter";

class Depthwise : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

/// Sums of up to some thousand products, up to 2^7 each, in another order.
Within WithinFor(ElementType type) { return {2, type == kDouble ? 1e-10 : 1e-2}; }

struct Case {
  int64_t batch, height, width, depth;
  int64_t rows, columns, multiplier;
  int64_t stride = 1, row_dilation = 1, column_dilation = 1;
  std::string padding = "SAME";
  std::vector<int64_t> paddings = {};  // Before and after rows, then columns.

  Shape input() const { return {batch, height, width, depth}; }
  Shape filter() const { return {rows, columns, depth, multiplier}; }
  Shape output() const {
    const auto size = [&](int64_t in, int64_t taps, int64_t dilation, size_t at) {
      if (padding == "SAME") return (in + stride - 1) / stride;
      const int64_t around = padding == "VALID" ? 0 : paddings[at] + paddings[at + 1];
      return (in + around - (taps - 1) * dilation - 1 + stride) / stride;
    };
    return {batch, size(height, rows, row_dilation, 0), size(width, columns, column_dilation, 2),
            depth * multiplier};
  }
  AgainstCpu::Attrs attrs(bool channels_first = false) const {
    return [*this, channels_first](NodeSpec& node) {
      const auto order = [&](std::vector<int64_t> of_rows_and_columns, int64_t other) {
        std::vector<int64_t> all = {other};
        if (channels_first) all.push_back(other);
        all.insert(all.end(), of_rows_and_columns.begin(), of_rows_and_columns.end());
        if (!channels_first) all.push_back(other);
        return all;
      };
      node.Attr("strides", order({stride, stride}, 1))
          .Attr("dilations", order({row_dilation, column_dilation}, 1))
          .Attr("padding", padding)
          .Attr("data_format", std::string(channels_first ? "NCHW" : "NHWC"));
      if (padding != "EXPLICIT") return;
      std::vector<int64_t> all = paddings;
      for (int k = 0; k < 2; ++k) all.insert(all.begin(), 0);
      for (int k = 0; k < 2; ++k) all.insert(channels_first ? all.begin() : all.end(), 0);
      node.Attr("explicit_paddings", all);
    };
  }
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {2, 9, 11, 8, 3, 3, 1},                                    // packed
      {1, 12, 7, 16, 3, 3, 1, 2},                                // and with a stride
      {2, 10, 8, 3, 3, 3, 1},                                    // no whole packs
      {2, 7, 8, 3, 3, 2, 2, 1},                                  // two outputs a channel
      {1, 13, 9, 2, 5, 4, 3, 2, 1, 1, "VALID"},                  // more taps than a thread takes
      {2, 11, 10, 4, 3, 3, 1, 1, 2, 3},                          // dilations
      {1, 9, 9, 4, 2, 3, 1, 3, 1, 1, "EXPLICIT", {2, 0, 1, 3}},  // other paddings on each side
      {1, 3, 3, 8, 7, 7, 1},                                     // a filter larger than the image
      {3, 30, 31, 40, 3, 3, 1},                                  // several pieces of pixels
      {1, 1, 1, 1, 1, 1, 1},
      {2, 5, 4, 3, 1, 2, 2, 4},  // a stride larger than the filter
  };
  return *cases;
}

TEST_F(Depthwise, AllDirections) {
  AgainstCpu both;
  for (const ElementType type : {kHalf, kBfloat16, kFloat, kDouble}) {
    for (const Case& c : Cases()) {
      const auto numbers = [&](const Shape& shape, int seed) {
        return Numbers(type, shape, seed, Values::kModerate);
      };
      const auto sizes = [](const Shape& shape) {
        std::vector<int32_t> dims;
        for (const int64_t dim : shape.dims()) dims.push_back(static_cast<int32_t>(dim));
        return OnHost(Tensor::Vector<int32_t>(dims));
      };
      const Tensor input = numbers(c.input(), 1), filter = numbers(c.filter(), 2);
      const Tensor gradient = numbers(c.output(), 3);
      for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
        both.Add(kForward, {{input, as}, {filter, as}}, WithinFor(type), c.attrs());
        both.Add(kInputGrad, {sizes(c.input()), {filter, as}, {gradient, as}}, WithinFor(type),
                 c.attrs());
        both.Add(kFilterGrad, {{input, as}, sizes(c.filter()), {gradient, as}}, WithinFor(type),
                 c.attrs());
      }
    }
  }
  both.Compare();
}

TEST_F(Depthwise, ChannelsFirst) {
  for (const size_t of : {1, 3, 4, 5, 6, 8}) {
    const Case& c = Cases()[of];
    const ElementType type = of == 3 ? kHalf : kFloat;
    const auto numbers = [&](const Shape& shape, int seed) {
      return Numbers(type, shape, seed, Values::kModerate);
    };
    const auto sizes = [](const Tensor& like) {
      std::vector<int32_t> dims;
      for (const int64_t dim : like.shape().dims()) dims.push_back(static_cast<int32_t>(dim));
      return OnHost(Tensor::Vector<int32_t>(dims));
    };
    const Tensor input = numbers(c.input(), 1), filter = numbers(c.filter(), 2);
    const Tensor gradient = numbers(c.output(), 3);
    const Tensor first = ChannelsFirst(input), gradient_first = ChannelsFirst(gradient);
    const auto expect_same = [&](const char* op, const std::vector<Operand>& inputs,
                                 const std::vector<Operand>& inputs_first) {
      const auto want = AgainstCpu::OnCard(op, inputs, c.attrs());
      const auto got = AgainstCpu::OnCard(op, inputs_first, c.attrs(true));
      ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
      EXPECT_TRUE(SameValues(op == kFilterGrad ? *got : ChannelsLast(*got), *want, WithinFor(type)))
          << op;
    };
    expect_same(kForward, {input, filter}, {first, filter});
    expect_same(kInputGrad, {sizes(input), filter, gradient},
                {sizes(first), filter, gradient_first});
    expect_same(kFilterGrad, {input, sizes(filter), gradient},
                {first, sizes(filter), gradient_first});
  }
}

/// Blocks and threads come in another order each time.
TEST_F(Depthwise, SumsHaveOneOrder) {
  const Case c{3, 30, 31, 5, 3, 3, 1};
  const Tensor input = Numbers(kFloat, c.input(), 1, Values::kModerate);
  const Tensor gradient = Numbers(kFloat, c.output(), 2, Values::kModerate);
  const std::vector<Operand> inputs = {input, HostInts({3, 3, 5, 1}), gradient};
  const auto first = AgainstCpu::OnCard(kFilterGrad, inputs, c.attrs());
  ASSERT_TRUE(first.ok()) << first.status();
  for (int run = 0; run < 3; ++run) {
    const auto other = AgainstCpu::OnCard(kFilterGrad, inputs, c.attrs());
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_TRUE(SameValues(*other, *first, {}));
  }
}

TEST_F(Depthwise, Empty) {
  AgainstCpu both;
  const auto zeros = [](Shape shape) { return Numbers(kFloat, shape, 1, Values::kModerate); };
  const auto attrs = Case{0, 4, 4, 3, 3, 3, 2}.attrs();
  both.Add(kForward, {zeros({0, 4, 4, 3}), zeros({3, 3, 3, 2})}, {}, attrs);
  both.Add(kForward, {zeros({2, 4, 4, 0}), zeros({3, 3, 0, 2})}, {}, attrs);
  both.Add(kInputGrad, {HostInts({2, 4, 4, 3}), zeros({3, 3, 3, 0}), zeros({2, 4, 4, 0})}, {},
           attrs);
  both.Add(kFilterGrad, {zeros({0, 4, 4, 3}), HostInts({3, 3, 3, 2}), zeros({0, 4, 4, 6})}, {},
           attrs);
  both.Compare();
}

TEST_F(Depthwise, BadShapes) {
  const auto zeros = [](Shape shape) { return Numbers(kFloat, shape, 1, Values::kModerate); };
  const auto attrs = Case{1, 4, 4, 3, 3, 3, 1}.attrs();
  EXPECT_EQ(
      AgainstCpu::StatusOf(
          kFilterGrad, {zeros({1, 4, 4, 3}), HostInts({3, 3, 2, 1}), zeros({1, 4, 4, 3})}, attrs)
          .code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      AgainstCpu::StatusOf(
          kInputGrad, {HostInts({1, 4, 4, 3}), zeros({3, 3, 3, 1}), zeros({1, 4, 5, 3})}, attrs)
          .code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
