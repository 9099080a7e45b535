/// Keeping gradients small.
#ifndef TROUPE_API_TRAINING_CLIPPING_H_
#define TROUPE_API_TRAINING_CLIPPING_H_

#include <vector>

#include "api/scope.h"
#include "api/training/optimizer.h"
#include "devices/export.h"
#include "graph/gradients/gradient.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// min(max(t, low), high), element by element. Of a sparse gradient the rows that it has are
/// clipped: add up repeated ones first (`SumRepeatedRows`) if they should be as one.
Gradient ClipByValue(const Scope& scope, const Gradient& t, const Input& low, const Input& high);

/// t scaled down to an L2 norm of `clip_norm` if it is longer. With `axes` each part that these
/// span is scaled by itself (dense only). All zeros stay so.
Gradient ClipByNorm(const Scope& scope, const Gradient& t, const Input& clip_norm);
Output ClipByNorm(const Scope& scope, const Output& t, const Input& clip_norm,
                  const std::vector<int32_t>& axes);

/// The same by the norm divided by the number of elements.
Gradient ClipByAverageNorm(const Scope& scope, const Gradient& t, const Input& clip_norm);

/// sqrt(sum of all squares of all gradients), in their type; those that are not valid are left out.
/// InvalidArgument without any.
Output GlobalNorm(const Scope& scope, const std::vector<Gradient>& gradients);

/// All gradients scaled by clip_norm / max(norm, clip_norm), where `norm` is their global norm
/// unless it is given. If that is not finite, NaN: better a loud failure than a model that is
/// quietly lost. (Pascanu et al. 2013.)
std::vector<Gradient> ClipByGlobalNorm(const Scope& scope, const std::vector<Gradient>& gradients,
                                       const Input& clip_norm, Output norm = {});
/// For what `Optimizer::ComputeGradients` gives.
std::vector<GradientAndVariable> ClipByGlobalNorm(const Scope& scope,
                                                  std::vector<GradientAndVariable> gradients,
                                                  const Input& clip_norm, Output norm = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_CLIPPING_H_
