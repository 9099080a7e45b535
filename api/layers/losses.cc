#include "api/layers/losses.h"

#include "api/internal/label_shapes.h"
#include "api/nn.h"
#include "api/ops.h"
#include "api/variable_scope.h"
#include "devices/status_macros.h"

namespace troupe::losses {

namespace {

Output Cast(const Scope& scope, const Output& x, ElementType type) {
  return !x.valid() || x.type() == type ? x : ops::Cast(scope, x, type);
}

/// Sum over all elements divided by `count`; 0 where there is nothing.
Output SafeMean(const Scope& scope, const Output& sum, const Output& count) {
  return ops::DivNoNan(scope, sum, count);
}

/// How many elements of `losses` have a weight other than 0.
Output NumPresent(const Scope& scope, const Output& losses, const Output& weights) {
  const Output there = ops::Cast(scope, ops::NotEqual(scope, weights, 0.0), losses.type());
  return ReduceSum(scope, ops::Mul(scope, ops::OnesLike(scope, losses), there));
}

/// Labels in the type of the predictions, of the same shape.
Output Labels(const Scope& scope, const Input& labels, const Output& predictions) {
  const Output output = labels.ToOutput(scope);
  if (!output.valid() || !predictions.valid()) return Output();
  return CheckedLabels(scope, Cast(scope, output, predictions.type()), predictions);
}

/// Labels moved by `amount`, of which each class gets `share`.
Output Smooth(const Scope& scope, const Output& labels, double amount, const Input& share) {
  return ops::Add(scope, ops::Mul(scope, labels, 1.0 - amount), share);
}

/// Logits [..., classes], of rank 1 at least.
class ClassLogits {
 public:
  ClassLogits(const Scope& scope, const char* loss, const Output& logits)
      : scope_(scope), logits_(logits) {
    if (!logits.valid() || logits.shape().unknown_rank()) return;
    rank_ = logits.shape().rank();
    if (rank_ > 0) return;
    scope.UpdateStatus(
        InvalidArgument(loss, ": logits must have an axis of classes, but they are a scalar"));
  }

  bool are_matrix() const { return rank_ == 2; }
  /// How many there are: a scalar int32.
  Output Classes() const { return ops::Reshape(scope_, Last(), Tensor::Vector<int32_t>({})); }
  /// x [..., classes] as a matrix [rows, classes].
  Output Flat(const Output& x) const {
    if (are_matrix()) return x;
    return ops::Reshape(scope_, x,
                        ops::ConcatV2(scope_, {Tensor::Vector<int32_t>({-1}), Last()}, 0));
  }
  /// One loss for each row in the shape [...].
  Output Folded(const Output& losses) const {
    if (are_matrix()) return losses;
    const Output sizes = ops::Shape(scope_, logits_);
    return ops::Reshape(scope_, losses, ops::StridedSlice(scope_, sizes, {0}, {-1}, {1}));
  }

 private:
  /// The number of classes: a vector of one int32.
  Output Last() const {
    return ops::StridedSlice(scope_, ops::Shape(scope_, logits_), {-1}, {0}, {1}, {.end_mask = 1});
  }

  const Scope& scope_;
  const Output logits_;
  int rank_ = -1;  ///< -1: not known.
};

}  // namespace

Output WeightedLoss(const Scope& scope, const Output& losses, const LossOptions& options) {
  const Scope own = scope.NewSubScope("weighted_loss");
  if (!own.ok() || !losses.valid()) return Output();
  // Halves would lose the count of a batch.
  const bool is_half =
      losses.type() == ElementType::kHalf || losses.type() == ElementType::kBfloat16;
  const ElementType type =
      losses.type() == ElementType::kDouble ? losses.type() : ElementType::kFloat;
  const Output values = Cast(own, losses, type);
  const Output weights =
      CheckedWeights(own, Cast(own, options.weights.ToOutput(own), type), values);
  if (!own.ok()) return Output();
  const Output weighted = ops::Mul(own, values, weights);
  Output loss = options.reduction == Reduction::kNone ? weighted : ReduceSum(own, weighted);
  switch (options.reduction) {
    case Reduction::kNone:
    case Reduction::kSum:
      break;
    case Reduction::kMean:
      loss =
          SafeMean(own, loss, ReduceSum(own, ops::Mul(own, ops::OnesLike(own, values), weights)));
      break;
    case Reduction::kSumOverBatchSize:
      loss = SafeMean(own, loss, ops::Cast(own, ops::Size(own, values), type));
      break;
    case Reduction::kSumByNonzeroWeights:
      loss = SafeMean(own, loss, NumPresent(own, values, weights));
      break;
  }
  if (is_half) loss = ops::Cast(own, loss, losses.type());
  if (!own.ok()) return Output();
  if (!options.collection.empty()) AddLoss(own, loss, options.collection);
  return loss;
}

Output AbsoluteDifference(const Scope& scope, const Input& labels, const Output& predictions,
                          const LossOptions& options) {
  const Scope own = scope.NewSubScope("absolute_difference");
  const Output y = Labels(own, labels, predictions);
  return WeightedLoss(own, ops::Abs(own, ops::Sub(own, predictions, y)), options);
}

Output MeanSquaredError(const Scope& scope, const Input& labels, const Output& predictions,
                        const LossOptions& options) {
  const Scope own = scope.NewSubScope("mean_squared_error");
  const Output y = Labels(own, labels, predictions);
  return WeightedLoss(own, ops::SquaredDifference(own, predictions, y), options);
}

Output HuberLoss(const Scope& scope, const Input& labels, const Output& predictions, double delta,
                 const LossOptions& options) {
  const Scope own = scope.NewSubScope("huber_loss");
  const Output error = ops::Abs(own, ops::Sub(own, predictions, Labels(own, labels, predictions)));
  if (!own.ok()) return Output();
  const Output quadratic = ops::Minimum(own, error, delta);
  const Output linear = ops::Sub(own, error, quadratic);
  const Output half = ops::Mul(own, 0.5, ops::Square(own, quadratic));
  return WeightedLoss(own, ops::Add(own, half, ops::Mul(own, delta, linear)), options);
}

Output LogLoss(const Scope& scope, const Input& labels, const Output& predictions, double epsilon,
               const LossOptions& options) {
  const Scope own = scope.NewSubScope("log_loss");
  const Output y = Labels(own, labels, predictions);
  if (!own.ok()) return Output();
  const Output yes = ops::Mul(own, y, ops::Log(own, ops::Add(own, predictions, epsilon)));
  const Output rest = ops::Add(own, ops::Sub(own, 1.0, predictions), epsilon);
  const Output no = ops::Mul(own, ops::Sub(own, 1.0, y), ops::Log(own, rest));
  return WeightedLoss(own, ops::Neg(own, ops::Add(own, yes, no)), options);
}

Output CosineDistance(const Scope& scope, const Input& labels, const Output& predictions, int axis,
                      const LossOptions& options) {
  const Scope own = scope.NewSubScope("cosine_distance");
  const Output y = Labels(own, labels, predictions);
  const Output product = ops::Sum(own, ops::Mul(own, y, predictions), {axis}, {.keep_dims = true});
  if (!own.ok()) return Output();
  return WeightedLoss(own, ops::Sub(own, 1.0, product), options);
}

Output HingeLoss(const Scope& scope, const Input& labels, const Output& logits,
                 const LossOptions& options) {
  const Scope own = scope.NewSubScope("hinge_loss");
  const Output y = Labels(own, labels, logits);
  if (!own.ok()) return Output();
  const Output sign = ops::Sub(own, ops::Mul(own, y, 2.0), 1.0);
  return WeightedLoss(own, ops::Relu(own, ops::Sub(own, 1.0, ops::Mul(own, sign, logits))),
                      options);
}

Output MeanPairwiseSquaredError(const Scope& scope, const Input& labels, const Output& predictions,
                                const LossOptions& options) {
  const Scope own = scope.NewSubScope("mean_pairwise_squared_error");
  const Output delta = ops::Sub(own, predictions, Labels(own, labels, predictions));
  if (!own.ok()) return Output();
  const Output weights =
      CheckedWeights(own, Cast(own, options.weights.ToOutput(own), delta.type()), delta);
  if (!own.ok()) return Output();
  if (!delta.shape().unknown_rank() && delta.shape().rank() == 0) {
    own.UpdateStatus(InvalidArgument("mean_pairwise_squared_error: a scalar has no pairs"));
    return Output();
  }
  const Output axes = ops::Range(own, 1, ops::Rank(own, delta), 1);
  const auto sum = [&](const Output& x) { return ops::Sum(own, x, axes, {.keep_dims = true}); };
  const Output there = ops::Cast(own, ops::NotEqual(own, weights, 0.0), delta.type());
  const Output n = sum(ops::Mul(own, ops::OnesLike(own, delta), there));
  const Output others = ops::Maximum(own, ops::Sub(own, n, 1.0), 0.0);
  const Output squares = ops::DivNoNan(own, sum(ops::Square(own, delta)), others);
  const Output products =
      ops::DivNoNan(own, ops::Square(own, sum(delta)), ops::Mul(own, n, others));
  const Output rows = ops::Mul(own, 2.0, ops::Sub(own, squares, products));
  return WeightedLoss(own, ops::Mul(own, rows, weights),
                      {.reduction = Reduction::kSum, .collection = options.collection});
}

Output SigmoidCrossEntropy(const Scope& scope, const Input& labels, const Output& logits,
                           double label_smoothing, const LossOptions& options) {
  const Scope own = scope.NewSubScope("sigmoid_cross_entropy");
  Output y = Labels(own, labels, logits);
  if (!own.ok()) return Output();
  if (label_smoothing > 0) y = Smooth(own, y, label_smoothing, 0.5 * label_smoothing);
  return WeightedLoss(own, SigmoidCrossEntropyWithLogits(own, y, logits), options);
}

Output SoftmaxCrossEntropy(const Scope& scope, const Input& labels, const Output& logits,
                           double label_smoothing, const LossOptions& options) {
  const Scope own = scope.NewSubScope("softmax_cross_entropy");
  Output y = Labels(own, labels, logits);
  if (!own.ok()) return Output();
  const ClassLogits classes(own, "softmax_cross_entropy", logits);
  if (!own.ok()) return Output();
  if (label_smoothing > 0) {
    const Output number = ops::Cast(own, classes.Classes(), logits.type());
    y = Smooth(own, y, label_smoothing, ops::RealDiv(own, label_smoothing, number));
  }
  y = ops::StopGradient(own, y);
  const Output rows =
      ops::SoftmaxCrossEntropyWithLogits(own, classes.Flat(logits), classes.Flat(y)).loss;
  return WeightedLoss(own, classes.Folded(rows), options);
}

Output SparseSoftmaxCrossEntropy(const Scope& scope, const Output& labels, const Output& logits,
                                 const LossOptions& options) {
  const Scope own = scope.NewSubScope("sparse_softmax_cross_entropy");
  const auto [squeezed, scores] = Squeezed(own, labels, logits, /*axes_more=*/1);
  if (!own.ok() || !squeezed.valid()) return Output();
  const ClassLogits classes(own, "sparse_softmax_cross_entropy", scores);
  LossOptions weighted = options;
  weighted.weights = SqueezedWeights(own, options.weights.ToOutput(own), squeezed);
  // The op itself checks labels of a matrix.
  const Output y = classes.are_matrix()
                       ? squeezed
                       : ops::Reshape(own, CheckedLabels(own, squeezed, scores, true), {-1});
  if (!own.ok()) return Output();
  const Output rows = ops::SparseSoftmaxCrossEntropyWithLogits(own, classes.Flat(scores), y).loss;
  return WeightedLoss(own, classes.Folded(rows), weighted);
}

void AddLoss(const Scope& scope, const Output& loss, const std::string& collection) {
  if (scope.ok() && loss.valid()) scope.graph()->AddToCollection(collection, loss.name());
}

std::vector<Output> Losses(const Scope& scope, std::string_view prefix,
                           const std::string& collection) {
  std::vector<Output> losses;
  for (const std::string& name : scope.graph()->Collection(collection)) {
    if (!name.starts_with(prefix)) continue;
    const absl::StatusOr<Output> loss = scope.graph()->FindOutput(name);
    scope.UpdateStatus(loss.status());
    if (loss.ok()) losses.push_back(*loss);
  }
  return losses;
}

Output TotalLoss(const Scope& scope, bool with_regularization) {
  std::vector<Output> losses = Losses(scope);
  if (with_regularization) {
    for (const Output& loss : RegularizationLosses(scope)) losses.push_back(loss);
  }
  if (losses.empty()) {
    scope.UpdateStatus(absl::FailedPreconditionError("the graph has no losses to add up"));
    return Output();
  }
  return ops::AddN(scope.WithOpName("total_loss"), losses);
}

}  // namespace troupe::losses
