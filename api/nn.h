/// Building blocks of networks that are more than one op.
#ifndef TROUPE_API_NN_H_
#define TROUPE_API_NN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Keeps each element of `x` (floating) with probability `keep_probability` (a scalar of x's type),
/// scaled by its inverse, and makes the others zero. Same shape. (Srivastava et al. 2014.) The seed
/// is by TensorFlow's rule. `noise_shape` (int32 or int64, a vector) is broadcast to x's shape:
/// along an axis where it is 1 elements are kept or dropped together, as in [batch, 1, 1, channels]
/// whole channels are. Absent: each element on its own.
Output Dropout(const Scope& scope, const Output& x, const Input& keep_probability,
               std::optional<int64_t> seed = std::nullopt,
               const std::optional<Input>& noise_shape = std::nullopt);

/// Over which axes; negative ones count from the last. Default: over all.
struct ReduceOptions {
  std::optional<std::vector<int32_t>> axes = std::nullopt;
  bool keep_dims = false;  ///< They stay, with size 1.
};
/// The mean, sum, product, largest and smallest of x's elements along axes.
Output ReduceMean(const Scope& scope, const Output& x, const ReduceOptions& options = {});
Output ReduceSum(const Scope& scope, const Output& x, const ReduceOptions& options = {});
Output ReduceProd(const Scope& scope, const Output& x, const ReduceOptions& options = {});
Output ReduceMax(const Scope& scope, const Output& x, const ReduceOptions& options = {});
Output ReduceMin(const Scope& scope, const Output& x, const ReduceOptions& options = {});
/// log(sum(exp(x))), of floating x, without overflow.
Output ReduceLogSumExp(const Scope& scope, const Output& x, const ReduceOptions& options = {});
/// Whether any, or all, of bools hold.
Output ReduceAny(const Scope& scope, const Output& x, const ReduceOptions& options = {});
Output ReduceAll(const Scope& scope, const Output& x, const ReduceOptions& options = {});

/// Of independent classes, log(1 + exp(x)) - x y for each of the `logits` x and `labels` y, which
/// are floating, of one type and shape: without overflow, and with the gradient sigmoid(x) - y of x
/// everywhere.
Output SigmoidCrossEntropyWithLogits(const Scope& scope, const Output& labels,
                                     const Output& logits);

/// The part of rows of `logits` [n, classes] whose largest element is the one that `labels` [n]
/// (int32 or int64) names: a scalar float.
Output Accuracy(const Scope& scope, const Output& logits, const Output& labels);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_NN_H_
