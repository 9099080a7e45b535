/// Losses of models, as TensorFlow 1.x's `tf.losses` computes them. Each is put into the collection
/// "losses", from which `TotalLoss` adds them up.
#ifndef TROUPE_API_LAYERS_LOSSES_H_
#define TROUPE_API_LAYERS_LOSSES_H_

#include <string>
#include <string_view>
#include <vector>

#include "api/scope.h"
#include "api/training/variables.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::losses {

/// How weighted losses become one number.
enum class Reduction {
  kNone,                ///< They do not: one loss for each element.
  kSum,                 ///< Their sum.
  kMean,                ///< By the sum of the weights.
  kSumOverBatchSize,    ///< By the number of elements.
  kSumByNonzeroWeights  ///< By the number of elements whose weight is not 0.
};

struct LossOptions {
  /// A scalar, or of the losses' rank with sizes that are 1 or the losses'.
  Input weights = 1.0f;
  Reduction reduction = Reduction::kSumByNonzeroWeights;
  std::string collection = collections::kLosses;  ///< "": none.
};

/// `losses` of any shape, times the weights, reduced: a scalar, or of the shape of `losses`.
/// InvalidArgument for weights of other sizes, in the scope or, where sizes are not known, in a
/// step. Nothing divided by nothing is 0.
Output WeightedLoss(const Scope& scope, const Output& losses, const LossOptions& options = {});

// Labels and predictions are floating, of one shape: InvalidArgument otherwise, in the scope or,
// where sizes are not known, in a step.

/// |p - y|.
Output AbsoluteDifference(const Scope& scope, const Input& labels, const Output& predictions,
                          const LossOptions& options = {});
/// (p - y)^2.
Output MeanSquaredError(const Scope& scope, const Input& labels, const Output& predictions,
                        const LossOptions& options = {});
/// d^2 / 2 for d = |p - y| up to `delta`, and delta * d - delta^2 / 2 above. (Huber 1964.)
Output HuberLoss(const Scope& scope, const Input& labels, const Output& predictions,
                 double delta = 1.0, const LossOptions& options = {});
/// -y log(p + epsilon) - (1 - y) log(1 - p + epsilon).
Output LogLoss(const Scope& scope, const Input& labels, const Output& predictions,
               double epsilon = 1e-7, const LossOptions& options = {});
/// 1 - sum(y * p) along `axis`, which stays with size 1: both are taken to be of length 1.
Output CosineDistance(const Scope& scope, const Input& labels, const Output& predictions, int axis,
                      const LossOptions& options = {});
/// max(0, 1 - (2 y - 1) * logits) of labels 0 and 1.
Output HingeLoss(const Scope& scope, const Input& labels, const Output& logits,
                 const LossOptions& options = {});
/// For each row of [batch, ...] the mean over pairs of elements of
/// ((p_i - p_j) - (y_i - y_j))^2, added up over rows: always a sum. Weights are a scalar or [batch,
/// 1, ...]; those of single elements say which of them count, and add up to that of the row.
Output MeanPairwiseSquaredError(const Scope& scope, const Input& labels, const Output& predictions,
                                const LossOptions& options = {});
/// Of independent classes: -y log(sigmoid(x)) - (1 - y) log(1 - sigmoid(x)), with labels moved by
/// `label_smoothing` towards 1/2.
Output SigmoidCrossEntropy(const Scope& scope, const Input& labels, const Output& logits,
                           double label_smoothing = 0.0, const LossOptions& options = {});
/// Of `labels` [..., classes], distributions, moved by `label_smoothing` towards 1 / classes: a
/// loss for each, [...]. No gradient goes to labels.
Output SoftmaxCrossEntropy(const Scope& scope, const Input& labels, const Output& logits,
                           double label_smoothing = 0.0, const LossOptions& options = {});
/// Of `labels` [...], int32 or int64 numbers of classes; `logits` [..., classes]. Labels, and
/// weights, may have a last axis of size 1 more.
Output SparseSoftmaxCrossEntropy(const Scope& scope, const Output& labels, const Output& logits,
                                 const LossOptions& options = {});

/// Puts a loss, a scalar of any origin, into a collection.
void AddLoss(const Scope& scope, const Output& loss,
             const std::string& collection = collections::kLosses);
/// The losses of the collection whose names begin with `prefix`, and all of them with the
/// regularization losses: a scalar. FailedPrecondition if there are none.
std::vector<Output> Losses(const Scope& scope, std::string_view prefix = "",
                           const std::string& collection = collections::kLosses);
Output TotalLoss(const Scope& scope, bool with_regularization = true);

}  // namespace troupe::losses
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_LOSSES_H_
