// What is said when the memory of a card runs out.
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

}  // namespace
}  // namespace troupe
