// Optimizers' updates against the formulas in double precision.
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/state/fake_variable.h"

namespace troupe::testing {
namespace {

struct Tolerance {
  ElementType type;
  double rtol;
};
const Tolerance kTypes[] = {{ElementType::kFloat, 1e-5},
                            {ElementType::kDouble, 1e-12},
                            {ElementType::kHalf, 2e-2},
                            {ElementType::kBfloat16, 1e-1},
                            {ElementType::kComplex64, 1e-5}};

Tensor ScalarOf(ElementType type, double value) { return MakeTensor(type, Shape(), {value}); }

void ExpectValues(const Tensor& got, const std::vector<double>& want, double rtol) {
  ExpectNear(got, MakeTensor(got.type(), got.shape(), want), rtol, rtol);
}

class Apply : public ::testing::TestWithParam<Tolerance> {
 protected:
  static constexpr int kSize = 37;
  RefPtr<FakeVariable> Make(const char* name, double low, double high, uint32_t seed,
                            std::vector<double>* values) {
    // Real numbers, rounded to the type.
    const Tensor random = RandomTensor(ElementType::kDouble, Shape({kSize}), low, high, seed);
    Tensor tensor = MakeTensor(GetParam().type, random.shape(), random.unchecked_values<double>());
    for (int i = 0; i < kSize; ++i) values->push_back(At(tensor, i));
    return MakeRef<FakeVariable>(name, std::move(tensor));
  }
  Tensor Scalar(double value) { return ScalarOf(GetParam().type, value); }
};

TEST_P(Apply, GradientDescent) {
  std::vector<double> var, grad;
  auto v = Make("v", -1, 1, 1, &var);
  auto g = Make("g", -1, 1, 2, &grad);
  OpTest op("ApplyGradientDescent");
  op.InputRef(v.get()).Input(Scalar(0.5)).Input(g->value());
  ASSERT_TRUE(op.Run().ok());
  for (int i = 0; i < kSize; ++i) var[i] -= 0.5 * grad[i];
  ExpectValues(v->value(), var, GetParam().rtol);
}

TEST_P(Apply, Momentum) {
  for (const bool nesterov : {false, true}) {
    std::vector<double> var, accum, grad;
    auto v = Make("v", -1, 1, 1, &var), a = Make("a", -1, 1, 2, &accum);
    auto g = Make("g", -1, 1, 3, &grad);
    OpTest op("ApplyMomentum", /*threads=*/2);
    op.Attr("use_nesterov", nesterov).InputRef(v.get()).InputRef(a.get()).Input(Scalar(0.5));
    op.Input(g->value()).Input(Scalar(0.75));
    ASSERT_TRUE(op.Run().ok());
    for (int i = 0; i < kSize; ++i) {
      accum[i] = accum[i] * 0.75 + grad[i];
      var[i] -= nesterov ? grad[i] * 0.5 + accum[i] * 0.75 * 0.5 : accum[i] * 0.5;
    }
    ExpectValues(v->value(), var, GetParam().rtol);
    ExpectValues(a->value(), accum, GetParam().rtol);
  }
}

TEST_P(Apply, Adam) {
  for (const bool nesterov : {false, true}) {
    std::vector<double> var, m, v, grad;
    auto var_ = Make("var", -1, 1, 1, &var), m_ = Make("m", -1, 1, 2, &m);
    auto v_ = Make("v", 0.5, 1, 3, &v), g_ = Make("g", -1, 1, 4, &grad);
    OpTest op("ApplyAdam");
    op.Attr("use_nesterov", nesterov);
    op.InputRef(var_.get()).InputRef(m_.get()).InputRef(v_.get());
    op.Input(Scalar(0.5)).Input(Scalar(0.75)).Input(Scalar(0.125)).Input(Scalar(0.5));
    op.Input(Scalar(0.75)).Input(Scalar(0.25)).Input(g_->value());
    ASSERT_TRUE(op.Run().ok());
    const double alpha = 0.125 * std::sqrt(1 - 0.75) / (1 - 0.5);
    for (int i = 0; i < kSize; ++i) {
      m[i] += (grad[i] - m[i]) * 0.5;
      v[i] += (grad[i] * grad[i] - v[i]) * 0.25;
      const double step = nesterov ? grad[i] * 0.5 + 0.5 * m[i] : m[i];
      var[i] -= step * alpha / (std::sqrt(v[i]) + 0.25);
    }
    ExpectValues(var_->value(), var, GetParam().rtol);
    ExpectValues(m_->value(), m, GetParam().rtol);
    ExpectValues(v_->value(), v, GetParam().rtol);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Apply, ::testing::ValuesIn(kTypes),
                         [](const auto& info) { return ElementTypeName(info.param.type); });

TEST(ApplyErrors, ShapesScalarsAndMissingValues) {
  auto v = MakeRef<FakeVariable>("weights", Tensor::Vector<float>({1, 2}));
  auto empty = MakeRef<FakeVariable>("slot", ElementType::kFloat);
  OpTest shape("ApplyGradientDescent");
  shape.InputRef(v.get()).Input(Tensor::Scalar(1.0f)).Input(Tensor::Vector<float>({1, 2, 3}));
  EXPECT_EQ(shape.Run().code(), absl::StatusCode::kInvalidArgument);
  OpTest scalar("ApplyGradientDescent");
  scalar.InputRef(v.get()).Input(Tensor::Vector<float>({1})).Input(Tensor::Vector<float>({1, 2}));
  EXPECT_EQ(scalar.Run().code(), absl::StatusCode::kInvalidArgument);
  OpTest missing("ApplyMomentum");
  missing.InputRef(v.get()).InputRef(empty.get()).Input(Tensor::Scalar(1.0f));
  missing.Input(Tensor::Vector<float>({1, 2})).Input(Tensor::Scalar(1.0f));
  const absl::Status status = missing.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("slot"), std::string::npos) << status;
}

}  // namespace
}  // namespace troupe::testing
