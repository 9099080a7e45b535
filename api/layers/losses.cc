#include "api/layers/losses.h"

#include "api/nn.h"
#include "api/ops.h"
#include "api/variable_scope.h"
#include "devices/status_macros.h"

namespace troupe::losses {

namespace {

/// Sum over all elements divided by `count`; 0 where there is nothing.
Output SafeMean(const Scope& scope, const Output& sum, const Output& count) {
  return ops::DivNoNan(scope, sum, count);
}

/// How many elements of `losses` have a weight other than 0.
Output NumPresent(const Scope& scope, const Output& losses, const Output& weights) {
  const Output there = ops::Cast(scope, ops::NotEqual(scope, weights, 0.0), losses.type());
  return ReduceSum(scope, ops::Mul(scope, ops::OnesLike(scope, losses), there));
}

absl::Status CheckWeights(const Output& losses, const Output& weights) {
  const PartialShape &of = losses.shape(), &w = weights.shape();
  if (of.unknown_rank() || w.unknown_rank() || w.rank() == 0) return absl::OkStatus();
  bool fits = of.rank() == w.rank();
  for (int i = 0; fits && i < of.rank(); ++i) {
    fits = w.dim(i) == 1 || w.dim(i) < 0 || of.dim(i) < 0 || w.dim(i) == of.dim(i);
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument("weights of shape ", w.ToString(), " do not fit losses of shape ",
                         of.ToString(), ": sizes must be 1 or equal");
}

/// Labels in the type of the predictions.
Output Labels(const Scope& scope, const Input& labels, const Output& predictions) {
  const Output output = labels.ToOutput(scope);
  if (!output.valid() || !predictions.valid() || output.type() == predictions.type()) return output;
  return ops::Cast(scope, output, predictions.type());
}

/// Labels moved by `amount` towards `middle`.
Output Smooth(const Scope& scope, const Output& labels, double amount, double middle) {
  if (amount == 0) return labels;
  return ops::Add(scope, ops::Mul(scope, labels, 1.0 - amount), amount * middle);
}

}  // namespace

Output WeightedLoss(const Scope& scope, const Output& losses, const LossOptions& options) {
  const Scope own = scope.NewSubScope("weighted_loss");
  if (!own.ok() || !losses.valid()) return Output();
  // Halves would lose the count of a batch.
  const bool is_half =
      losses.type() == ElementType::kHalf || losses.type() == ElementType::kBfloat16;
  const ElementType type =
      losses.type() == ElementType::kDouble ? losses.type() : ElementType::kFloat;
  const Output values = losses.type() == type ? losses : ops::Cast(own, losses, type);
  Output weights = options.weights.ToOutput(own);
  if (!own.ok()) return Output();
  if (weights.type() != type) weights = ops::Cast(own, weights, type);
  own.UpdateStatus(CheckWeights(losses, weights));
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
  Output weights = options.weights.ToOutput(own);
  if (weights.type() != delta.type()) weights = ops::Cast(own, weights, delta.type());
  own.UpdateStatus(CheckWeights(delta, weights));
  if (!own.ok() || delta.shape().unknown_rank() || delta.shape().rank() < 1) {
    own.UpdateStatus(InvalidArgument("mean_pairwise_squared_error: the shape ",
                                     delta.shape().ToString(), " must have a known rank above 0"));
    return Output();
  }
  std::vector<int32_t> axes;
  for (int i = 1; i < delta.shape().rank(); ++i) axes.push_back(i);
  const auto sum = [&](const Output& x) {
    return ops::Sum(own, x, Tensor::Vector<int32_t>(axes), {.keep_dims = true});
  };
  const Output there = ops::Cast(own, ops::NotEqual(own, weights, 0.0), delta.type());
  const Output n = sum(ops::Mul(own, ops::OnesLike(own, delta), there));
  const Output others = ops::Maximum(own, ops::Sub(own, n, 1.0), 0.0);
  const Output squares = ops::DivNoNan(own, sum(ops::Square(own, delta)), others);
  const Output products =
      ops::DivNoNan(own, ops::Square(own, sum(delta)), ops::Mul(own, n, others));
  const Output rows = ops::Mul(own, 2.0, ops::Sub(own, squares, products));
  LossOptions summed = options;
  summed.weights = weights;
  summed.reduction = Reduction::kSum;
  return WeightedLoss(own, rows, summed);
}

Output SigmoidCrossEntropy(const Scope& scope, const Input& labels, const Output& logits,
                           double label_smoothing, const LossOptions& options) {
  const Scope own = scope.NewSubScope("sigmoid_cross_entropy");
  Output y = Labels(own, labels, logits);
  if (!own.ok()) return Output();
  y = Smooth(own, y, label_smoothing, 0.5);
  // max(x, 0) - x y + log(1 + exp(-|x|)): nothing overflows.
  const Output tail = ops::Log1p(own, ops::Exp(own, ops::Neg(own, ops::Abs(own, logits))));
  const Output front = ops::Sub(own, ops::Relu(own, logits), ops::Mul(own, logits, y));
  return WeightedLoss(own, ops::Add(own, front, tail), options);
}

Output SoftmaxCrossEntropy(const Scope& scope, const Input& labels, const Output& logits,
                           double label_smoothing, const LossOptions& options) {
  const Scope own = scope.NewSubScope("softmax_cross_entropy");
  Output y = Labels(own, labels, logits);
  if (!own.ok()) return Output();
  const PartialShape& shape = logits.shape();
  if (label_smoothing != 0 && (shape.unknown_rank() || shape.rank() != 2 || shape.dim(1) < 1)) {
    own.UpdateStatus(InvalidArgument(
        "softmax_cross_entropy: smoothing needs a known number of classes, not logits of shape ",
        shape.ToString()));
    return Output();
  }
  if (label_smoothing != 0) {
    y = Smooth(own, y, label_smoothing, 1.0 / static_cast<double>(shape.dim(1)));
  }
  return WeightedLoss(
      own, ops::SoftmaxCrossEntropyWithLogits(own, logits, ops::StopGradient(own, y)).loss,
      options);
}

Output SparseSoftmaxCrossEntropy(const Scope& scope, const Output& labels, const Output& logits,
                                 const LossOptions& options) {
  const Scope own = scope.NewSubScope("sparse_softmax_cross_entropy");
  if (!own.ok() || !labels.valid() || !logits.valid()) return Output();
  const PartialShape& shape = logits.shape();
  if (!shape.unknown_rank() && shape.rank() == 2) {
    return WeightedLoss(own, ops::SparseSoftmaxCrossEntropyWithLogits(own, logits, labels).loss,
                        options);
  }
  if (shape.unknown_rank() || shape.rank() < 1 || shape.dim(shape.rank() - 1) < 1) {
    own.UpdateStatus(InvalidArgument("sparse_softmax_cross_entropy: logits of shape ",
                                     shape.ToString(), " must have a known number of classes"));
    return Output();
  }
  const int32_t classes = static_cast<int32_t>(shape.dim(shape.rank() - 1));
  const Output rows =
      ops::SparseSoftmaxCrossEntropyWithLogits(own, ops::Reshape(own, logits, {-1, classes}),
                                               ops::Reshape(own, labels, {-1}))
          .loss;
  return WeightedLoss(own, ops::Reshape(own, rows, ops::Shape(own, labels)), options);
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
