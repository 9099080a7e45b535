/// What gradients of linear algebra are written with: batches of matrices, in the last two
/// dimensions.
#ifndef TROUPE_GRAPH_GRADIENTS_MATRIX_GRAD_H_
#define TROUPE_GRAPH_GRADIENTS_MATRIX_GRAD_H_

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {

/// a * b, with their conjugate transposes if asked for.
Output MatrixProduct(GradientContext& g, Output a, bool adjoint_a, Output b, bool adjoint_b);
inline Output MatrixProduct(GradientContext& g, Output a, Output b) {
  return MatrixProduct(g, a, false, b, false);
}

/// The conjugate transposes.
Output Adjoint(GradientContext& g, Output x);

/// The diagonals from `lower` below the main one to `upper` above it; -1: all.
Output BandPart(GradientContext& g, Output x, int64_t lower, int64_t upper);

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_MATRIX_GRAD_H_
