// Gradients of random numbers: with the distribution function F of a number z that was drawn, those
// for a parameter p are -(dF/dp) / (dF/dz), here by central differences.
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/session.h"
#include "tests/graph/gradients/gradient_test_util.h"

namespace troupe {
namespace {

Output Doubles(TestGraph& g, std::initializer_list<double> values) {
  return g.Const(Tensor::Vector<double>(values));
}
Output Ints(TestGraph& g, std::initializer_list<int32_t> values) {
  return g.Const(Tensor::Vector<int32_t>(values));
}
Output Seed(TestGraph& g) { return g.Const(Tensor::Vector<int64_t>({5, 6})); }

std::vector<Tensor> Values(TestGraph& g, const std::vector<Output>& fetches) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  auto session = Session::Create(g.shared_graph());
  if (!session.ok()) {
    ADD_FAILURE() << session.status();
    return {};
  }
  auto values = (*session)->Run(FeedMap{}, fetches);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<Tensor>();
}

double Slope(const std::function<double(double)>& f, double x) {
  const double step = 1e-5 * std::max(1.0, std::abs(x));
  return (f(x + step) - f(x - step)) / (2 * step);
}

TEST(RandomGradients, OfGammaForAlpha) {
  const std::vector<double> alphas = {0.5, 2, 7};
  const auto check = [&](const std::function<Output(TestGraph&, Output alpha)>& draw) {
    TestGraph g;
    const Output alpha = Doubles(g, {0.5, 2, 7});
    const Output drawn = draw(g, alpha);
    const Output grad = g.Gradients({drawn}, {alpha})[0];
    const std::vector<Tensor> got = Values(g, {drawn, grad});
    ASSERT_EQ(got.size(), 2u);
    ASSERT_EQ(got[0].shape(), Shape({4, 3}));
    ASSERT_EQ(got[1].shape(), Shape({3}));
    for (int j = 0; j < 3; ++j) {
      double want = 0;
      for (int i = 0; i < 4; ++i) {
        const double z = got[0].unchecked_data<double>()[3 * i + j];
        want -= Slope([&](double a) { return boost::math::gamma_p(a, z); }, alphas[j]) /
                boost::math::gamma_p_derivative(alphas[j], z);
      }
      EXPECT_NEAR(got[1].unchecked_data<double>()[j], want, 1e-5 * std::abs(want)) << j;
    }
  };
  check([](TestGraph& g, Output alpha) {
    return g.Op("RandomGamma", {Ints(g, {4}), alpha},
                [](NodeSpec& spec) { spec.Attr("seed", int64_t{7}); });
  });
  check([](TestGraph& g, Output alpha) {
    return g.Op("StatelessRandomGammaV2", {Ints(g, {4, 3}), Seed(g), alpha});
  });
  check([](TestGraph& g, Output alpha) {
    return g.Op("StatelessRandomGammaV3",
                {Ints(g, {4, 3}), g.Const(Tensor::Vector<uint64_t>({5})),
                 g.Const(Tensor::Vector<uint64_t>({6, 7})), g.Scalar<int32_t>(1), alpha});
  });
}

TEST(RandomGradients, OfStatelessParameterizedTruncatedNormalForItsParameters) {
  constexpr double kMean = 0.5, kDeviation = 2;
  const double lows[] = {-1, 0.25}, highs[] = {3, 1};
  TestGraph g;
  const std::vector<Output> parameters = {g.Scalar(kMean), g.Scalar(kDeviation),
                                          Doubles(g, {-1, 0.25}), Doubles(g, {3, 1})};
  const Output drawn =
      g.Op("StatelessParameterizedTruncatedNormal",
           {Ints(g, {3, 2}), Seed(g), parameters[0], parameters[1], parameters[2], parameters[3]});
  std::vector<Output> fetches = g.Gradients({drawn}, parameters);
  fetches.push_back(drawn);
  const std::vector<Tensor> got = Values(g, fetches);
  ASSERT_EQ(got.size(), 5u);
  const auto normal = [](double z) {
    return 0.5 * std::erfc(-(z - kMean) / kDeviation / std::sqrt(2));
  };
  const auto share = [&](double z, double low, double high) {
    return (normal(z) - normal(low)) / (normal(high) - normal(low));
  };
  double for_deviation = 0;
  for (int j = 0; j < 2; ++j) {
    double for_low = 0, for_high = 0;
    for (int i = 0; i < 3; ++i) {
      const double z = got[4].unchecked_data<double>()[2 * i + j];
      // The bounds move along with the mean and the deviation.
      for_deviation += (z - kMean) / kDeviation;
      const double density = Slope([&](double x) { return share(x, lows[j], highs[j]); }, z);
      for_low -= Slope([&](double low) { return share(z, low, highs[j]); }, lows[j]) / density;
      for_high -= Slope([&](double high) { return share(z, lows[j], high); }, highs[j]) / density;
    }
    EXPECT_NEAR(got[2].unchecked_data<double>()[j], for_low, 1e-5);
    EXPECT_NEAR(got[3].unchecked_data<double>()[j], for_high, 1e-5);
  }
  EXPECT_NEAR(got[0].unchecked_data<double>()[0], 6, 1e-12);
  EXPECT_NEAR(got[1].unchecked_data<double>()[0], for_deviation, 1e-12);
}

}  // namespace
}  // namespace troupe
