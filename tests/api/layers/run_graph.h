/// Running small graphs in tests of layers.
#ifndef TROUPE_TESTS_API_LAYERS_RUN_GRAPH_H_
#define TROUPE_TESTS_API_LAYERS_RUN_GRAPH_H_

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/variables.h"

namespace troupe {

/// A graph under construction and, once `Start` has been called, a session of it whose variables
/// have their values.
class RunGraph : public ::testing::Test {
 protected:
  void Start() {
    Node* global = GlobalVariablesInitializer(s_);
    Node* local = LocalVariablesInitializer(s_);
    ASSERT_TRUE(s_.ok()) << s_.status();
    auto session = Session::Create(s_.graph());
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = std::move(*session);
    ASSERT_EQ(session_->RunTargets({global, local}), absl::OkStatus());
  }

  Tensor Value(const Output& fetch, const FeedMap& feeds = {}) {
    auto values = session_->Run(feeds, {fetch});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[0] : Tensor::Scalar(0.0f);
  }
  float Number(const Output& fetch, const FeedMap& feeds = {}) {
    return Value(fetch, feeds).unchecked_scalar<float>();
  }
  std::vector<float> Numbers(const Output& fetch, const FeedMap& feeds = {}) {
    const Tensor value = Value(fetch, feeds);
    const auto span = value.unchecked_values<float>();
    return {span.begin(), span.end()};
  }
  Output Fed(const PartialShape& shape, ElementType type = ElementType::kFloat) {
    return ops::Placeholder(s_, type, {.shape = shape});
  }

  Scope s_ = Scope::NewRoot();
  std::unique_ptr<Session> session_;
};

inline Tensor Floats(std::vector<float> values, const Shape& shape) {
  return Tensor::FromValues<float>(values, shape).value();
}

}  // namespace troupe

#endif  // TROUPE_TESTS_API_LAYERS_RUN_GRAPH_H_
