// Gradients of reductions by segments.
#include <string>
#include <string_view>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

Output Rows(GradientContext& g, Output params, Output ids) {
  return g.Op("GatherV2", {params, ids, g.Scalar<int32_t>(0)});
}

/// `count` sizes of 1.
Sizes Ones(GradientContext& g, Output count) {
  const Output length = g.Op("Reshape", {count, g.IntVector({1})});
  return Sizes::OfTensor(g, g.Op("Fill", {length, g.Scalar<int32_t>(1)}));
}

/// How the rows of the data belong to those of the output. Rows with a negative number, which the
/// unsorted ops drop, have none.
class Segments {
 public:
  explicit Segments(GradientContext& g)
      : g_(g), ids_(g.input(1)), sorted_(g.node()->num_inputs() == 2) {
    if (sorted_) return;
    Output zero = g.ScalarOfType(ids_.type(), 0);
    ids_ = g.Op("Maximum", {ids_, zero});
    kept_ = Widened(g.Op("GreaterEqual", {g.input(1), zero}));
  }

  /// For each row of the data that of `output` for its segment, zeros where there is none.
  Output Gather(Output output) {
    Output rows = GatherAny(output);
    return sorted_ ? rows : Select(g_, kept_, rows, g_.ScalarOfType(rows.type(), 0));
  }
  /// The same, but anything where there is none.
  Output GatherAny(Output output) { return Rows(g_, output, ids_); }
  /// The truth of `condition`, of the data's shape, for rows that have a segment.
  Output Kept(Output condition) {
    if (sorted_) return condition;
    return g_.Op("LogicalAnd", {condition, BroadcastLike(kept_, condition)});
  }
  /// Reduces rows like the data's: `op` is "Sum" or "Prod".
  Output Reduce(std::string_view op, Output data) {
    const std::string name = (sorted_ ? "Segment" : "UnsortedSegment") + std::string(op);
    return sorted_ ? g_.Op(name, {data, g_.input(1)})
                   : g_.Op(name, {data, g_.input(1), g_.input(2)});
  }

 private:
  /// `kept`, of the ids' shape, with a dimension of 1 for each further one of the data.
  Output Widened(Output kept) {
    Sizes data = Sizes::OfShape(g_, g_.input(0)), ids = Sizes::OfShape(g_, g_.input(1));
    if (data.count_known() && ids.count_known()) {
      const int trailing = data.count() - ids.count();
      if (trailing <= 0) return kept;
      const Sizes ones = Sizes::Known(g_, std::vector<int64_t>(trailing, 1));
      return g_.Op("Reshape", {kept, ids.Concat(ones).ReshapeVector()});
    }
    Output trailing = Sub(g_, g_.Op("Rank", {g_.input(0)}), g_.Op("Rank", {g_.input(1)}));
    return g_.Op("Reshape", {kept, ids.Concat(Ones(g_, trailing)).Vector()});
  }
  Output BroadcastLike(Output a, Output like) {
    return BroadcastTo(g_, a, Sizes::OfShape(g_, like));
  }

  GradientContext& g_;
  Output ids_, kept_;
  bool sorted_;
};

void SegmentSumGrad(GradientContext& g) { g.set(0, Segments(g).Gather(g.grad())); }
REGISTER_GRADIENT("SegmentSum", SegmentSumGrad);
REGISTER_GRADIENT("UnsortedSegmentSum", SegmentSumGrad);

void SegmentMeanGrad(GradientContext& g) {
  // How many rows each segment has, with dimensions of 1 that broadcast against its gradient.
  Sizes data = Sizes::OfShape(g, g.input(0)), rows = Sizes::OfShape(g, g.input(1));
  Output shape;
  if (data.count_known()) {
    shape = rows.Concat(Sizes::Known(g, std::vector<int64_t>(data.count() - 1, 1))).Vector();
  } else {
    Output trailing = Sub(g, g.Op("Rank", {g.input(0)}), g.Scalar<int32_t>(1));
    shape = rows.Concat(Ones(g, trailing)).Vector();
  }
  Output counts = g.Op("Fill", {shape, g.ScalarOfType(g.grad().type(), 1)});
  Segments segments(g);
  g.set(0, segments.Gather(Div(g, g.grad(), segments.Reduce("Sum", counts))));
}
REGISTER_GRADIENT("SegmentMean", SegmentMeanGrad);

void SegmentExtremeGrad(GradientContext& g) {
  // All elements that are as large as the largest get an equal share.
  Segments segments(g);
  Output chosen = segments.Kept(g.Op("Equal", {g.input(0), segments.Gather(g.output(0))}));
  Output counts = segments.Reduce("Sum", Cast(g, chosen, g.grad().type()));
  Output shares = segments.Gather(Div(g, g.grad(), counts));
  g.set(0, Select(g, chosen, shares, g.ScalarOfType(shares.type(), 0)));
}
REGISTER_GRADIENT("SegmentMax", SegmentExtremeGrad);
REGISTER_GRADIENT("SegmentMin", SegmentExtremeGrad);
REGISTER_GRADIENT("UnsortedSegmentMax", SegmentExtremeGrad);
REGISTER_GRADIENT("UnsortedSegmentMin", SegmentExtremeGrad);

void SegmentProdGrad(GradientContext& g) {
  // The product divided by the element. One that is zero gets the product of the others, unless
  // there is another zero.
  Segments segments(g);
  Output data = g.input(0), zero = g.ScalarOfType(data.type(), 0);
  Output is_zero = g.Op("Equal", {data, zero});
  Output zeros = segments.Reduce("Sum", Cast(g, is_zero, ElementType::kInt32));
  Output grad = Select(g, g.Op("Greater", {zeros, g.Scalar<int32_t>(1)}),
                       g.ScalarOfType(g.grad().type(), 0), g.grad());
  Output others = Select(g, is_zero, g.ScalarOfType(data.type(), 1), data);
  Output product = segments.GatherAny(g.output(0));
  Output product_of_others = segments.GatherAny(segments.Reduce("Prod", others));
  Output partial = Select(g, is_zero, product_of_others, Div(g, product, others));
  g.set(0, Mul(g, segments.Gather(grad), partial));
}
REGISTER_GRADIENT("SegmentProd", SegmentProdGrad);
REGISTER_GRADIENT("UnsortedSegmentProd", SegmentProdGrad);

void SparseSegmentGrad(GradientContext& g) {
  // "SparseSegmentSum" of SparseSegmentSumWithNumSegments.
  std::string op = g.node()->op();
  op = op.substr(0, op.find("With"));
  const bool sparse = g.node()->attrs().GetOr<bool>("sparse_gradient", false);
  Sizes data = Sizes::OfShape(g, g.input(0));
  Node* grad = g.Add(op + (sparse ? "GradV2" : "Grad"),
                     {g.grad(), g.input(1), g.input(2), data.Slice(0, 1).Scalar()});
  if (!g.status().ok()) return;
  if (sparse) {
    g.set(0, Gradient(Output(grad, 0), Output(grad, 1), data.Vector()));
  } else {
    g.set(0, Output(grad, 0));
  }
}
REGISTER_GRADIENT("SparseSegmentMean", SparseSegmentGrad);
REGISTER_GRADIENT("SparseSegmentMeanWithNumSegments", SparseSegmentGrad);
REGISTER_GRADIENT("SparseSegmentSqrtN", SparseSegmentGrad);
REGISTER_GRADIENT("SparseSegmentSqrtNWithNumSegments", SparseSegmentGrad);
REGISTER_GRADIENT("SparseSegmentSum", SparseSegmentGrad);
REGISTER_GRADIENT("SparseSegmentSumWithNumSegments", SparseSegmentGrad);

}  // namespace
}  // namespace troupe::gradients
