// Gradients of CumulativeLogsumexp and CheckNumericsV2.
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

double LowestOf(ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return -65504;
    case ElementType::kBfloat16:
      return -3.3895313892515355e38;
    case ElementType::kFloat:
      return static_cast<double>(std::numeric_limits<float>::lowest());
    default:
      return std::numeric_limits<double>::lowest();
  }
}

/// dx = exp(x) sum(dy exp(-y)), the sum being that of the elements that x is part of. It is
/// computed by logarithms, those of the positive and of the negative dy apart, for exp(-y) may be
/// too large.
void CumulativeLogsumexpGrad(GradientContext& g) {
  const Output x = g.input(0), axis = g.input(1), y = g.output(0), dy = g.grad();
  const bool reverse = g.node()->attrs().GetOr<bool>("reverse", false);
  const Output zero = g.ScalarOfType(dy.type(), 0);
  const Output lowest = g.ScalarOfType(dy.type(), LowestOf(dy.type()));
  const auto part = [&](Output grad) {
    const Output log = Select(g, g.Op("Greater", {grad, zero}), g.Op("Log", {grad}), lowest);
    const Output sums = g.Op("CumulativeLogsumexp", {Sub(g, log, y), axis}, [&](NodeSpec& spec) {
      CopyAttrs(g.node(), {"exclusive"}, spec);
      spec.Attr("reverse", !reverse);
    });
    return g.Op("Exp", {Add(g, sums, x)});
  };
  g.set(0, Sub(g, part(dy), part(Neg(g, dy))));
}
REGISTER_GRADIENT("CumulativeLogsumexp", CumulativeLogsumexpGrad);

void CheckNumericsV2Grad(GradientContext& g) {
  const auto message = g.node()->attrs().GetOr<std::string>("message", "");
  g.set(0, g.Op("CheckNumericsV2", {g.grad()}, [&](NodeSpec& spec) {
    spec.Attr("message", absl::StrCat("the gradient is infinite or not a number. ", message));
  }));
}
REGISTER_GRADIENT("CheckNumericsV2", CheckNumericsV2Grad);

REGISTER_NO_GRADIENT("Timestamp");

}  // namespace
}  // namespace troupe::gradients
