// Local response normalization of cards against the CPU's.
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Lrn : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

Tensor Moderate(ElementType type, const Shape& shape, int seed) {
  return Numbers(type, shape, seed, Values::kModerate);
}

TEST_F(Lrn, Forward) {
  AgainstCpu both;
  for (const ElementType type : {kHalf, kBfloat16, kFloat}) {
    for (const int64_t depth : {1, 5, 32}) {
      for (const int64_t radius : {0, 2, 40}) {
        for (const float beta : {0.5f, 0.75f, 1.0f}) {
          both.Add("LRN", {Moderate(type, Shape({2, 3, 5, depth}), 1)}, {8, 1e-6},
                   [=](NodeSpec& node) {
                     node.Attr("depth_radius", radius)
                         .Attr("bias", 1.5f)
                         .Attr("alpha", 0.3f)
                         .Attr("beta", beta);
                   });
        }
      }
    }
    both.Add("LRN", {Numbers(type, Shape({2, 0, 3, 4}), 1)});
  }
  both.Compare();
}

TEST_F(Lrn, Gradient) {
  AgainstCpu both;
  for (const ElementType type : {kHalf, kBfloat16, kFloat}) {
    for (const int64_t depth : {1, 7, 40}) {
      for (const float beta : {0.5f, 0.75f}) {
        const Shape shape({2, 3, 2, depth});
        both.Add("LRNGrad",
                 {Moderate(type, shape, 1), Moderate(type, shape, 2), Moderate(type, shape, 3)},
                 {8, 1e-3}, [=](NodeSpec& node) {
                   node.Attr("depth_radius", 3).Attr("alpha", 0.2f).Attr("beta", beta);
                 });
      }
    }
  }
  const Tensor none = Numbers(kFloat, Shape({0, 2, 3, 4}), 1);
  both.Add("LRNGrad", {none, none, none});
  both.Compare();
}

}  // namespace
}  // namespace troupe::testing
