#include "api/layers/metrics_at_k.h"

#include "api/internal/metric_sums.h"
#include "api/nn.h"
#include "api/ops.h"
#include "api/variable_scope.h"
#include "devices/status_macros.h"

namespace troupe::metrics {

namespace {

/// The classes of the k best scores, int64 [..., k].
Output Best(const Scope& scope, const Output& scores, int64_t k) {
  if (k < 1 || k > INT32_MAX) {
    scope.UpdateStatus(InvalidArgument("metrics: k must be positive, not ", k));
  }
  if (!scope.ok()) return Output();
  return ops::TopKV2(scope, scores, static_cast<int32_t>(k)).indices;
}

/// Labels with an axis of their own after those of the examples of `best`.
ClassLabels Expanded(const Scope& scope, const ClassLabels& labels, const Output& best) {
  if (!scope.ok()) return labels;
  int rank = -1;
  if (!labels.is_sparse()) {
    if (!labels.values().shape().unknown_rank()) rank = labels.values().shape().rank();
  } else if (const PartialShape& shape = labels.indices().shape(); !shape.unknown_rank()) {
    rank = shape.rank() == 2 ? static_cast<int>(shape.dim(1)) : -1;
  }
  const PartialShape& shape = best.shape();
  if (shape.unknown_rank() || shape.rank() < 2 || rank > shape.rank() ||
      (rank >= 0 && rank < shape.rank() - 1)) {
    scope.UpdateStatus(InvalidArgument("metrics: labels of rank ", rank,
                                       " do not fit predictions of the shape ", shape.ToString(),
                                       ": they must have as many axes, or one less"));
    return labels;
  }
  if (rank < 0 || rank == shape.rank()) return labels;
  if (!labels.is_sparse()) return ops::ExpandDims(scope, labels.values(), -1);
  const Output longer = ops::ConcatV2(scope, {labels.shape(), Tensor::Vector<int64_t>({1})}, 0);
  const auto reshaped = ops::SparseReshape(scope, labels.indices(), labels.shape(), longer);
  return {reshaped.output_indices, labels.values(), reshaped.output_shape};
}

/// The rows of dense or sparse `classes` as sparse sets, of which only `class_id` is left if it is
/// given.
ClassLabels Sets(const Scope& scope, const ClassLabels& classes, std::optional<int64_t> class_id) {
  if (!scope.ok()) return classes;
  if (classes.is_sparse()) {
    if (!class_id) return classes;
    const Output there = ops::Reshape(
        scope, ops::Where(scope, ops::Equal(scope, classes.values(), *class_id)), {-1});
    return {ops::GatherV2(scope, classes.indices(), there, 0),
            ops::GatherV2(scope, classes.values(), there, 0), classes.shape()};
  }
  const Output dense = ops::Cast(scope, classes.values(), ElementType::kInt64);
  const Output sizes = ops::Shape(scope, dense, {.out_type = ElementType::kInt64});
  Output among = dense;
  if (class_id) {
    const Output rows = ops::StridedSlice(scope, sizes, {0}, {-1}, {1});
    among = ops::Fill(scope, ops::ConcatV2(scope, {rows, Tensor::Vector<int64_t>({1})}, 0),
                      Const(scope, *class_id));
  }
  const auto sets = ops::DenseToDenseSetOperation(scope, among, dense, "intersection");
  return {sets.result_indices, sets.result_values, sizes};
}

/// The sum over examples of how many classes there are in `operation` of the sets, in a variable.
Sum CountSets(const Scope& scope, const char* name, const ClassLabels& a, const ClassLabels& b,
              const char* operation, const std::optional<Input>& weights) {
  if (!scope.ok()) return {};
  const auto sets = ops::SparseToSparseSetOperation(scope, a.indices(), a.values(), a.shape(),
                                                    b.indices(), b.values(), b.shape(), operation);
  const Output sizes =
      Float(scope, ops::SetSize(scope, sets.result_indices, sets.result_values, sets.result_shape));
  return Keep(scope, name, {},
              ReduceSum(scope, ops::Mul(scope, sizes, Spread(scope, sizes, weights))));
}

/// The part of found labels among those and others, which `operation` gives.
Metric Found(const Scope& own, const ClassLabels& labels, const Output& best, const char* others,
             const char* operation, const AtKOptions& options) {
  if (!own.ok() || !best.valid() || !labels.values().valid()) return {};
  const ClassLabels given = Sets(own, Expanded(own, labels, best), options.class_id);
  const ClassLabels predicted = Sets(own, best, options.class_id);
  const Sum found =
      CountSets(own, "true_positives", predicted, given, "intersection", options.weights);
  const Sum missed = CountSets(own, others, predicted, given, operation, options.weights);
  return Of(
      own,
      [&](const Output& f, const Output& m) { return ops::DivNoNan(own, f, ops::Add(own, f, m)); },
      found, missed);
}

Metric Recall(const Scope& own, const ClassLabels& labels, const Output& best,
              const AtKOptions& options) {
  return Found(own, labels, best, "false_negatives", "b-a", options);
}
Metric Precision(const Scope& own, const ClassLabels& labels, const Output& best,
                 const AtKOptions& options) {
  return Found(own, labels, best, "false_positives", "a-b", options);
}

std::string AtK(const char* base, int64_t k) { return StrCat(base, "_at_", k); }

}  // namespace

Metric RecallAtK(const Scope& scope, const ClassLabels& labels, const Output& scores, int64_t k,
                 const AtKOptions& options) {
  const Scope own = UniqueVariableScope(scope, AtK("recall", k));
  return Recall(own, labels, Best(own, scores, k), options);
}
Metric RecallAtTopK(const Scope& scope, const ClassLabels& labels, const Output& best,
                    const AtKOptions& options) {
  return Recall(UniqueVariableScope(scope, "recall_at_top_k"), labels, best, options);
}

Metric PrecisionAtK(const Scope& scope, const ClassLabels& labels, const Output& scores, int64_t k,
                    const AtKOptions& options) {
  const Scope own = UniqueVariableScope(scope, AtK("precision", k));
  return Precision(own, labels, Best(own, scores, k), options);
}
Metric PrecisionAtTopK(const Scope& scope, const ClassLabels& labels, const Output& best,
                       const AtKOptions& options) {
  return Precision(UniqueVariableScope(scope, "precision_at_top_k"), labels, best, options);
}

Metric AveragePrecisionAtK(const Scope& scope, const ClassLabels& labels, const Output& scores,
                           int64_t k, std::optional<Input> weights) {
  const Scope own = UniqueVariableScope(scope, AtK("average_precision", k));
  const Output best = Best(own, scores, k);
  if (!own.ok() || !labels.values().valid()) return {};
  ClassLabels given = Expanded(own, labels, best);
  Output count;  // Of labels: [examples...].
  if (own.ok() && given.is_sparse()) {
    count = Float(own, ops::SetSize(own, given.indices(), given.values(), given.shape()));
    given = ops::SparseToDense(own, given.indices(), given.shape(), given.values(), int64_t{-1});
  } else {
    const Output exists = Float(own, ops::GreaterEqual(own, given.values(), 0));
    count = ReduceSum(own, exists, {.axes = {{-1}}});
  }
  // [examples..., k, labels], and whether the best one at each place is a label.
  const Output same =
      ops::Equal(own, ops::ExpandDims(own, ops::Cast(own, best, ElementType::kInt64), -1),
                 ops::ExpandDims(own, ops::Cast(own, given.values(), ElementType::kInt64), -2));
  const Output found = Float(own, ReduceAny(own, same, {.axes = {{-1}}}));
  const Output places = ops::Range(own, 1.0f, static_cast<float>(k) + 1.0f, 1.0f);
  const Output precisions = ops::RealDiv(own, ops::Cumsum(own, found, -1), places);
  const Output sum = ReduceSum(own, ops::Mul(own, precisions, found), {.axes = {{-1}}});
  const Output most = ops::Minimum(own, count, static_cast<float>(k));
  return MeanOf(own, ops::DivNoNan(own, sum, most), weights);
}

}  // namespace troupe::metrics
