// Gradients of ops that copy, reshape and rearrange whole tensors.
#include "devices/status_macros.h"
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

void IdentityGrad(GradientContext& g) { g.set(0, g.gradient()); }
REGISTER_GRADIENT("EnsureShape", IdentityGrad);
REGISTER_GRADIENT("Identity", IdentityGrad);
REGISTER_GRADIENT("PlaceholderWithDefault", IdentityGrad);
// The gradient of a variable's handle is that of its value.
REGISTER_GRADIENT("ReadVariableOp", IdentityGrad);

void IdentityNGrad(GradientContext& g) {
  for (int i = 0; i < g.node()->num_inputs(); ++i) {
    if (g.wanted(i)) g.set(i, g.GradOrZeros(i));
  }
}
REGISTER_GRADIENT("IdentityN", IdentityNGrad);

void PreventGradientGrad(GradientContext& g) {
  g.Fail(absl::NotFoundError(
      StrCat("the gradient is prevented: ", g.node()->attrs().GetOr<std::string>("message", ""))));
}
REGISTER_GRADIENT("PreventGradient", PreventGradientGrad);

void CheckNumericsGrad(GradientContext& g) {
  const std::string message = g.node()->attrs().GetOr<std::string>("message", "");
  g.set(0, g.Op("CheckNumerics", {g.grad()}, [&](NodeSpec& spec) {
    spec.Attr("message", "NaN or infinity in the gradient. " + message);
  }));
}
REGISTER_GRADIENT("CheckNumerics", CheckNumericsGrad);

void ReshapeGrad(GradientContext& g) { g.set(0, ReshapeLike(g, g.grad(), g.input(0))); }
REGISTER_GRADIENT("ExpandDims", ReshapeGrad);
REGISTER_GRADIENT("Reshape", ReshapeGrad);
REGISTER_GRADIENT("Squeeze", ReshapeGrad);

void TransposeGrad(GradientContext& g) {
  std::optional<std::vector<int64_t>> permutation = ConstantInts(g, g.input(1));
  if (!permutation) {
    g.set(0, g.Op("Transpose", {g.grad(), g.Op("InvertPermutation", {g.input(1)})}));
    return;
  }
  const int64_t rank = static_cast<int64_t>(permutation->size());
  std::vector<int64_t> inverse(rank);
  for (int64_t i = 0; i < rank; ++i) {
    int64_t& axis = (*permutation)[i];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
      return g.Fail(
          InvalidArgument("the permutation has axis ", axis, ", expected less than ", rank));
    }
    inverse[axis] = i;
  }
  g.set(0, Transpose(g, g.grad(), inverse));
}
REGISTER_GRADIENT("Transpose", TransposeGrad);

void BroadcastToGrad(GradientContext& g) {
  Sizes target = Sizes::OfShape(g, g.output(0));
  if (!target.count_known()) target = Sizes::OfTensor(g, g.input(1));
  Unbroadcast unbroadcast(g, Sizes::OfShape(g, g.input(0)), target);
  g.set(0, unbroadcast.Reduce(0, g.grad()));
}
REGISTER_GRADIENT("BroadcastTo", BroadcastToGrad);

void FillGrad(GradientContext& g) {
  if (!g.wanted(1)) return;
  const PartialShape& shape = g.grad().shape();
  Output axes;
  if (!shape.unknown_rank()) {
    if (shape.rank() == 0) {
      g.set(1, g.grad());
      return;
    }
    std::vector<int32_t> all;
    for (int i = 0; i < shape.rank(); ++i) all.push_back(i);
    axes = g.IntVector(all);
  } else {
    axes = Numbers(g, g.Op("Rank", {g.grad()}));
  }
  g.set(1, Sum(g, g.grad(), axes, false));
}
REGISTER_GRADIENT("Fill", FillGrad);

void TileGrad(GradientContext& g) {
  // Every axis becomes two, of which the first, that of the copies, is summed over.
  Sizes input = Sizes::OfShape(g, g.input(0));
  Sizes multiples = Sizes::OfTensor(g, g.input(1));
  if (input.count_known() && multiples.known() && multiples.count() == input.count()) {
    std::vector<int64_t> split;
    std::vector<int32_t> axes;
    int unknown = 0;
    bool zero = false;
    for (int i = 0; i < input.count(); ++i) {
      if (multiples.at(i) != 1) {
        axes.push_back(static_cast<int32_t>(split.size()));
        split.push_back(multiples.at(i));
      }
      split.push_back(input.at(i));
      unknown += input.at(i) < 0;
      zero |= input.at(i) == 0 || multiples.at(i) == 0;
    }
    if (axes.empty()) {
      g.set(0, g.grad());
      return;
    }
    if (unknown == 0 || (unknown == 1 && !zero)) {
      std::vector<int32_t> sizes(split.begin(), split.end());
      Output copies = g.Op("Reshape", {g.grad(), g.IntVector(sizes)});
      g.set(0, Sum(g, copies, g.IntVector(axes), false));
      return;
    }
  }
  Output pairs = Pack(g, {multiples.Vector(), input.Vector()}, 1);
  Output split = g.Op("Reshape", {pairs, g.IntVector({-1})});
  Output axes = g.Op("Range", {g.Scalar<int32_t>(0), g.Op("Size", {split}), g.Scalar<int32_t>(2)});
  g.set(0, Sum(g, g.Op("Reshape", {g.grad(), split}), axes, false));
}
REGISTER_GRADIENT("Tile", TileGrad);

void ReverseV2Grad(GradientContext& g) { g.set(0, g.Op("ReverseV2", {g.grad(), g.input(1)})); }
REGISTER_GRADIENT("ReverseV2", ReverseV2Grad);

void PackGrad(GradientContext& g) {
  const int count = g.node()->num_inputs();
  Node* parts = g.Add("Unpack", {g.grad()}, [&](NodeSpec& spec) {
    spec.Attr("num", count);
    CopyAttrs(g.node(), {"axis"}, spec);
  });
  for (int i = 0; i < count; ++i) g.set(i, Output(parts, i));
}
REGISTER_GRADIENT("Pack", PackGrad);

/// The gradients of all outputs, zeros where there is none.
std::vector<Output> AllGrads(GradientContext& g) {
  std::vector<Output> grads;
  for (int i = 0; i < g.node()->num_outputs(); ++i) grads.push_back(g.GradOrZeros(i));
  return grads;
}

void UnpackGrad(GradientContext& g) {
  std::vector<Output> grads = AllGrads(g);
  if (grads.empty()) return;
  g.set(0, Pack(g, grads, g.node()->attrs().GetOr<int64_t>("axis", 0)));
}
REGISTER_GRADIENT("Unpack", UnpackGrad);

void SplitGrad(GradientContext& g) {
  if (g.wanted(1)) g.set(1, Concat(g, AllGrads(g), g.input(0)));
}
REGISTER_GRADIENT("Split", SplitGrad);

void SplitVGrad(GradientContext& g) {
  if (g.wanted(0)) g.set(0, Concat(g, AllGrads(g), g.input(2)));
}
REGISTER_GRADIENT("SplitV", SplitVGrad);

/// Concat: inputs [first, first + count) along the axis in input `axis_input`.
void ConcatGradOf(GradientContext& g, int first, int count, int axis_input) {
  if (count == 1) {
    g.set(first, g.grad());
    return;
  }
  const Output axis = g.input(axis_input);
  std::optional<std::vector<int64_t>> known_axis = ConstantInts(g, axis);
  std::vector<int32_t> sizes;
  for (int i = 0; i < count && known_axis && known_axis->size() == 1; ++i) {
    const PartialShape& shape = g.input(first + i).shape();
    if (shape.unknown_rank()) break;
    const int64_t at = (*known_axis)[0] < 0 ? (*known_axis)[0] + shape.rank() : (*known_axis)[0];
    if (at < 0 || at >= shape.rank() || shape.dim(static_cast<int>(at)) < 0) break;
    sizes.push_back(static_cast<int32_t>(shape.dim(static_cast<int>(at))));
  }
  if (static_cast<int>(sizes.size()) == count) {
    Output axis32 = g.Scalar<int32_t>(static_cast<int32_t>((*known_axis)[0]));
    Node* parts = g.Add("SplitV", {g.grad(), g.IntVector(sizes), axis32},
                        [&](NodeSpec& spec) { spec.Attr("num_split", count); });
    for (int i = 0; i < count; ++i) g.set(first + i, Output(parts, i));
    return;
  }
  // Shapes one by one: in a loop those are saved, not what has them.
  std::vector<Output> shape_outputs;
  for (int i = 0; i < count; ++i) shape_outputs.push_back(g.Value(g.Shape(g.input(first + i))));
  Output positive = Cast(g, axis, ElementType::kInt32);
  positive = g.Op("FloorMod", {positive, g.Op("Rank", {g.input(first)})});
  NodeSpec offset_spec("ConcatOffset", g.NewName("ConcatOffset"));
  offset_spec.Input(positive).Input(shape_outputs);
  Node* offsets = g.Add(std::move(offset_spec));
  for (int i = 0; i < count; ++i) {
    if (!g.wanted(first + i)) continue;
    g.set(first + i, g.Op("Slice", {g.grad(), Output(offsets, i), shape_outputs[i]}));
  }
}
void ConcatGrad(GradientContext& g) { ConcatGradOf(g, 1, g.node()->num_inputs() - 1, 0); }
void ConcatV2Grad(GradientContext& g) {
  ConcatGradOf(g, 0, g.node()->num_inputs() - 1, g.node()->num_inputs() - 1);
}
REGISTER_GRADIENT("Concat", ConcatGrad);
REGISTER_GRADIENT("ConcatV2", ConcatV2Grad);

}  // namespace
}  // namespace troupe::gradients
