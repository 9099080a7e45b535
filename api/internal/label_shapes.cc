#include "api/internal/label_shapes.h"

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

// Conditions are int32 scalars that are 0 where they hold: devices leave int32 on the host.

int RankOf(const Output& x) { return x.shape().unknown_rank() ? -1 : x.shape().rank(); }

/// Whether the last axis of x, of which the rank may be unknown, may have size 1.
bool MayEndInOne(const Output& x) {
  const int rank = RankOf(x);
  if (rank < 1) return rank < 0;
  return x.shape().dim(rank - 1) == 1 || x.shape().dim(rank - 1) < 0;
}

Output WithoutLastAxis(const Scope& scope, const Output& x) {
  return ops::Squeeze(scope, x, {.squeeze_dims = {-1}});
}

Output Distance(const Scope& scope, const Input& a, const Input& b) {
  return ops::Abs(scope, ops::Sub(scope, a, b));
}

/// 1 if both are equal, else 0.
Output IfEqual(const Scope& scope, const Input& a, const Input& b) {
  return ops::Sub(scope, 1, ops::Minimum(scope, Distance(scope, a, b), 1));
}

/// x without the last axis, which has size 1 then, if `drop` is 1; x if it is 0.
Output WithoutLastAxisIf(const Scope& scope, const Output& drop, const Output& x) {
  const Output kept = ops::Reshape(scope, ops::Sub(scope, ops::Rank(scope, x), drop), {1});
  return ops::Reshape(scope, x, ops::Slice(scope, ops::Shape(scope, x), {0}, kept));
}

/// A scope whose nodes wait until `zero` has been found to be 0; else the step fails.
Scope After(const Scope& scope, const Output& zero, const std::string& message,
            const Output& x_sizes, const Output& y_sizes) {
  Node* const check = ops::Assert(scope, ops::Equal(scope, zero, 0),
                                  {message, x_sizes, "and", y_sizes}, {.summarize = 16});
  return check == nullptr ? scope : scope.WithControlDependencies({&check, 1});
}

/// How far apart vectors of sizes are; of one length.
Output Apart(const Scope& scope, const Output& x_sizes, const Output& y_sizes) {
  return ops::Sum(scope, Distance(scope, x_sizes, y_sizes), 0);
}

/// The shape without its last axis.
PartialShape Front(const PartialShape& shape) {
  if (shape.unknown_rank() || shape.rank() == 0) return PartialShape();
  std::vector<int64_t> dims;
  for (int i = 0; i + 1 < shape.rank(); ++i) dims.push_back(shape.dim(i));
  return PartialShape(dims);
}

enum class Fit { kYes, kNo, kMaybe };

Fit FitOf(const PartialShape& weights, const PartialShape& values) {
  if (weights.unknown_rank()) return Fit::kMaybe;
  if (weights.rank() == 0) return Fit::kYes;
  if (values.unknown_rank()) return Fit::kMaybe;
  if (weights.rank() != values.rank()) return Fit::kNo;
  Fit fit = Fit::kYes;
  for (int i = 0; i < values.rank(); ++i) {
    const int64_t weight = weights.dim(i), value = values.dim(i);
    if (weight == 1 || (weight >= 0 && weight == value)) continue;
    if (weight >= 0 && value >= 0) return Fit::kNo;
    fit = Fit::kMaybe;
  }
  return fit;
}

}  // namespace

LabeledPredictions Squeezed(const Scope& scope, const Output& labels, const Output& predictions,
                            int axes_more) {
  if (!scope.ok() || !labels.valid() || !predictions.valid()) return {};
  const int labels_rank = RankOf(labels), predictions_rank = RankOf(predictions);
  const bool both_known = labels_rank >= 0 && predictions_rank >= 0;
  LabeledPredictions result = {labels, predictions};
  const int more = predictions_rank - labels_rank - axes_more;
  if (both_known && more == 1 && MayEndInOne(predictions)) {
    result.predictions = WithoutLastAxis(scope, predictions);
  } else if (both_known && more == -1 && MayEndInOne(labels)) {
    result.labels = WithoutLastAxis(scope, labels);
  }
  if (both_known) return result;
  const Output found = ops::Sub(scope, ops::Rank(scope, predictions), ops::Rank(scope, labels));
  if (MayEndInOne(predictions)) {
    result.predictions =
        WithoutLastAxisIf(scope, IfEqual(scope, found, axes_more + 1), predictions);
  }
  if (MayEndInOne(labels)) {
    result.labels = WithoutLastAxisIf(scope, IfEqual(scope, found, axes_more - 1), labels);
  }
  return result;
}

Output CheckedLabels(const Scope& scope, const Output& labels, const Output& predictions,
                     bool but_classes) {
  if (!scope.ok() || !labels.valid() || !predictions.valid()) return Output();
  const PartialShape& of = labels.shape();
  const PartialShape wanted = but_classes ? Front(predictions.shape()) : predictions.shape();
  const std::string what =
      but_classes ? "labels must have the shape of predictions without the classes, but these are "
                  : "labels and predictions must have one shape, but these are ";
  if (!of.IsCompatibleWith(wanted) || (but_classes && RankOf(predictions) == 0)) {
    scope.UpdateStatus(
        InvalidArgument(what, of.ToString(), " and ", predictions.shape().ToString()));
    return Output();
  }
  if ((of.ToShape().ok() && wanted.ToShape().ok()) || (labels == predictions && !but_classes)) {
    return labels;
  }
  const Scope own = scope.NewSubScope("check_labels");
  const Output sizes = ops::Shape(own, labels);
  const Output all = ops::Shape(own, predictions);
  Scope after = own;
  if (of.unknown_rank() || wanted.unknown_rank()) {
    const Output rank = ops::Rank(own, predictions);
    const Output axes = but_classes ? ops::Sub(own, rank, 1) : rank;
    after = After(own, ops::Sub(own, ops::Rank(own, labels), axes), what, sizes, all);
  }
  const Output front = but_classes ? ops::StridedSlice(after, all, {0}, {-1}, {1}) : all;
  after = After(after, Apart(after, sizes, front), what, sizes, all);
  return ops::Identity(after, labels);
}

LabeledPredictions Matched(const Scope& scope, const Output& labels, const Output& predictions) {
  const LabeledPredictions both = Squeezed(scope, labels, predictions);
  return {CheckedLabels(scope, both.labels, both.predictions), both.predictions};
}

Output SqueezedWeights(const Scope& scope, const Output& weights, const Output& values,
                       bool may_grow) {
  if (!scope.ok() || !weights.valid() || !values.valid()) return Output();
  const int rank = RankOf(weights), values_rank = RankOf(values);
  if (rank == 0) return weights;
  if (rank > 0 && values_rank >= 0) {
    if (rank == values_rank + 1 && MayEndInOne(weights)) return WithoutLastAxis(scope, weights);
    if (may_grow && rank == values_rank - 1) return ops::ExpandDims(scope, weights, -1);
    return weights;
  }
  const Output own_rank = ops::Rank(scope, weights);
  const Output more = ops::Sub(scope, own_rank, ops::Rank(scope, values));
  Output result = weights;
  // Of scalars nothing is taken, nor do they grow.
  const Output is_array = ops::Minimum(scope, own_rank, 1);
  if (MayEndInOne(weights)) {
    const Output drop = ops::Mul(scope, IfEqual(scope, more, 1), is_array);
    result = WithoutLastAxisIf(scope, drop, result);
  }
  if (may_grow) {
    const Output added = ops::Mul(scope, IfEqual(scope, more, -1), is_array);
    const Output ones = ops::Fill(scope, ops::Reshape(scope, added, {1}), 1);
    result =
        ops::Reshape(scope, result, ops::ConcatV2(scope, {ops::Shape(scope, result), ones}, 0));
  }
  return result;
}

Output CheckedWeights(const Scope& scope, const Output& weights, const Output& values) {
  if (!scope.ok() || !weights.valid() || !values.valid()) return Output();
  const PartialShape &of = weights.shape(), &wanted = values.shape();
  const Fit fit = FitOf(of, wanted);
  if (fit == Fit::kNo) {
    scope.UpdateStatus(InvalidArgument("weights of shape ", of.ToString(),
                                       " do not fit values of shape ", wanted.ToString(),
                                       ": sizes must be 1 or equal"));
    return Output();
  }
  if (fit == Fit::kYes) return weights;
  const Scope own = scope.NewSubScope("check_weights");
  const std::string what =
      "weights must be a scalar, or of the values' rank with sizes that are 1 "
      "or equal, but the shapes are ";
  const Output sizes = ops::Shape(own, weights), all = ops::Shape(own, values);
  Scope after = own;
  Output among = all;
  if (of.unknown_rank() || wanted.unknown_rank()) {
    const Output rank = ops::Rank(own, weights);
    const Output more = ops::Sub(own, rank, ops::Rank(own, values));
    after = After(own, ops::Mul(own, rank, more), what, sizes, all);
    among = ops::Slice(after, all, {0}, ops::Reshape(after, rank, {1}));
  }
  const Output off = ops::Minimum(after, Distance(after, sizes, 1), Distance(after, sizes, among));
  after = After(after, ops::Sum(after, off, 0), what, sizes, all);
  return ops::Identity(after, weights);
}

}  // namespace troupe
