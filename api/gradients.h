/// Symbolic gradients.
#ifndef TROUPE_API_GRADIENTS_H_
#define TROUPE_API_GRADIENTS_H_

#include <vector>

#include "absl/types/span.h"
#include "api/scope.h"
#include "devices/export.h"
#include "graph/gradients/add_gradients.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Adds to the scope's graph, under `gradients/`, nodes that compute d(sum of ys)/dx for every x;
/// one tensor of x's type and shape per x, an invalid one where no y depends on x. `grad_ys`, if
/// given, are the gradients that flow into the ys. Integers end the chain, as in TensorFlow:
/// nothing depends on x through one, nor does a y that is one. Errors go to the scope, and all
/// gradients are invalid then: an op without a gradient, a y that is no number, a complex y without
/// a grad_y.
OutputList Gradients(const Scope& scope, absl::Span<const Output> ys, absl::Span<const Output> xs,
                     absl::Span<const Output> grad_ys = {});

/// The same; what is looked up in a table has a sparse gradient, and options can be given.
std::vector<Gradient> SparseGradients(const Scope& scope, absl::Span<const Output> ys,
                                      absl::Span<const Output> xs,
                                      absl::Span<const Output> grad_ys = {},
                                      const GradientOptions& options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_GRADIENTS_H_
