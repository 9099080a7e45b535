// Gradients of batch normalisation, and of that gradient.
#include "graph/gradients/add_gradients.h"
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

/// Where the channels are, and which axes statistics are taken over.
struct Layout {
  bool channels_first;
  int rank;
  std::vector<int32_t> axes;

  explicit Layout(const Node* node) {
    const std::string format = node->attrs().GetOr<std::string>("data_format", "NHWC");
    rank = static_cast<int>(format.size());
    channels_first = format.size() > 1 && format[1] == 'C';
    for (int i = 0; i < rank; ++i) {
      if (i != (channels_first ? 1 : rank - 1)) axes.push_back(i);
    }
  }
  std::vector<int64_t> ToChannelsLast() const {
    std::vector<int64_t> order = {0};
    for (int i = 2; i < rank; ++i) order.push_back(i);
    order.push_back(1);
    return order;
  }
  std::vector<int64_t> ToChannelsFirst() const {
    std::vector<int64_t> order = {0, rank - 1};
    for (int i = 1; i < rank - 1; ++i) order.push_back(i);
    return order;
  }
};

void BatchNormGrad(GradientContext& g, std::string_view grad_op, bool third_reserve) {
  const Layout layout(g.node());
  const bool training = g.node()->attrs().GetOr<bool>("is_training", true);
  // Statistics that were given, not computed, are used channels last only.
  const bool rearrange = !training && layout.channels_first;
  Output x = g.input(0), grad = g.GradOrZeros(0);
  if (rearrange) {
    x = Transpose(g, x, layout.ToChannelsLast());
    grad = Transpose(g, grad, layout.ToChannelsLast());
  }
  std::vector<Output> inputs = {grad, x, g.input(1), training ? g.output(3) : g.input(3),
                                training ? g.output(4) : g.input(4)};
  if (third_reserve) inputs.push_back(g.output(5));
  Node* node = g.Add(grad_op, inputs, [&](NodeSpec& spec) {
    CopyAttrs(g.node(), {"epsilon", "is_training"}, spec);
    if (rearrange) {
      spec.Attr("data_format", layout.rank == 5 ? "NDHWC" : "NHWC");
    } else {
      CopyAttrs(g.node(), {"data_format"}, spec);
    }
  });
  Output dx(node, 0);
  if (rearrange && g.wanted(0)) dx = Transpose(g, dx, layout.ToChannelsFirst());
  g.set(0, dx);
  g.set(1, Output(node, 1));
  g.set(2, Output(node, 2));
}
void FusedBatchNormGrad(GradientContext& g) { BatchNormGrad(g, "FusedBatchNormGrad", false); }
void FusedBatchNormV3Grad(GradientContext& g) { BatchNormGrad(g, "FusedBatchNormGradV3", true); }
REGISTER_GRADIENT("FusedBatchNorm", FusedBatchNormGrad);
void FusedBatchNormV2Grad(GradientContext& g) { BatchNormGrad(g, "FusedBatchNormGradV2", false); }
REGISTER_GRADIENT("FusedBatchNormV2", FusedBatchNormV2Grad);
REGISTER_GRADIENT("FusedBatchNormV3", FusedBatchNormV3Grad);

void BatchNormWithGlobalNormalizationGrad(GradientContext& g) {
  Node* node =
      g.Add("BatchNormWithGlobalNormalizationGrad",
            {g.input(0), g.input(1), g.input(2), g.input(4), g.grad()}, [&](NodeSpec& spec) {
              CopyAttrs(g.node(), {"variance_epsilon", "scale_after_normalization"}, spec);
            });
  for (int i = 0; i < 5; ++i) g.set(i, Output(node, i));
}
REGISTER_GRADIENT("BatchNormWithGlobalNormalization", BatchNormWithGlobalNormalizationGrad);

Output Mean(GradientContext& g, Output x, Output axes) {
  return g.Op("Mean", {x, axes}, [](NodeSpec& spec) { spec.Attr("keep_dims", true); });
}

/// The gradient op written in simple ops: dx, dscale, doffset.
struct PlainGradient {
  Output dx, dscale, doffset;
};
PlainGradient WritePlainly(GradientContext& g, const Layout& layout, Output dy, Output x,
                           Output scale) {
  const bool training = g.node()->attrs().GetOr<bool>("is_training", true);
  const float epsilon = g.node()->attrs().GetOr<float>("epsilon", 1e-4f);
  const ElementType x_type = x.type();
  // Half precision would be too coarse for sums.
  dy = Cast(g, dy, ElementType::kFloat);
  x = Cast(g, x, ElementType::kFloat);
  Output axes = g.IntVector(layout.axes);
  auto per_channel = [&](Output vector) {
    if (!layout.channels_first) return vector;
    std::vector<int32_t> sizes(layout.rank, 1);
    sizes[1] = -1;
    return g.Op("Reshape", {vector, g.IntVector(sizes)});
  };
  scale = per_channel(scale);
  Output epsilon_scalar = g.Scalar<float>(epsilon);
  PlainGradient plain;
  plain.doffset = Sum(g, dy, axes, false);
  if (training) {
    Output mean = Mean(g, x, axes);
    Output centered = Sub(g, x, mean);
    Output difference = g.Op("SquaredDifference", {x, g.Op("StopGradient", {mean})});
    Output variance = Add(g, Mean(g, difference, axes), epsilon_scalar);
    Output deviation = g.Op("Rsqrt", {variance});
    Output product = Mul(g, dy, centered);
    Output slope = Mul(g, g.Op("Reciprocal", {variance}), Mean(g, product, axes));
    Output rest = Sub(g, Sub(g, dy, Mean(g, dy, axes)), Mul(g, slope, centered));
    plain.dx = Mul(g, Mul(g, scale, deviation), rest);
    plain.dscale = Mul(g, deviation, Sum(g, product, axes, true));
    plain.dscale = g.Op("Reshape", {plain.dscale, g.IntVector({-1})});
  } else {
    Output deviation = g.Op("Rsqrt", {Add(g, per_channel(g.input(4)), epsilon_scalar)});
    Output centered = Sub(g, x, per_channel(g.input(3)));
    plain.dx = Mul(g, Mul(g, dy, scale), deviation);
    plain.dscale = Sum(g, Mul(g, Mul(g, dy, centered), deviation), axes, false);
  }
  plain.dx = Cast(g, plain.dx, x_type);
  return plain;
}

// f(dy, x, scale, ...): written out in simple ops, which are then differentiated.
void BatchNormGradGrad(GradientContext& g) {
  const Layout layout(g.node());
  // Identities cut the inputs off from whatever else they depend on (dy may depend on x).
  std::vector<Output> xs;
  for (int i = 0; i < 3; ++i) xs.push_back(g.Op("Identity", {g.input(i)}));
  PlainGradient plain = WritePlainly(g, layout, xs[0], xs[1], xs[2]);
  if (!g.status().ok()) return;
  std::vector<Output> ys, grad_ys, grads;
  const Output outputs[] = {plain.dx, plain.dscale, plain.doffset};
  for (int i = 0; i < 3; ++i) {
    if (!g.grad(i).valid()) continue;
    ys.push_back(outputs[i]);
    grad_ys.push_back(g.grad(i));
  }
  absl::Status status = AddSymbolicGradients(ys, xs, grad_ys, &grads, g.prefix() + "/plain");
  if (!status.ok()) return g.Fail(status);
  // All three are connected, as in TensorFlow: in inference dx does not depend on x.
  for (int i = 0; i < 3; ++i) {
    g.set(i, grads[i].valid() ? grads[i] : g.ZerosLike(g.input(i)));
  }
}
REGISTER_GRADIENT("FusedBatchNormGrad", BatchNormGradGrad);
REGISTER_GRADIENT("FusedBatchNormGradV2", BatchNormGradGrad);
REGISTER_GRADIENT("FusedBatchNormGradV3", BatchNormGradGrad);

}  // namespace
}  // namespace troupe::gradients
