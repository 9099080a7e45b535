// Ops of which a variable holds the generator's state. The expected numbers are TensorFlow's (2.21,
// CPU).
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/state/fake_variable.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

class StatefulRandom : public ::testing::Test {
 protected:
  StatefulRandom() : handle_("VarHandleOp") {
    handle_.Attr("dtype", ElementType::kInt64).Attr("shape", Shape({3}));
    handle_.Attr("shared_name", "state").Resources(&resources_);
  }

  Tensor Handle() {
    EXPECT_TRUE(handle_.Run().ok());
    return handle_.output(0);
  }
  void Assign(std::initializer_list<int64_t> words) {
    OpTest op("AssignVariableOp");
    op.Resources(&resources_).Input(Handle()).Input(Tensor::Vector<int64_t>(words));
    ASSERT_EQ(op.Run(), absl::OkStatus());
  }
  Tensor State() {
    OpTest op("ReadVariableOp");
    op.Attr("dtype", ElementType::kInt64).Resources(&resources_).Input(Handle());
    EXPECT_EQ(op.Run(), absl::OkStatus());
    return op.output(0);
  }
  /// An op for three numbers of `type`.
  void Begin(OpTest* op, ElementType type, int64_t algorithm) {
    op->Attr("dtype", type).Resources(&resources_).Input(Handle());
    op->Input(Tensor::Scalar(algorithm)).Input(Tensor::Vector<int64_t>({3}));
  }
  StatusCode Uniform(int64_t algorithm) {
    OpTest op("StatefulUniform");
    Begin(&op, ElementType::kFloat, algorithm);
    return op.Run().code();
  }

  FakeResources resources_;
  OpTest handle_;
};

TEST_F(StatefulRandom, GivesTensorFlowsNumbersAndMovesTheState) {
  Assign({7, 8, 9});
  OpTest uniform("StatefulUniform");
  Begin(&uniform, ElementType::kFloat, 1);
  ASSERT_EQ(uniform.Run(), absl::OkStatus());
  ExpectEqual(uniform.output(0), Tensor::Vector<float>({0.7113637924194336f, 0.23097693920135498f,
                                                        0.580710768699646f}));
  ExpectEqual(State(), Tensor::Vector<int64_t>({775, 8, 9}));
  OpTest range("StatefulUniformInt");
  Begin(&range, ElementType::kInt32, 3);
  range.Input(Tensor::Scalar(-100)).Input(Tensor::Scalar(100));
  ASSERT_EQ(range.Run(), absl::OkStatus());
  ExpectEqual(range.output(0), Tensor::Vector<int32_t>({-41, -50, 64}));
  ExpectEqual(State(), Tensor::Vector<int64_t>({1543, 8, 9}));
  OpTest binomial("StatefulRandomBinomial");
  Begin(&binomial, ElementType::kInt32, 1);
  binomial.Input(Tensor::Scalar(50.0f)).Input(Tensor::Scalar(0.3f));
  ASSERT_EQ(binomial.Run(), absl::OkStatus());
  ExpectEqual(binomial.output(0), Tensor::Vector<int32_t>({16, 14, 13}));
  ExpectEqual(State(), Tensor::Vector<int64_t>({78343, 8, 9}));
}

TEST_F(StatefulRandom, TheCounterCarries) {
  Assign({-1, 8, 9});
  ASSERT_EQ(Uniform(1), StatusCode::kOk);
  ExpectEqual(State(), Tensor::Vector<int64_t>({767, 9, 9}));
}

TEST_F(StatefulRandom, BadStatesAndAlgorithms) {
  EXPECT_EQ(Uniform(1), StatusCode::kNotFound);
  Assign({7, 8, 9});
  EXPECT_EQ(Uniform(2), StatusCode::kUnimplemented);
  EXPECT_EQ(Uniform(0), StatusCode::kInvalidArgument);
  ExpectEqual(State(), Tensor::Vector<int64_t>({7, 8, 9}));
  OpTest range("StatefulUniformInt");
  Begin(&range, ElementType::kInt32, 1);
  range.Input(Tensor::Scalar(5)).Input(Tensor::Scalar(5));
  EXPECT_EQ(range.Run().code(), StatusCode::kInvalidArgument);
}

TEST(NonDeterministicInts, DifferFromRunToRunAndKernelToKernel) {
  std::vector<int64_t> seen;
  for (int kernel = 0; kernel < 2; ++kernel) {
    OpTest op("NonDeterministicInts");
    op.Input(Tensor::Vector<int32_t>({2}));
    for (int run = 0; run < 2; ++run) {
      ASSERT_EQ(op.Run(), absl::OkStatus());
      for (const int64_t x : op.output(0).unchecked_values<int64_t>()) {
        EXPECT_EQ(std::count(seen.begin(), seen.end(), x), 0);
        seen.push_back(x);
      }
    }
  }
}

}  // namespace
}  // namespace troupe::testing
