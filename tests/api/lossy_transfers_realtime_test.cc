// float32 tensors that lose 16 bits on their way from task to task.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

using testing::ElementsAreArray;

class LossyTransfers : public testing::Test {
 protected:
  void SetUp() override {
    const std::string host = "127.0.0.1:";
    ServerOptions options;
    options.cluster = *ClusterSpec::Create({{"ps", {host + std::to_string(FreePort())}},
                                            {"worker", {host + std::to_string(FreePort())}}});
    for (const char* job : {"ps", "worker"}) {
      options.job = job;
      auto server = Server::Start(options);
      ASSERT_TRUE(server.ok()) << server.status();
      servers_.push_back(*std::move(server));
    }
    x_ = ops::Placeholder(ps_, ElementType::kFloat);
  }
  std::vector<float> Fetch(Output y, bool lossy) {
    EXPECT_TRUE(s_.ok()) << s_.status();
    SessionOptions options;
    options.target = servers_[0]->target();
    options.lossy_transfers = lossy;
    auto session = Session::Create(s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    auto values = (*session)->Run({{x_, Tensor::Vector<float>(kValues)}}, {y});
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok()) return {};
    const auto got = (*values)[0].unchecked_values<float>();
    return {got.begin(), got.end()};
  }
  /// The value with its low 16 bits 0.
  static float Cut(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits &= 0xffff0000;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  static std::vector<float> Cut(std::vector<float> values) {
    for (float& value : values) value = Cut(value);
    return values;
  }

  static inline const std::vector<float> kValues = {1.0f,   -1.9999f, 3.1415927f, 1e-30f,
                                                    -2e30f, 0.0f,     0.3333333f, 65537.0f};
  std::vector<std::unique_ptr<Server>> servers_;
  Scope s_ = Scope::NewRoot();
  Scope ps_ = s_.WithDevice("/job:ps/task:0"), worker_ = s_.WithDevice("/job:worker/task:0");
  Output x_;
};

TEST_F(LossyTransfers, OnRequestOfTheSession) {
  // Twice negated: bits that were cut on the way there cannot come back.
  Output y = ops::Neg(ps_, ops::Neg(worker_, ops::Abs(ps_, x_)));
  std::vector<float> exact;
  for (float value : kValues) exact.push_back(std::fabs(value));
  EXPECT_THAT(Fetch(y, false), ElementsAreArray(exact));
  EXPECT_THAT(Fetch(y, true), ElementsAreArray(Cut(exact)));
}

TEST_F(LossyTransfers, WithinATaskNothingIsLost) {
  Output y = ops::Neg(ps_, ops::Neg(ps_, x_));
  EXPECT_THAT(Fetch(y, true), ElementsAreArray(kValues));
}

TEST_F(LossyTransfers, OnRequestOfANode) {
  auto shortened = s_.graph()->AddNode(
      NodeSpec("Neg", "shortened").Input(x_).Attr("_lossy_16bit", true).Device("/job:ps/task:0"));
  ASSERT_TRUE(shortened.ok()) << shortened.status();
  Output whole = ops::Square(ps_, x_);
  Output y = ops::Neg(worker_, *shortened);
  EXPECT_THAT(Fetch(y, false), ElementsAreArray(Cut(kValues)));
  std::vector<float> squares;
  for (float value : kValues) squares.push_back(value * value);
  EXPECT_THAT(Fetch(ops::Abs(worker_, whole), false), ElementsAreArray(squares));
}

TEST_F(LossyTransfers, OtherTypesAreWhole) {
  Output wide = ops::Cast(ps_, x_, ElementType::kDouble);
  Output y = ops::Cast(ps_, ops::Neg(worker_, ops::Neg(ps_, wide)), ElementType::kFloat);
  EXPECT_THAT(Fetch(y, true), ElementsAreArray(kValues));
}

}  // namespace
}  // namespace troupe
