// Convolutions of volumes, and Conv, of cards against the CPU's.
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class VolumeConv : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

constexpr ElementType kTypes[] = {kHalf, kBfloat16, kFloat, kDouble};

Within WithinFor(ElementType type) {
  switch (type) {
    case kHalf:
      return {2, 0.2};
    case kBfloat16:
      return {2, 1};
    case kFloat:
      return {64, 1e-3};
    default:
      return {64, 1e-11};
  }
}

Tensor Some(ElementType type, const Shape& shape, uint64_t seed) {
  return Numbers(type, shape, seed, Values::kModerate);
}

struct Case {
  std::vector<int64_t> input, filter, strides;
  const char* padding;
  std::vector<int64_t> output;
};
const Case kCases[] = {
    {{2, 4, 5, 6, 3}, {2, 3, 2, 3, 4}, {1, 1, 1, 1, 1}, "SAME", {2, 4, 5, 6, 4}},
    {{2, 4, 5, 6, 3}, {2, 3, 2, 3, 4}, {1, 1, 1, 1, 1}, "VALID", {2, 3, 3, 5, 4}},
    {{1, 5, 7, 6, 2}, {3, 3, 3, 2, 5}, {1, 2, 3, 2, 1}, "SAME", {1, 3, 3, 3, 5}},
    {{1, 5, 7, 6, 2}, {3, 3, 3, 2, 5}, {1, 2, 3, 2, 1}, "VALID", {1, 2, 2, 2, 5}},
    {{2, 3, 2, 4, 3}, {1, 1, 1, 3, 2}, {1, 1, 1, 1, 1}, "SAME", {2, 3, 2, 4, 2}},   // Pixels.
    {{2, 3, 2, 4, 3}, {3, 2, 4, 3, 2}, {1, 1, 1, 1, 1}, "VALID", {2, 1, 1, 1, 2}},  // Whole ones.
    {{2, 3, 2, 4, 3}, {1, 1, 1, 3, 2}, {1, 2, 1, 1, 1}, "SAME", {2, 2, 2, 4, 2}},
    {{0, 3, 2, 4, 3}, {2, 2, 2, 3, 2}, {1, 1, 1, 1, 1}, "SAME", {0, 3, 2, 4, 2}},
};

/// int32, as the filter's gradient takes it.
Operand SizesOf(const std::vector<int64_t>& dims) {
  return OnHost(Tensor::Vector<int32_t>(std::vector<int32_t>(dims.begin(), dims.end())));
}

TEST_F(VolumeConv, AgainstTheCpus) {
  AgainstCpu both, old(/*version=*/9);
  for (const ElementType type : kTypes) {
    for (const Case& c : kCases) {
      const auto attrs = [&](NodeSpec& node) {
        node.Attr("strides", c.strides).Attr("padding", std::string(c.padding));
      };
      const Tensor input = Some(type, Shape(c.input), 1), filter = Some(type, Shape(c.filter), 2);
      const Tensor gradient = Some(type, Shape(c.output), 3);
      both.Add("Conv3D", {{input}, {filter}}, WithinFor(type), attrs);
      both.Add("Conv3D", {{input, Operand::kView}, {filter, Operand::kView}}, WithinFor(type),
               attrs);
      both.Add("Conv3DBackpropInputV2",
               {OnHost(Tensor::Vector<int64_t>(c.input)), {filter}, {gradient}}, WithinFor(type),
               attrs);
      both.Add("Conv3DBackpropFilterV2", {{input}, SizesOf(c.filter), {gradient}}, WithinFor(type),
               attrs);
      if (type == kBfloat16) continue;  // The CPU has no old gradients of it.
      old.Add("Conv3DBackpropInput", {{input}, {filter}, {gradient}}, WithinFor(type), attrs);
      old.Add("Conv3DBackpropFilter", {{input}, {filter}, {gradient}}, WithinFor(type), attrs);
    }
  }
  both.Compare();
  old.Compare();
}

/// [n, planes, rows, columns, depth] with depth in the second place.
Tensor ChannelsFirst(const Tensor& tensor) {
  const Shape& s = tensor.shape();
  const int64_t depth = s.dim(4), pixels = s.dim(1) * s.dim(2) * s.dim(3);
  Tensor turned = *Tensor::Allocate(kFloat, Shape({s.dim(0), depth, s.dim(1), s.dim(2), s.dim(3)}));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const int64_t n = i / (pixels * depth), pixel = i / depth % pixels, channel = i % depth;
    turned.mutable_data<float>()[(n * depth + channel) * pixels + pixel] =
        tensor.unchecked_data<float>()[i];
  }
  return turned;
}

TEST_F(VolumeConv, ChannelsMayBeFirst) {
  for (const Case& c : kCases) {
    if (c.input[0] == 0) continue;
    const auto attrs = [&](NodeSpec& node) {
      node.Attr("strides", c.strides).Attr("padding", std::string(c.padding));
    };
    const auto first = [&](NodeSpec& node) {
      const std::vector<int64_t>& s = c.strides;
      node.Attr("strides", std::vector<int64_t>{1, 1, s[1], s[2], s[3]})
          .Attr("padding", std::string(c.padding))
          .Attr("data_format", std::string("NCDHW"));
    };
    const Tensor input = Some(kFloat, Shape(c.input), 1), filter = Some(kFloat, Shape(c.filter), 2);
    const Tensor gradient = Some(kFloat, Shape(c.output), 3);
    const auto check = [&](const char* op, const std::vector<Operand>& last_operands,
                           const std::vector<Operand>& first_operands, bool turns) {
      const auto want = AgainstCpu::OutputsOf(op, last_operands, attrs, false);
      const auto got = AgainstCpu::OnCard(op, first_operands, first);
      ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
      EXPECT_TRUE(
          SameValues(*got, turns ? ChannelsFirst(want->front()) : want->front(), WithinFor(kFloat)))
          << op;
    };
    const Tensor turned = ChannelsFirst(input);
    check("Conv3D", {{input}, {filter}}, {{turned}, {filter}}, true);
    const auto sizes = [](const Tensor& tensor) {
      const auto dims = tensor.shape().dims();
      return SizesOf(std::vector<int64_t>(dims.begin(), dims.end()));
    };
    check("Conv3DBackpropInputV2", {sizes(input), {filter}, {gradient}},
          {sizes(turned), {filter}, {ChannelsFirst(gradient)}}, true);
    check("Conv3DBackpropFilterV2", {{input}, sizes(filter), {gradient}},
          {{turned}, sizes(filter), {ChannelsFirst(gradient)}}, false);
  }
}

/// As a convolution with zeros between the filter's elements.
TEST_F(VolumeConv, Dilations) {
  const Tensor input = Some(kFloat, Shape({1, 7, 6, 8, 2}), 1);
  const Tensor filter = Some(kFloat, Shape({2, 3, 2, 2, 3}), 2);
  const Shape wide_shape({3, 5, 4, 2, 3});
  Tensor wide = *Tensor::Allocate(kFloat, wide_shape);
  std::fill_n(wide.mutable_data<float>(), wide.num_elements(), 0.0f);
  for (int64_t i = 0; i < filter.num_elements(); ++i) {
    const int64_t p = i / 36, r = i / 12 % 3, c = i / 6 % 2;
    wide.mutable_data<float>()[((2 * p * 5 + 2 * r) * 4 + 3 * c) * 6 + i % 6] =
        filter.unchecked_data<float>()[i];
  }
  const auto attrs = [](std::vector<int64_t> dilations) {
    return [=](NodeSpec& node) {
      node.Attr("strides", std::vector<int64_t>{1, 1, 1, 1, 1})
          .Attr("padding", std::string("VALID"))
          .Attr("dilations", dilations);
    };
  };
  const auto want =
      AgainstCpu::OutputsOf("Conv3D", {{input}, {wide}}, attrs({1, 1, 1, 1, 1}), false);
  const auto got = AgainstCpu::OnCard("Conv3D", {{input}, {filter}}, attrs({1, 2, 2, 3, 1}));
  ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
  EXPECT_TRUE(SameValues(*got, want->front(), WithinFor(kFloat)));
}

/// The CPU takes channels last only.
TEST_F(VolumeConv, ConvOfChannelsFirst) {
  const Tensor input = Some(kFloat, Shape({2, 4, 5, 6, 3}), 1);
  const Tensor filter = Some(kFloat, Shape({2, 3, 2, 3, 4}), 2);
  const auto attrs = [](std::vector<int64_t> strides, std::vector<int64_t> paddings, bool first) {
    return [=](NodeSpec& node) {
      node.Attr("strides", strides)
          .Attr("padding", std::string("EXPLICIT"))
          .Attr("explicit_paddings", paddings)
          .Attr("data_format", std::string(first ? "CHANNELS_FIRST" : "CHANNELS_LAST"));
    };
  };
  const auto want =
      AgainstCpu::OutputsOf("Conv", {{input}, {filter}},
                            attrs({1, 1, 2, 3, 1}, {0, 0, 1, 0, 2, 1, 0, 3, 0, 0}, false), false);
  const auto got = AgainstCpu::OnCard("Conv", {{ChannelsFirst(input)}, {filter}},
                                      attrs({1, 1, 1, 2, 3}, {0, 0, 0, 0, 1, 0, 2, 1, 0, 3}, true));
  ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
  EXPECT_TRUE(SameValues(*got, ChannelsFirst(want->front()), WithinFor(kFloat)));
}

TEST_F(VolumeConv, Conv) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    const auto add = [&](std::vector<int64_t> input, std::vector<int64_t> filter,
                         std::vector<int64_t> strides, const char* padding, int64_t batch_dims,
                         std::vector<int64_t> paddings = {}, std::vector<int64_t> dilations = {}) {
      both.Add("Conv", {{Some(type, Shape(input), 1)}, {Some(type, Shape(filter), 2)}},
               WithinFor(type), [=](NodeSpec& node) {
                 node.Attr("strides", strides)
                     .Attr("padding", std::string(padding))
                     .Attr("explicit_paddings", paddings)
                     .Attr("dilations", dilations)
                     .Attr("batch_dims", batch_dims);
               });
    };
    add({2, 5, 6, 3}, {3, 2, 3, 4}, {1, 1, 1, 1}, "SAME", 1);
    add({2, 2, 5, 6, 3}, {3, 2, 3, 4}, {1, 2, 2, 1}, "VALID", 2);
    add({5, 6, 3}, {3, 2, 3, 4}, {1, 1, 1, 1}, "EXPLICIT", 0, {0, 0, 1, 2, 0, 3, 0, 0});
    add({2, 7, 8, 3}, {3, 2, 3, 4}, {1, 1, 1, 1}, "VALID", 1, {}, {1, 2, 3, 1});
    add({2, 4, 5, 6, 3}, {2, 3, 2, 3, 4}, {1, 1, 2, 1, 1}, "SAME", 1);
    add({3, 2, 4, 5, 6, 3}, {2, 3, 2, 3, 4}, {1, 1, 2, 1, 1}, "VALID", 2);
    add({2, 4, 5, 6, 3}, {2, 3, 2, 3, 4}, {1, 1, 1, 1, 1}, "EXPLICIT", 1,
        {0, 0, 1, 0, 2, 1, 0, 3, 0, 0});
  }
  both.Compare();
}

}  // namespace
}  // namespace troupe::testing
