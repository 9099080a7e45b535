// Poolings of volumes on cards against the CPU's.
#include <string>
#include <vector>

#include "tests/cuda_on_host/against_cpu.h"
#include "tests/cuda_on_host/permuted.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class VolumePool : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

constexpr ElementType kTypes[] = {kHalf, kBfloat16, kFloat};

struct Case {
  Shape input, output;
  std::vector<int64_t> sizes, strides;
  const char* padding;

  AgainstCpu::Attrs attrs(bool channels_first = false) const {
    return [*this, channels_first](NodeSpec& node) {
      const auto order = [&](std::vector<int64_t> all) {
        all.insert(all.begin(), 1);
        all.insert(channels_first ? all.begin() : all.end(), 1);
        return all;
      };
      node.Attr("ksize", order(sizes))
          .Attr("strides", order(strides))
          .Attr("padding", padding)
          .Attr("data_format", channels_first ? "NCDHW" : "NDHWC");
    };
  }
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {Shape({2, 5, 6, 7, 3}), Shape({2, 2, 3, 3, 3}), {2, 2, 2}, {2, 2, 2}, "VALID"},
      {Shape({1, 4, 5, 6, 8}), Shape({1, 4, 5, 3, 8}), {3, 2, 3}, {1, 1, 2}, "SAME"},
      {Shape({2, 3, 3, 3, 16}), Shape({2, 1, 1, 1, 16}), {3, 3, 3}, {1, 1, 1}, "VALID"},
      {Shape({1, 7, 4, 5, 1}), Shape({1, 3, 2, 2, 1}), {1, 2, 2}, {3, 2, 3}, "SAME"},
      {Shape({0, 2, 2, 2, 4}), Shape({0, 2, 2, 2, 4}), {2, 2, 2}, {1, 1, 1}, "SAME"},
  };
  return *cases;
}

/// `op`s of the same inputs, for AgainstCpu or, channels first, by OnCard.
struct Pooling {
  std::string op;
  std::vector<Tensor> inputs;
  bool from_sizes = false;  ///< The first input is the shape of an input.
};
std::vector<Pooling> Poolings(const Case& c, ElementType type) {
  const auto numbers = [type](const Shape& shape, int seed) {
    return Numbers(type, shape, seed, Values::kModerate);
  };
  std::vector<int32_t> sizes;
  for (const int64_t dim : c.input.dims()) sizes.push_back(static_cast<int32_t>(dim));
  const Tensor input = numbers(c.input, 1), gradient = numbers(c.output, 2);
  // Largest elements, that none of the windows may have.
  Tensor pooled = numbers(c.output, 3);
  return {{"MaxPool3D", {input}},
          {"AvgPool3D", {input}},
          {"MaxPool3DGrad", {input, pooled, gradient}},
          {"MaxPool3DGradGrad", {input, pooled, numbers(c.input, 4)}},
          {"AvgPool3DGrad", {Tensor::Vector<int32_t>(sizes), gradient}, true}};
}

TEST_F(VolumePool, AllDirections) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const Case& c : Cases()) {
      for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
        for (const Pooling& node : Poolings(c, type)) {
          std::vector<Operand> inputs;
          for (const Tensor& input : node.inputs) inputs.emplace_back(input, as);
          if (node.from_sizes) inputs[0].as = Operand::kOnHost;
          const bool moves = node.op == "MaxPool3D" || node.op == "MaxPool3DGradGrad";
          both.Add(node.op, inputs, moves ? Within{} : Within{2, 1e-5}, c.attrs());
        }
      }
    }
  }
  both.Compare();
}

/// What is pooled is there, with infinities and NaNs.
TEST_F(VolumePool, LargestElements) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const Case& c : Cases()) {
      const Tensor input = Numbers(type, c.input, 5);
      both.Add("MaxPool3D", {input}, {}, c.attrs());
      const auto pooled = AgainstCpu::OnCard("MaxPool3D", {input}, c.attrs());
      ASSERT_TRUE(pooled.ok()) << pooled.status();
      both.Add("MaxPool3DGrad", {input, *pooled, Numbers(type, c.output, 6, Values::kModerate)},
               {2, 1e-5}, c.attrs());
      both.Add("MaxPool3DGradGrad", {input, *pooled, Numbers(type, c.input, 7)}, {}, c.attrs());
    }
  }
  both.Compare();
}

TEST_F(VolumePool, ChannelsFirst) {
  for (const int of : {0, 1}) {
    const Case& c = Cases()[of];
    for (const Pooling& node : Poolings(c, kFloat)) {
      std::vector<Operand> last, first;
      for (const Tensor& input : node.inputs) {
        last.emplace_back(input);
        first.emplace_back(input.rank() == 5 ? ChannelsFirst(input) : input);
      }
      if (node.from_sizes) {
        const auto* dims = node.inputs[0].unchecked_data<int32_t>();
        last[0].as = Operand::kOnHost;
        first[0] = HostInts({dims[0], dims[4], dims[1], dims[2], dims[3]});
      }
      const auto want = AgainstCpu::OnCard(node.op, last, c.attrs());
      const auto got = AgainstCpu::OnCard(node.op, first, c.attrs(true));
      ASSERT_TRUE(want.ok() && got.ok()) << node.op << want.status() << got.status();
      EXPECT_TRUE(SameValues(ChannelsLast(*got), *want, {})) << node.op;
    }
  }
}

TEST_F(VolumePool, BadShapes) {
  const Case& c = Cases()[0];
  const Tensor input = Numbers(kFloat, c.input, 1);
  EXPECT_EQ(AgainstCpu::StatusOf("MaxPool3DGrad", {input, input, input}, c.attrs()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      AgainstCpu::StatusOf("AvgPool3DGrad", {HostInts({2, 5, 6, 7, 3}), input}, c.attrs()).code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
