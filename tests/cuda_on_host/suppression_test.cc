// The boxes that cards pick, against the CPU's.
#include <string>
#include <vector>

#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Suppression : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

/// Boxes that overlap in part, between any corners; some are points, some equal.
Tensor Boxes(int64_t count, uint64_t seed) {
  Tensor boxes = *Tensor::Allocate(kFloat, Shape({count, 4}));
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < count; ++i) {
    float* const box = boxes.mutable_data<float>() + 4 * i;
    if (i > 0 && random() % 16 == 0) {
      std::copy_n(box - 4, 4, box);
      continue;
    }
    for (int k = 0; k < 2; ++k) {
      box[k] = static_cast<float>(random() % 100) / 10;
      box[k + 2] = box[k] + static_cast<float>(random() % 41) / 10 - 2;
    }
  }
  return boxes;
}
/// With equal ones, zeros of both signs, infinities and NaNs.
Tensor Scores(int64_t count, uint64_t seed) {
  Tensor scores = *Tensor::Allocate(kFloat, Shape({count}));
  std::mt19937_64 random(seed);
  for (float& score : scores.mutable_values<float>()) {
    const float specials[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0.5f};
    score =
        random() % 4 == 0 ? specials[random() % 6] : static_cast<float>(random() % 2001) / 1000 - 1;
  }
  return scores;
}
Operand HostFloat(float value) { return OnHost(Tensor::Scalar<float>(value)); }

TEST_F(Suppression, SameBoxes) {
  AgainstCpu both;
  struct Limits {
    int32_t most;
    float overlap, least;
  };
  // More boxes than a block has threads, in the end.
  for (const int64_t count : {0, 7, 600}) {
    const Tensor boxes = Boxes(count, 1), scores = Scores(count, 2);
    for (const Limits& limits :
         {Limits{700, 0.4f, -0.25f}, {300, 1, -INFINITY}, {20, 0, 0}, {0, 0.3f, 0}, {5, 0.5f, 5}}) {
      std::vector<Operand> inputs = {boxes, scores, HostInt(limits.most),
                                     HostFloat(limits.overlap)};
      both.Add("NonMaxSuppressionV2", inputs);
      inputs.push_back(HostFloat(limits.least));
      both.Add("NonMaxSuppressionV3", inputs);
      for (const bool pad : {false, true}) {
        both.Add("NonMaxSuppressionV4", inputs, {},
                 [pad](NodeSpec& node) { node.Attr("pad_to_max_output_size", pad); });
      }
    }
  }
  both.Compare();
}

TEST_F(Suppression, BadInputs) {
  const Tensor boxes = Boxes(3, 1), scores = Scores(3, 2);
  const auto status = [&](int32_t most, float overlap) {
    return AgainstCpu::StatusOf("NonMaxSuppressionV3",
                                {boxes, scores, HostInt(most), HostFloat(overlap), HostFloat(0)})
        .code();
  };
  EXPECT_EQ(status(2, 0.5f), absl::StatusCode::kOk);
  EXPECT_EQ(status(-1, 0.5f), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(2, 1.5f), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
