// What is said, and done, when the memory of a card runs out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/troupe.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(CardMemoryTest, TheErrorSaysWhatFillsIt) {
  Scope s = Scope::NewRoot();
  const Scope card = s.WithDevice("/device:GPU:0");
  const Output x = ops::Placeholder(s, ElementType::kFloat);
  const Output w = ops::VarHandleOp(card.WithOpName("w"), ElementType::kFloat, PartialShape({}));
  const auto join = [&](const char* name, const std::vector<Output>& parts) {
    return ops::ConcatV2(card.WithOpName(name), parts, 0);
  };
  Node* const init = ops::AssignVariableOp(card, w, join("start", {x, x, x, x}));
  const Output a = join("a", {x, x});
  const Output product = ops::MatMul(card.WithOpName("product"), a, a, {.transpose_a = true});
  SessionOptions options;
  options.devices["GPU"].memory_limit = 1 << 20;
  auto session = Session::Create(s.graph(), options).value();
  auto x_value = Tensor::FromValues<float>(std::vector<float>(32 * 1024, 1.0f), Shape({32, 1024}));
  const FeedMap feeds = {{x, *x_value}};
  const absl::Status initialized = session->RunTargets({init}, feeds);
  ASSERT_TRUE(initialized.ok()) << initialized;
  // 4 MiB for 1 MiB.
  const absl::Status status = session->Run(feeds, {a, product}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  for (const char* part :
       {"[[node product = MatMul on", "shape [1024,1024] (4194304 bytes)", "the limit is 1048576",
        "the largest: 524288 bytes (131072 of float, node start (ConcatV2)), "
        "262144 bytes (65536 of float, node a (ConcatV2))"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  EXPECT_TRUE(session->Run(feeds, {a}).ok());
}

// On CUDA on the host the best plan wants 1 MiB, another 512 bytes, the last one none.
TEST(CardMemoryTest, AConvolutionDoesWithLessWorkspace) {
  const Scope s = Scope::NewRoot();
  const Output x = ops::Placeholder(s, ElementType::kFloat);
  const Output w = ops::Placeholder(s, ElementType::kFloat);
  const Output y = ops::Conv2D(s.WithDevice("/device:GPU:0"), x, w, {1, 1, 1, 1}, "VALID");
  const auto ones = [](const Shape& shape) {
    const std::vector<float> values(static_cast<size_t>(shape.num_elements()), 1.0f);
    return *Tensor::FromValues<float>(values, shape);
  };
  const FeedMap feeds = {{x, ones(Shape({1, 16, 16, 8}))}, {w, ones(Shape({3, 3, 8, 8}))}};
  // The tensors, the filter twice, in blocks of 512 bytes.
  constexpr int64_t kOperands = 8192 + 2 * 2560 + 6656;
  for (const int64_t room : {2 << 20, 64 << 10, 512, 0}) {
    SessionOptions options;
    options.devices["GPU"].memory_limit = kOperands + room;
    const auto session = Session::Create(s.graph(), options).value();
    for (int run = 0; run < 2; ++run) {
      const auto values = session->Run(feeds, {y});
      ASSERT_TRUE(values.ok()) << room << ": " << values.status();
      const Tensor& value = (*values)[0];
      ASSERT_EQ(value.shape(), Shape({1, 14, 14, 8}));
      for (int64_t i = 0; i < value.num_elements(); ++i) {
        ASSERT_EQ(value.unchecked_data<float>()[i], 72) << room;
      }
    }
  }
}

}  // namespace
}  // namespace troupe
