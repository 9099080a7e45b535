// How many compiled signatures a session keeps.
#include <gtest/gtest.h>

#include "actors/session/session_role.h"
#include "api/ops.h"
#include "api/scope.h"

namespace troupe {
namespace {

class SignaturesTest : public testing::Test {
 protected:
  void Make(SessionRole::Options options) {
    for (int i = 0; i < 50; ++i) nodes_.push_back(ops::Neg(s_, static_cast<float>(i)));
    random_ = ops::RandomUniform(s_, Const(s_, Tensor::Vector<int32_t>({4})), ElementType::kFloat,
                                 {.seed = 7, .seed2 = 3});
    EXPECT_TRUE(s_.ok()) << s_.status();
    role_ = std::make_shared<SessionRole>(
        s_.graph(), *Runtime::Create({.threads = 1, .clock = &clock_}), options);
  }
  std::shared_ptr<Executable> Prepare(Output fetch) {
    StepSignature signature;
    signature.fetches = {fetch};
    auto executable = role_->Prepare(signature);
    EXPECT_TRUE(executable.ok()) << executable.status();
    return executable.ok() ? *std::move(executable) : nullptr;
  }
  Tensor Run(Output fetch) {
    Tensor value;
    EXPECT_TRUE(role_->Run(Prepare(fetch).get(), {}, absl::MakeSpan(&value, 1), {}, nullptr).ok());
    return value;
  }

  struct SetClock final : TimeSource {
    uint64_t NowNs() override { return static_cast<uint64_t>(absl::ToInt64Nanoseconds(now)); }
    int64_t UnixNs() override { return 0; }
    absl::Duration now;
  } clock_;
  Scope s_ = Scope::NewRoot();
  std::vector<Output> nodes_;
  Output random_;
  std::shared_ptr<SessionRole> role_;
};

TEST_F(SignaturesTest, TheLastUsedAreKept) {
  Make({.max_signatures = 10});
  const Executable* first = Prepare(nodes_[0]).get();
  for (const Output& node : nodes_) {
    Run(node);
    EXPECT_EQ(Prepare(nodes_[0]).get(), first) << "what is used again and again stays";
    EXPECT_LE(role_->num_signatures(), 10u);
  }
  EXPECT_EQ(role_->num_signatures(), 10u);
}

TEST_F(SignaturesTest, WhatSomebodyHoldsIsKept) {
  Make({.max_signatures = 2});
  std::vector<std::shared_ptr<Executable>> held;
  for (int i = 0; i < 5; ++i) held.push_back(Prepare(nodes_[i]));
  for (int i = 5; i < 20; ++i) Run(nodes_[i]);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Prepare(nodes_[i]), held[i]);
  held.clear();
  Run(nodes_[30]);
  EXPECT_EQ(role_->num_signatures(), 2u);
}

TEST_F(SignaturesTest, WhatIsOldGoes) {
  Make({.signature_age = absl::Minutes(10)});
  for (const Output& node : nodes_) {  // One a minute.
    Run(node);
    clock_.now += absl::Minutes(1);
  }
  // The newest, and those that another one has followed in the last ten minutes.
  EXPECT_EQ(role_->num_signatures(), 12u);
  clock_.now += absl::Hours(1);
  Run(nodes_[0]);
  EXPECT_EQ(role_->num_signatures(), 2u) << "until now there was no newer one";
}

TEST_F(SignaturesTest, StateOutlivesThem) {
  Make({.max_signatures = 1});
  const Tensor first = Run(random_);
  Run(nodes_[0]);
  EXPECT_EQ(role_->num_signatures(), 1u);
  const Tensor second = Run(random_);
  auto fresh = std::make_shared<SessionRole>(s_.graph(), *Runtime::Create({.threads = 1}),
                                             SessionRole::Options());
  role_.swap(fresh);
  const auto values = [](const Tensor& tensor) {
    const float* data = tensor.unchecked_data<float>();
    return std::vector<float>(data, data + 4);
  };
  EXPECT_EQ(values(Run(random_)), values(first));
  EXPECT_EQ(values(Run(random_)), values(second)) << "the generator went on where it was";
}

}  // namespace
}  // namespace troupe
