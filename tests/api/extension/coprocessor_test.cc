// The example's type of device, which has a memory and a time of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "api/extension.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/variables.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CoprocessorTest : public testing::Test {
 protected:
  CoprocessorTest() {
    const absl::Status loaded = LoadLibrary(TROUPE_COPROCESSOR_LIBRARY);
    EXPECT_TRUE(loaded.ok()) << loaded;
  }
  std::unique_ptr<Session> NewSession(int64_t memory_limit = 0) {
    SessionOptions options;
    options.devices["COP"] = {.memory_limit = memory_limit};
    auto session = Session::Create(s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  Scope s_ = Scope::NewRoot();
  Scope cop_ = s_.WithDevice("/device:COP:0");
};

TEST_F(CoprocessorTest, StepsOfManyThreadsUseItsKernelsAndItsMemory) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  const ModelVariable v(cop_, ops::Const(s_, Tensor::Vector<float>({1, 2, 3})), "v");
  Output y = ops::Square(cop_, ops::Identity(cop_, ops::Square(cop_, x)));
  const Output z = ops::Gather(cop_, v.value(), ops::Const(s_, Tensor::Vector<int64_t>({2, 0})));
  Node* const assign = v.Assign(cop_, y);
  auto session = NewSession();
  ASSERT_TRUE(session->RunTargets({v.initializer()}).ok());
  EXPECT_THAT(session->Run({z}).value()[0].unchecked_values<float>(), ElementsAre(3, 1));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        auto values = session->Run({{x, Tensor::Vector<float>({1, -2, 3})}}, {y}, {assign});
        ASSERT_TRUE(values.ok()) << values.status();
        EXPECT_THAT((*values)[0].unchecked_values<float>(), ElementsAre(1, 16, 81));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(session->Run({z}).value()[0].unchecked_values<float>(), ElementsAre(81, 1));
}

TEST_F(CoprocessorTest, WhatItFindsOutLateNamesTheNode) {
  const Output i = ops::Placeholder(s_, ElementType::kInt64);
  const Output z =
      ops::Gather(cop_.WithOpName("looked_up"), ops::Square(cop_, Tensor::Vector<float>({1})), i);
  auto session = NewSession();
  const absl::Status status =
      session->Run({{i, Tensor::Vector<int64_t>({0, 7})}}, {ops::Square(cop_, z)}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("index 7 is not in [0, 1)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("[[node looked_up = Gather"));
}

TEST_F(CoprocessorTest, ALimitOfItsMemoryIsTheNodesError) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  const Output y = ops::Square(cop_.WithOpName("too_much"), x);
  auto session = NewSession(1 << 20);
  const Tensor large = Tensor::Uninitialized(ElementType::kFloat, Shape({1 << 20}));
  const absl::Status status = session->Run({{x, large}}, {y}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("coprocessor"));
  EXPECT_TRUE(session->Run({{x, Tensor::Scalar(2.0f)}}, {y}).ok());
}

}  // namespace
}  // namespace troupe
