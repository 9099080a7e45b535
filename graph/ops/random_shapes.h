/// Shape functions of random ops in several files.
#ifndef TROUPE_GRAPH_OPS_RANDOM_SHAPES_H_
#define TROUPE_GRAPH_OPS_RANDOM_SHAPES_H_

#include "absl/status/status.h"
#include "graph/shape_inference.h"

namespace troupe {

/// Input i is a vector of two integers.
absl::Status CheckSeedShape(InferenceContext* c, int i);

/// Output 0: input 0, a vector of sizes. Input 1 is a seed.
absl::Status SeededShape(InferenceContext* c);
/// The same with a key, a counter and the number of an algorithm as inputs 1 to 3.
absl::Status KeyedShape(InferenceContext* c);
/// Output 0: input i, a vector of sizes.
absl::Status InputAsShapeShape(InferenceContext* c, int i);
/// Of the ops that draw `num_sampled` classes.
absl::Status CandidateSamplerShape(InferenceContext* c);
/// Output 0: input 0, a vector of sizes, and then the sizes of input 1.
absl::Status ShapeThenParametersShape(InferenceContext* c);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_RANDOM_SHAPES_H_
