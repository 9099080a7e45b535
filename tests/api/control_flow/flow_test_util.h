/// Running graphs with control flow in tests.
#ifndef TROUPE_TESTS_API_CONTROL_FLOW_FLOW_TEST_UTIL_H_
#define TROUPE_TESTS_API_CONTROL_FLOW_FLOW_TEST_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/control_flow.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"

namespace troupe {

using Outputs = std::vector<Output>;
using Variables = absl::Span<const Output>;

/// A graph under construction, run with and without optimisation.
class FlowTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Session> NewSession(int threads = 2) {
    SessionOptions options;
    options.threads = threads;
    options.optimize = GetParam();
    EXPECT_TRUE(s_.ok()) << s_.status();
    auto session = Session::Create(s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  /// The fetched tensors; none after an error, which fails the test.
  std::vector<Tensor> Run(absl::Span<const Output> fetches, const FeedMap& feeds = {}) {
    EXPECT_TRUE(s_.ok()) << s_.status();
    if (!s_.ok()) return {};
    auto values = NewSession()->Run(feeds, fetches);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *std::move(values) : std::vector<Tensor>(fetches.size());
  }
  template <typename T>
  T Scalar(const Output& fetch, const FeedMap& feeds = {}) {
    const std::vector<Tensor> values = Run({fetch}, feeds);
    return values.empty() || !values[0].valid() ? T{} : values[0].unchecked_scalar<T>();
  }
  template <typename T>
  std::vector<T> Vector(const Output& fetch, const FeedMap& feeds = {}) {
    const std::vector<Tensor> values = Run({fetch}, feeds);
    if (values.empty() || !values[0].valid()) return {};
    const T* data = values[0].unchecked_data<T>();
    return std::vector<T>(data, data + values[0].num_elements());
  }

  Output Placeholder(ElementType type = ElementType::kFloat,
                     PartialShape shape = PartialShape({})) {
    return ops::Placeholder(s_, type, {.shape = shape});
  }
  Output Int(int32_t value) { return Const(s_, value); }

  /// Counts from 0 to `limit`, adding what `term` gives.
  Output Sum(const Scope& scope, const Input& limit,
             const std::function<Output(const Scope&, Output i)>& term) {
    const Output n = limit.ToOutput(scope);
    const Outputs end = WhileLoop(
        scope, {0, 0}, [&](const Scope& s, Variables v) { return ops::Less(s, v[0], n); },
        [&](const Scope& s, Variables v) {
          return Outputs{ops::Add(s, v[0], 1), ops::Add(s, v[1], term(s, v[0]))};
        });
    return end.empty() ? Output() : end[1];
  }

  void ExpectError(const std::string& says,
                   absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    EXPECT_EQ(s_.status().code(), code) << s_.status();
    EXPECT_THAT(std::string(s_.status().message()), testing::HasSubstr(says));
  }

  Scope s_ = Scope::NewRoot();
};

}  // namespace troupe

#endif  // TROUPE_TESTS_API_CONTROL_FLOW_FLOW_TEST_UTIL_H_
