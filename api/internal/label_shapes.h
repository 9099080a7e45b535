/// Which shapes of labels, predictions and weights go together, as `tf.losses` and `tf.metrics` of
/// TensorFlow 1.x say. For `api/layers`.
///
/// What static shapes tell is known at once: InvalidArgument, in the scope. Of the rest the graph
/// checks the sizes of each step; all of that runs on the host.
#ifndef TROUPE_API_INTERNAL_LABEL_SHAPES_H_
#define TROUPE_API_INTERNAL_LABEL_SHAPES_H_

#include "api/scope.h"

namespace troupe {

struct LabeledPredictions {
  Output labels, predictions;
};

/// The last axis, of size 1, is taken from that one of the two which has one axis more than it
/// should: predictions have `axes_more` axes more than labels. If ranks are known, an axis of
/// another size stays where it is.
LabeledPredictions Squeezed(const Scope& scope, const Output& labels, const Output& predictions,
                            int axes_more = 0);

/// `labels`, checked to be of the shape of `predictions`; with `but_classes`, of that shape without
/// its last axis, of which there is one.
Output CheckedLabels(const Scope& scope, const Output& labels, const Output& predictions,
                     bool but_classes = false);

/// Squeezed, then checked.
LabeledPredictions Matched(const Scope& scope, const Output& labels, const Output& predictions);

/// Weights with one axis more than `values` without the last one, of size 1; if `may_grow`, those
/// with one axis less have one of size 1 more. Scalars stay what they are.
Output SqueezedWeights(const Scope& scope, const Output& weights, const Output& values,
                       bool may_grow = false);

/// `weights`, checked to be a scalar, or of the rank of `values` with sizes that are 1 or theirs.
Output CheckedWeights(const Scope& scope, const Output& weights, const Output& values);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_LABEL_SHAPES_H_
