// Devices of type GPU: what is said where there is none, and a look at them where there are some.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "devices/device_loader.h"
#include "devices/device_registry.h"

namespace troupe {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::unique_ptr<Session>> NewSession(const std::shared_ptr<Graph>& graph) {
  SessionOptions options;
  options.devices["GPU"] = {};
  return Session::Create(graph, options);
}

TEST(Gpu, AProgramThatAsksForNoneLoadsNothing) {
  EXPECT_TRUE(Session::Create(std::make_shared<Graph>(), {}).ok());
  EXPECT_THAT(DeviceRegistry::Global()->types(), testing::Not(testing::Contains("GPU")));
}

TEST(Gpu, ALibraryThatIsNotThereIsNamed) {
  setenv("TROUPE_CUDA_LIBRARY", "/nowhere/libtroupe_cuda.so", 1);
  const absl::Status status = NewSession(std::make_shared<Graph>()).status();
  unsetenv("TROUPE_CUDA_LIBRARY");
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/libtroupe_cuda.so"));
}

TEST(Gpu, ComputesOrSaysWhyNot) {
  Scope s = Scope::NewRoot();
  const Scope gpu = s.WithDevice("/device:GPU:0");
  const Output x = ops::Placeholder(s, ElementType::kFloat);
  const Output y = ops::Tanh(gpu, ops::Add(gpu, ops::MatMul(gpu, x, x), 1.0f));
  auto session = NewSession(s.graph());
  if (absl::IsFailedPrecondition(session.status())) {
    // No library of CUDA, no driver, or too old a one: it says what is to be done.
    const std::string message(session.status().message());
    EXPECT_TRUE(message.find("libtroupe_cuda.so") != std::string::npos ||
                message.find("NVIDIA driver") != std::string::npos)
        << message;
    GTEST_SKIP() << message;
  }
  if (absl::IsInvalidArgument(session.status())) {
    EXPECT_THAT(std::string(session.status().message()), HasSubstr("there are only 0"));
    GTEST_SKIP() << session.status();
  }
  ASSERT_TRUE(session.ok()) << session.status();
  Tensor in = Tensor::Uninitialized(ElementType::kFloat, Shape({2, 2}));
  for (int i = 0; i < 4; ++i) in.mutable_data<float>()[i] = 0.1f * static_cast<float>(i);
  auto values = (*session)->Run({{x, in}}, {y});
  ASSERT_TRUE(values.ok()) << values.status();
  const float sums[] = {0.02f, 0.03f, 0.06f, 0.11f};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR((*values)[0].unchecked_data<float>()[i], std::tanh(sums[i] + 1), 1e-6);
  }
}

}  // namespace
}  // namespace troupe
