// Where gradients are computed.
#include <gtest/gtest.h>

#include "graph/gradients/add_gradients.h"
#include "graph/graph.h"

namespace troupe {
namespace {

class GradientDevices : public testing::Test {
 protected:
  Output Add(const std::string& op, const std::string& name, const std::string& device,
             const std::vector<Output>& inputs) {
    NodeSpec spec(op, name);
    for (const Output& input : inputs) spec.Input(input);
    spec.Device(device);
    if (inputs.empty()) {
      spec.Attr("dtype", ElementType::kFloat).Attr("shape", PartialShape({3}));
    }
    absl::StatusOr<Node*> node = graph_->AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return Output(node.ok() ? *node : nullptr);
  }

  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

TEST_F(GradientDevices, AreThoseOfTheNodes) {
  const Output x = Add("Placeholder", "x", "/job:ps", {});
  const Output lower = Add("Exp", "lower", "/job:a", {x});
  const Output left = Add("Sin", "left", "/job:b", {lower});
  const Output right = Add("Tanh", "right", "/job:b", {lower});
  const Output other = Add("Sigmoid", "other", "/job:c", {x});
  const Output sum = Add("Mul", "sum", "/job:b", {left, right});
  std::vector<Gradient> grads;
  ASSERT_TRUE(AddSymbolicGradients({sum, other}, {x}, {}, &grads).ok());
  // Contributions from a and c meet at x.
  EXPECT_EQ(grads[0].values.node->op(), "AddN");
  EXPECT_EQ(grads[0].values.node->requested_device(), "/job:ps");
  int sums_at_b = 0;
  for (const Node* node : graph_->nodes()) {
    const std::string& name = node->name();
    const auto is_gradient_of = [&](const char* of) {
      return name.find(std::string("gradients/") + of + "_grad") == 0;
    };
    if (is_gradient_of("lower")) {
      EXPECT_EQ(node->requested_device(), "/job:a") << name;
    }
    for (const char* of : {"left", "right", "sum"}) {
      if (is_gradient_of(of)) {
        EXPECT_EQ(node->requested_device(), "/job:b") << name;
      }
    }
    if (is_gradient_of("other")) {
      EXPECT_EQ(node->requested_device(), "/job:c") << name;
    }
    // Those of left and right go to a as one.
    sums_at_b += node->op() == "AddN" && node->requested_device() == "/job:b";
  }
  EXPECT_EQ(sums_at_b, 1);
}

}  // namespace
}  // namespace troupe
