// Colors of pixels on cards against the CPU's.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Colors : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

/// In [0, 1], with gray, black and equal channels among them.
Tensor Pixels(ElementType type, const Shape& shape, int seed) {
  Tensor tensor = *Tensor::Allocate(type, shape);
  std::mt19937_64 random(seed);
  SwitchPlain(type, [&]<typename T>() {
    if constexpr (kIsRealFloat<T>) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        const bool repeat = i > 0 && random() % 4 == 0;
        tensor.mutable_data<T>()[i] = repeat ? tensor.unchecked_data<T>()[i - 1]
                                             : T(static_cast<float>(random() % 257) / 256);
      }
    }
  });
  return tensor;
}
Operand Scalar(float value) { return Tensor::Scalar<float>(value); }

TEST_F(Colors, Converted) {
  AgainstCpu both;
  for (const ElementType type : {kFloat, kDouble}) {
    for (const char* op : {"RGBToHSV", "HSVToRGB"}) {
      both.Add(op, {Pixels(type, Shape({3}), 1)});
      both.Add(op, {Pixels(type, Shape({2, 5, 7, 3}), 2)});
      both.Add(op, {{Pixels(type, Shape({31, 3}), 3), Operand::kView}});
      both.Add(op, {Numbers(type, Shape({40, 3}), 4, Values::kPositive)});
      both.Add(op, {Pixels(type, Shape({0, 3}), 5)});
    }
  }
  both.Compare();
}

TEST_F(Colors, Adjusted) {
  AgainstCpu both;
  for (const char* op : {"AdjustHue", "AdjustSaturation"}) {
    for (const float by : {0.0f, 0.3f, -0.8f, 2.5f}) {
      for (const Operand::As as : {Operand::kConstant, Operand::kCopy, Operand::kView}) {
        both.Add(op, {{Pixels(kFloat, Shape({2, 5, 7, 3}), 1), as}, Scalar(by)});
      }
      both.Add(op, {Pixels(kFloat, Shape({0, 2, 3}), 1), Scalar(by)});
    }
  }
  both.Compare();
  for (const char* op : {"AdjustHue", "AdjustSaturation"}) {
    // The CPU has no half. Numbers of 8 bits are the same in both, but for the last rounding.
    const Tensor wide = Pixels(kFloat, Shape({4, 5, 3}), 7),
                 narrow = Pixels(kHalf, wide.shape(), 7);
    const auto want = AgainstCpu::OnCard(op, {wide, Scalar(0.25f)});
    const auto got = AgainstCpu::OnCard(op, {narrow, Scalar(0.25f)});
    ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
    for (int64_t i = 0; i < wide.num_elements(); ++i) {
      EXPECT_NEAR(static_cast<float>(got->unchecked_data<half>()[i]),
                  want->unchecked_data<float>()[i], 1e-3);
    }
  }
}

/// Of AdjustContrast, which is too old for new graphs, there are golden cases.
TEST_F(Colors, Contrast) {
  AgainstCpu both;
  const Shape shapes[] = {Shape({1, 1, 1}), Shape({5, 7, 3}), Shape({2, 3, 9, 8, 4}),
                          Shape({2, 60, 50, 5})};
  for (const Shape& shape : shapes) {
    for (const float factor : {0.0f, 1.0f, 3.7f, -0.5f}) {
      const Tensor images = Numbers(kFloat, shape, 1, Values::kModerate);
      for (const Operand::As as : {Operand::kConstant, Operand::kCopy, Operand::kView}) {
        both.Add("AdjustContrastv2", {{images, as}, Scalar(factor)}, {8, 1e-4});
      }
    }
  }
  both.Add("AdjustContrastv2", {Numbers(kFloat, Shape({2, 0, 4, 3}), 1), Scalar(2)});
  both.Compare();
  const Tensor wide = Pixels(kFloat, Shape({2, 6, 5, 3}), 7),
               narrow = Pixels(kHalf, wide.shape(), 7);
  const auto want = AgainstCpu::OnCard("AdjustContrastv2", {wide, Scalar(2)});
  const auto got = AgainstCpu::OnCard("AdjustContrastv2", {narrow, Scalar(2)});
  ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
  for (int64_t i = 0; i < wide.num_elements(); ++i) {
    EXPECT_NEAR(static_cast<float>(got->unchecked_data<half>()[i]),
                want->unchecked_data<float>()[i], 2e-3);
  }
}

}  // namespace
}  // namespace troupe::testing
