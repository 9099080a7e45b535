// Distributions with parameters. The expected numbers are TensorFlow's (2.21, CPU, one thread).
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor Seed() { return Tensor::Vector<int64_t>({12345, -67}); }
Tensor Ints(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }
Tensor Vec(ElementType type, std::initializer_list<double> values) {
  return MakeTensor(type, Shape({static_cast<int64_t>(values.size())}), values);
}
OpTest& Seeded(OpTest& op) { return op.Attr("seed", int64_t{12345}).Attr("seed2", int64_t{-67}); }

TEST(RandomGamma, GivesTensorFlowsNumbers) {
  const auto draw = [](ElementType type) {
    OpTest op("StatelessRandomGammaV2");
    op.Input(Ints({3, 3})).Input(Seed()).Input(Vec(type, {0.5, 1, 4}));
    EXPECT_EQ(op.Run(), absl::OkStatus());
    return op.output(0);
  };
  const std::vector<double> want = {0.02651537563683209,  0.4494573367287117,  2.502161306453048,
                                    0.033745155357959425, 0.6753092616862957,  5.805586159275155,
                                    0.007716448629684579, 0.24580489377299106, 3.7321361954028913};
  ExpectNear(draw(ElementType::kDouble), MakeTensor(ElementType::kDouble, Shape({3, 3}), want),
             1e-12);
  ExpectNear(draw(ElementType::kHalf), MakeTensor(ElementType::kHalf, Shape({3, 3}), want), 2e-3);
  OpTest op("RandomGamma");
  Seeded(op).Input(Ints({2})).Input(Vec(ElementType::kFloat, {0.5, 3}));
  for (const std::vector<double>& each :
       {std::vector<double>{0.5353434681892395, 3.467226505279541, 0.4883796274662018,
                            7.863772869110107},
        std::vector<double>{0.012076110579073429, 5.035655498504639, 0.10502631962299347,
                            1.8314061164855957}}) {
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ExpectNear(op.output(0), MakeTensor(ElementType::kFloat, Shape({2, 2}), each), 1e-6);
  }
}

TEST(RandomGamma, AnyParameterComesToAnEnd) {
  OpTest op("RandomGamma");
  Seeded(op)
      .Input(Ints({50}))
      .Input(Vec(ElementType::kDouble, {0, -0.5, -2.0 / 3, -5, kInf, -kInf, kNan, 1e-300, 1e300}));
  EXPECT_EQ(op.Run(), absl::OkStatus());
}

TEST(RandomGammaGrad, GivesTensorFlowsDerivatives) {
  OpTest op("RandomGammaGrad");
  op.Input(Vec(ElementType::kDouble, {0.5, 1, 4, 20}));
  op.Input(Vec(ElementType::kDouble, {0.2, 1.5, 3, 25}));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectNear(op.output(0),
             Vec(ElementType::kDouble,
                 {0.7940505663308433, 1.4309374423012804, 0.8995215859245937, 1.1250501465778577}),
             1e-8);
}

TEST(RandomPoisson, GivesTensorFlowsNumbers) {
  for (const ElementType rate : {ElementType::kFloat, ElementType::kInt32}) {
    OpTest op("StatelessRandomPoisson");
    op.Attr("dtype", ElementType::kInt32).Input(Ints({4, 2})).Input(Seed());
    op.Input(Vec(rate, {3, 40}));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ExpectEqual(op.output(0),
                MakeTensor(ElementType::kInt32, Shape({4, 2}), {3, 40, 2, 34, 2, 38, 1, 52}));
  }
  OpTest op("RandomPoissonV2");
  Seeded(op).Attr("dtype", ElementType::kInt32).Input(Ints({3}));
  op.Input(Vec(ElementType::kFloat, {2, 30}));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectEqual(op.output(0), MakeTensor(ElementType::kInt32, Shape({3, 2}), {2, 35, 6, 19, 4, 31}));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectEqual(op.output(0), MakeTensor(ElementType::kInt32, Shape({3, 2}), {0, 22, 3, 25, 3, 42}));
}

TEST(RandomPoisson, RefusesRatesThatTheTypeDoesNotHold) {
  const auto run = [](double rate, ElementType type) {
    OpTest op("RandomPoissonV2");
    Seeded(op).Attr("dtype", type).Input(Ints({100}));
    op.Input(Vec(ElementType::kDouble, {rate}));
    return op.Run().code();
  };
  for (const double rate : {-1.0, kInf, kNan}) {
    EXPECT_EQ(run(rate, ElementType::kDouble), StatusCode::kInvalidArgument) << rate;
  }
  EXPECT_EQ(run(1e10, ElementType::kInt32), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(1e5, ElementType::kHalf), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(2147483647, ElementType::kInt32), StatusCode::kOk);
  EXPECT_EQ(run(65504, ElementType::kHalf), StatusCode::kOk);
  EXPECT_EQ(run(9e18, ElementType::kInt64), StatusCode::kOk);
  EXPECT_EQ(run(1e308, ElementType::kDouble), StatusCode::kOk);
}

TEST(RandomBinomial, GivesTensorFlowsNumbers) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kDouble}) {
    OpTest op("StatelessRandomBinomial");
    op.Attr("dtype", ElementType::kInt32).Input(Ints({2, 4})).Input(Seed());
    op.Input(Vec(type, {5, 100, 100, 20})).Input(Vec(type, {0.3, 0.4, 0.9, 0.95}));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    // The method is chosen in the type of the parameters: 100 * (1 - 0.9f) is no 10.
    const int third = type == ElementType::kFloat ? 90 : 94;
    ExpectEqual(op.output(0), MakeTensor(ElementType::kInt32, Shape({2, 4}),
                                         {1, 35, static_cast<double>(third), 18, 0, 38,
                                          static_cast<double>(third), 19}));
  }
}

TEST(RandomBinomial, EdgesAndBadParameters) {
  const auto run = [](double count, double p) {
    OpTest op("StatelessRandomBinomial");
    op.Attr("dtype", ElementType::kDouble).Input(Ints({2})).Input(Seed());
    op.Input(Tensor::Scalar(count)).Input(Tensor::Scalar(p));
    const absl::Status status = op.Run();
    return status.ok() ? At(op.output(0), 1)
                       : (status.code() == StatusCode::kInvalidArgument ? -1 : -2);
  };
  EXPECT_EQ(run(10, 0), 0);
  EXPECT_EQ(run(10, 1), 10);
  EXPECT_EQ(run(-3, 0.5), 0);
  EXPECT_EQ(run(-3, 1), 0);
  EXPECT_GT(run(1e300, 0.5), 4e299);
  for (const double p : {-0.1, 1.1, kNan, kInf}) EXPECT_EQ(run(10, p), -1) << p;
  for (const double count : {kInf, -kInf, kNan}) EXPECT_EQ(run(count, 0.5), -1) << count;
}

TEST(ParameterizedTruncatedNormal, GivesTensorFlowsNumbers) {
  // One column for each method: normal, uniform, exponential.
  const struct {
    ElementType type;
    std::initializer_list<double> want;
    double tolerance;
  } cases[] = {{ElementType::kFloat,
                {-0.05434608459472656, 1.0066766738891602, 3.782543420791626, -0.2709505558013916,
                 5.099081516265869, 1.849031686782837, 1.1104074716567993, 3.300290584564209,
                 0.755861222743988, 5.125328540802002},
                1e-5},
               {ElementType::kDouble,
                {2.464146782872113, 0.9534140143737337, 3.6474102611331074, 0.7957717511890945,
                 5.108472830241698, -1.4454178162476712, 1.0143062204237725, 3.0338282078623826,
                 0.4453191377999398, 5.076913404250576},
                1e-12},
               {ElementType::kHalf,
                {-0.0546875, 0.8955078125, 3.2578125, -0.2705078125, 5.07421875, 1.849609375,
                 1.158203125, 3.134765625, 0.755859375, 5.078125},
                2e-3}};
  for (const auto& c : cases) {
    SCOPED_TRACE(ElementTypeName(c.type));
    OpTest op("StatelessParameterizedTruncatedNormal");
    op.Input(Ints({2, 5})).Input(Seed()).Input(MakeTensor(c.type, {}, {1}));
    op.Input(Vec(c.type, {2, 0.5, 1, 1, 1})).Input(Vec(c.type, {-4, 0.8, 3, -1, 5}));
    op.Input(Vec(c.type, {6, 1.3, 1e4, 1.5, 5.2}));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ExpectNear(op.output(0), MakeTensor(c.type, Shape({2, 5}), c.want), c.tolerance, c.tolerance);
  }
  OpTest op("ParameterizedTruncatedNormal");
  Seeded(op).Input(Ints({4}));
  for (const float parameter : {0.0f, 1.0f, -0.5f, 3.0f}) op.Input(Tensor::Scalar(parameter));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectNear(op.output(0), Tensor::Vector<float>({0.06822969764471054f, -0.2911366820335388f,
                                                  0.9649587273597717f, -0.47309407591819763f}));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectNear(op.output(0), Tensor::Vector<float>({1.7120037078857422f, 0.933597207069397f,
                                                  1.8450243473052979f, -0.35151568055152893f}));
}

TEST(ParameterizedTruncatedNormal, BadParameters) {
  const auto run = [](double mean, double deviation, double low, double high) {
    OpTest op("ParameterizedTruncatedNormal");
    Seeded(op).Input(Ints({3}));
    for (const double parameter : {mean, deviation, low, high}) op.Input(Tensor::Scalar(parameter));
    return op.Run().code();
  };
  EXPECT_EQ(run(0, 1, -1, kInf), StatusCode::kOk);
  EXPECT_EQ(run(0, 0, -1, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(0, 1, 1, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(0, 1, -kInf, kInf), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(0, kNan, -1, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(kNan, 1, -1, 1), StatusCode::kInternal);
  OpTest rows("ParameterizedTruncatedNormal");
  rows.Input(Ints({3, 2})).Input(Tensor::Vector<float>({1, 2}));
  for (const float parameter : {1.0f, -0.5f, 3.0f}) rows.Input(Tensor::Scalar(parameter));
  EXPECT_EQ(rows.Run().code(), StatusCode::kInvalidArgument);
  OpTest no_shape("ParameterizedTruncatedNormal");
  no_shape.Input(Ints({}));
  for (const float parameter : {0.0f, 1.0f, -0.5f, 3.0f}) no_shape.Input(Tensor::Scalar(parameter));
  EXPECT_EQ(no_shape.Run().code(), StatusCode::kInvalidArgument);
}

TEST(Distributions, TheSameOnAnyNumberOfThreads) {
  for (const char* name : {"RandomGamma", "RandomPoissonV2"}) {
    std::vector<Tensor> outs;
    for (const int threads : {1, 3}) {
      OpTest op(name, threads);
      Seeded(op).Input(Ints({5001})).Input(Vec(ElementType::kDouble, {0.5, 12, 3}));
      ASSERT_EQ(op.Run(), absl::OkStatus());
      outs.push_back(op.output(0));
    }
    ExpectEqual(outs[0], outs[1]);
  }
}

TEST(Distributions, TheShapeEndsWithThatOfTheParameters) {
  for (const char* name : {"StatelessRandomGammaV2", "StatelessRandomPoisson"}) {
    OpTest op(name);
    if (name[15] == 'P') op.Attr("dtype", ElementType::kFloat);
    op.Input(Ints({2, 3})).Input(Seed()).Input(Tensor::Vector<float>({1, 2}));
    EXPECT_EQ(op.Run().code(), StatusCode::kInvalidArgument) << name;
  }
}

}  // namespace
}  // namespace troupe::testing
