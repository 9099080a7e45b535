/// Gradients of programs with control flow against central differences.
#ifndef TROUPE_TESTS_GRAPH_GRADIENTS_FLOW_GRADIENT_TEST_UTIL_H_
#define TROUPE_TESTS_GRAPH_GRADIENTS_FLOW_GRADIENT_TEST_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/control_flow.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "devices/status_macros.h"
#include "graph/gradients/add_gradients.h"

namespace troupe {

using Outputs = std::vector<Output>;
using Variables = absl::Span<const Output>;

class FlowGradientTest : public testing::Test {
 protected:
  /// A scalar function of placeholders of type double.
  using Function = std::function<Output(const Scope& s, const Outputs& xs)>;

  Output Placeholder(const PartialShape& shape) {
    return ops::Placeholder(s_, ElementType::kDouble, {.shape = shape});
  }
  Output D(const Scope& s, double value) { return Const(s, value); }

  /// Numbers that look random, the same every time.
  static Tensor Values(const Shape& shape, uint32_t seed) {
    std::vector<double> values(static_cast<size_t>(shape.num_elements()));
    for (double& value : values) {
      seed = seed * 1664525u + 1013904223u;
      value = (seed >> 8) / static_cast<double>(1 << 24) * 1.6 - 0.8;
    }
    return Tensor::FromValues<double>(values, shape).value();
  }

  Session& session() {
    if (session_ == nullptr) {
      auto session = Session::Create(s_.graph());
      EXPECT_TRUE(session.ok()) << session.status();
      session_ = *std::move(session);
    }
    return *session_;
  }

  std::vector<Tensor> Run(absl::Span<const Output> fetches, const FeedMap& feeds = {}) {
    EXPECT_TRUE(s_.ok()) << s_.status();
    if (!s_.ok() || fetches.empty()) return std::vector<Tensor>(fetches.size());
    RunOptions options;
    options.timeout = absl::Seconds(20);
    auto values = session().Run(feeds, fetches, {}, options);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *std::move(values) : std::vector<Tensor>(fetches.size());
  }

  std::vector<Output> Gradients(std::vector<Output> ys, std::vector<Output> xs,
                                const GradientOptions& options = {}) {
    std::vector<Output> grads(xs.size());
    EXPECT_TRUE(s_.ok()) << s_.status();
    if (!s_.ok()) return grads;
    const absl::Status status = AddSymbolicGradients(ys, xs, {}, &grads, options);
    EXPECT_TRUE(status.ok()) << status;
    return grads;
  }

  /// Checks dy/dx for every x, all at once, at a point; then, up to `order`, the derivatives of the
  /// sum of what was found by each x.
  void Check(const Function& function, const std::vector<Shape>& shapes, int order = 2,
             FeedMap more = {}) {
    Outputs xs;
    FeedMap feeds = std::move(more);
    const size_t first = feeds.size();
    for (size_t i = 0; i < shapes.size(); ++i) {
      xs.push_back(Placeholder(shapes[i]));
      feeds.emplace_back(xs.back(), Values(shapes[i], static_cast<uint32_t>(17 * i + 3)));
    }
    Output y = function(s_, xs);
    ASSERT_TRUE(s_.ok()) << s_.status();
    for (int k = 1; k <= order; ++k) {
      SCOPED_TRACE(StrCat("derivative ", k));
      const Outputs grads = Gradients({y}, xs);
      Outputs connected;
      for (size_t i = 0; i < xs.size(); ++i) {
        if (!grads[i].valid()) continue;
        connected.push_back(grads[i]);
      }
      const std::vector<Tensor> values = Run(connected, feeds);
      size_t next = 0;
      for (size_t i = 0; i < xs.size(); ++i) {
        const Tensor got = grads[i].valid() ? values[next++] : Tensor();
        CheckOne(y, got, StrCat("x ", i), feeds, first + i);
      }
      if (testing::Test::HasFailure() || k == order) return;
      Output sum;
      for (const Output& grad : connected) {
        // Of squares, so that what is linear does not vanish.
        Output part = ops::Sum(s_, ops::Square(s_, grad), AllAxes(grad));
        sum = sum.valid() ? ops::Add(s_, sum, part) : part;
      }
      if (!sum.valid()) return;
      y = sum;
    }
  }

 private:
  Output AllAxes(Output x) { return ops::Range(s_, 0, ops::Rank(s_, x), 1); }

  void CheckOne(Output y, const Tensor& got, const std::string& what, const FeedMap& feeds,
                size_t at) {
    const Tensor x = feeds[at].second;
    if (got.valid()) {
      ASSERT_EQ(got.shape(), x.shape()) << what;
    }
    for (int64_t k = 0; k < x.num_elements(); ++k) {
      const double h = 1e-5;
      double sides[2];
      for (int side = 0; side < 2; ++side) {
        std::vector<double> moved(x.unchecked_data<double>(),
                                  x.unchecked_data<double>() + x.num_elements());
        moved[static_cast<size_t>(k)] += side == 0 ? -h : h;
        FeedMap changed = feeds;
        changed[at].second = Tensor::FromValues<double>(moved, x.shape()).value();
        const std::vector<Tensor> value = Run({y}, changed);
        ASSERT_TRUE(value[0].valid());
        sides[side] = value[0].unchecked_scalar<double>();
      }
      const double want = (sides[1] - sides[0]) / (2 * h);
      const double is = got.valid() ? got.unchecked_data<double>()[k] : 0;
      EXPECT_NEAR(is, want, 1e-6 + 1e-5 * std::abs(want)) << what << "[" << k << "]";
    }
  }

 protected:
  /// How many nodes of an op there are.
  int Count(const std::string& op) const {
    int count = 0;
    for (const Node* node : s_.graph()->nodes()) count += node->op() == op;
    return count;
  }
  Scope s_ = Scope::NewRoot();

 private:
  std::unique_ptr<Session> session_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_GRAPH_GRADIENTS_FLOW_GRADIENT_TEST_UTIL_H_
