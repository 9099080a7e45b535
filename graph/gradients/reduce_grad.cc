// Gradients of reductions and scans.
#include <algorithm>

#include "devices/status_macros.h"
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

/// The axes of a reduction and the sizes of its result as if `keep_dims` were set.
struct Reduction {
  Sizes input;
  std::optional<std::vector<int64_t>> axes;  ///< Not negative; known only if x's rank is, too.
  bool keep_dims;
  bool all_axes = false;  ///< Known to reduce all axes.

  explicit Reduction(GradientContext& g)
      : input(Sizes::OfShape(g, g.input(0))),
        axes(ConstantInts(g, g.input(1))),
        keep_dims(g.node()->attrs().GetOr<bool>("keep_dims", false)) {
    if (!input.count_known()) axes.reset();
    if (!axes) return;
    const int rank = input.count();
    for (int64_t& axis : *axes) {
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) {
        g.Fail(InvalidArgument("reduction axis ", axis, " is out of range for rank ", rank));
        axes.reset();
        return;
      }
    }
    std::sort(axes->begin(), axes->end());
    axes->erase(std::unique(axes->begin(), axes->end()), axes->end());
    all_axes = static_cast<int>(axes->size()) == rank;
  }
  bool reduces(int axis) const { return std::binary_search(axes->begin(), axes->end(), axis); }
};

/// All axes of `input`, and those of `axes`, which are not known, counted from the front.
std::pair<Output, Output> ComputedAxes(GradientContext& g, const Sizes& input, Output axes) {
  const Output rank = g.Op("Size", {input.Vector()});
  axes = Cast(g, axes, ElementType::kInt32);
  return {Numbers(g, rank), g.Op("FloorMod", {Add(g, axes, rank), rank})};
}

/// The input's sizes with 1 for the reduced ones.
Sizes KeptSizes(GradientContext& g, const Reduction& reduction) {
  const Sizes& input = reduction.input;
  if (reduction.axes) {
    std::vector<int64_t> kept;
    int unknown = 0;
    for (int i = 0; i < input.count(); ++i) {
      kept.push_back(reduction.reduces(i) ? 1 : input.at(i));
      if (kept.back() < 0) ++unknown;
    }
    if (unknown == 0) return Sizes::Known(g, std::move(kept));
  }
  const auto [all, axes] = ComputedAxes(g, input, g.input(1));
  const Output indices[] = {all, axes}, data[] = {input.Vector(), g.OnesLike(axes)};
  return Sizes::OfTensor(g, OfLists(g, "DynamicStitch", {indices, data}));
}

/// `result`, which has the shape of the reduction's result, in a shape that broadcasts to the
/// input's.
Output Expand(GradientContext& g, const Reduction& reduction, Output result) {
  if (reduction.keep_dims || reduction.all_axes) return result;
  if (reduction.axes) {
    // The remaining axes are the last ones: they need no 1s before them.
    const std::vector<int64_t>& axes = *reduction.axes;
    if (axes.empty() || axes.back() + 1 == static_cast<int64_t>(axes.size())) return result;
    if (axes.size() == 1) {
      return g.Op("ExpandDims", {result, g.Scalar<int32_t>(static_cast<int32_t>(axes[0]))});
    }
    std::vector<int64_t> kept;
    for (int i = 0; i < reduction.input.count(); ++i) {
      kept.push_back(reduction.reduces(i) ? 1 : reduction.input.at(i));
    }
    const bool zero = std::count(kept.begin(), kept.end(), 0) > 0;
    if (!zero && std::count(kept.begin(), kept.end(), -1) == 1) {
      std::vector<int32_t> sizes(kept.begin(), kept.end());
      return g.Op("Reshape", {result, g.IntVector(sizes)});
    }
  }
  return g.Op("Reshape", {result, KeptSizes(g, reduction).Vector()});
}

void SumGrad(GradientContext& g) {
  Reduction reduction(g);
  g.set(0, BroadcastTo(g, Expand(g, reduction, g.grad()), reduction.input));
}
REGISTER_GRADIENT("Sum", SumGrad);

/// The number of elements that a mean is taken of, as a scalar of the gradient's type.
Output CountPerMean(GradientContext& g, const Reduction& reduction) {
  const ElementType type = g.grad().type();
  if (reduction.axes) {
    double count = 1;
    for (int64_t axis : *reduction.axes) {
      const int64_t size = reduction.input.at(static_cast<int>(axis));
      count = size < 0 || count < 0 ? -1 : count * static_cast<double>(size);
    }
    if (count >= 0) return g.ScalarOfType(type, count);
  }
  Output count = g.Op("Size", {g.input(0)});
  if (!reduction.all_axes) {
    Output results = g.Op("Maximum", {g.Op("Size", {g.output(0)}), g.Scalar<int32_t>(1)});
    count = g.Op("FloorDiv", {count, results});
  }
  return Cast(g, count, type);
}

void MeanGrad(GradientContext& g) {
  Reduction reduction(g);
  // Divided before it is broadcast: fewer divisions.
  Output share = Div(g, g.grad(), CountPerMean(g, reduction));
  g.set(0, BroadcastTo(g, Expand(g, reduction, share), reduction.input));
}
REGISTER_GRADIENT("Mean", MeanGrad);

void ExtremeGrad(GradientContext& g) {
  // All elements that are as large as the largest get an equal share.
  Reduction reduction(g);
  Output extreme = Expand(g, reduction, g.output(0));
  Output chosen = Cast(g, g.Op("Equal", {extreme, g.input(0)}), g.grad().type());
  Output count = Sum(g, chosen, g.input(1), true);
  g.set(0, Mul(g, Div(g, chosen, count), Expand(g, reduction, g.grad())));
}
REGISTER_GRADIENT("Max", ExtremeGrad);
REGISTER_GRADIENT("Min", ExtremeGrad);

Output Cumulate(GradientContext& g, std::string_view op, Output x, Output axis, bool exclusive,
                bool reverse) {
  return g.Op(op, {x, axis}, [&](NodeSpec& spec) {
    spec.Attr("exclusive", exclusive);
    spec.Attr("reverse", reverse);
  });
}

void ProdGrad(GradientContext& g) {
  // The product of all other elements, without division, so that zeros do no harm: the reduced axes
  // become one, and the products of what is before and after an element along it are multiplied.
  Reduction reduction(g);
  Output x = g.input(0);
  Output grad = Expand(g, reduction, g.grad());
  std::vector<int64_t> order, inverse;
  Output permutation, inverse_permutation;
  std::optional<Sizes> reduced, other;
  if (reduction.axes) {
    order = *reduction.axes;
    std::vector<int64_t> rest;
    for (int i = 0; i < reduction.input.count(); ++i) {
      if (!reduction.reduces(i)) rest.push_back(i);
    }
    reduced = reduction.input.Gather(Sizes::Known(g, order));
    other = reduction.input.Gather(Sizes::Known(g, rest));
    order.insert(order.end(), rest.begin(), rest.end());
    inverse.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
    x = Transpose(g, x, order);
  } else {
    const auto [all, axes] =
        ComputedAxes(g, reduction.input, g.Op("Reshape", {g.input(1), g.IntVector({-1})}));
    Output rest = g.Op("ListDiff", {all, axes});
    Sizes reduced_axes = Sizes::OfTensor(g, axes), other_axes = Sizes::OfTensor(g, rest);
    reduced = reduction.input.Gather(reduced_axes);
    other = reduction.input.Gather(other_axes);
    permutation = reduced_axes.Concat(other_axes).Vector();
    inverse_permutation = g.Op("InvertPermutation", {permutation});
    x = g.Op("Transpose", {x, permutation});
  }
  Output columns = Reshape(g, x, reduced->Product().Concat(other->Product()));
  Output zero = g.Scalar<int32_t>(0);
  Output before = Cumulate(g, "Cumprod", columns, zero, true, false);
  Output after = Cumulate(g, "Cumprod", columns, zero, true, true);
  Output others = Mul(g, g.Conj(before), g.Conj(after));
  others = ReshapeLike(g, others, x);
  others = reduction.axes ? Transpose(g, others, inverse)
                          : g.Op("Transpose", {others, inverse_permutation});
  g.set(0, Mul(g, grad, others));
}
REGISTER_GRADIENT("Prod", ProdGrad);

void EuclideanNormGrad(GradientContext& g) {
  Reduction reduction(g);
  Output norm = Expand(g, reduction, g.output(0));
  g.set(0, Div(g, g.input(0), Div(g, norm, Expand(g, reduction, g.grad()))));
}
REGISTER_GRADIENT("EuclideanNorm", EuclideanNormGrad);

void CumsumGrad(GradientContext& g) {
  const bool exclusive = g.node()->attrs().GetOr<bool>("exclusive", false);
  const bool reverse = g.node()->attrs().GetOr<bool>("reverse", false);
  g.set(0, Cumulate(g, "Cumsum", g.grad(), g.input(1), exclusive, !reverse));
}
REGISTER_GRADIENT("Cumsum", CumsumGrad);

void CumprodGrad(GradientContext& g) {
  const bool exclusive = g.node()->attrs().GetOr<bool>("exclusive", false);
  const bool reverse = g.node()->attrs().GetOr<bool>("reverse", false);
  Output weighted = Mul(g, g.output(0), g.grad());
  Output sums = Cumulate(g, "Cumsum", weighted, g.input(1), exclusive, !reverse);
  g.set(0, g.Op("DivNoNan", {sums, g.input(0)}));
}
REGISTER_GRADIENT("Cumprod", CumprodGrad);

}  // namespace
}  // namespace troupe::gradients
