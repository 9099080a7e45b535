// Shapes of random tensors.
#include "devices/status_macros.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

absl::Status RandomUniformIntShape(InferenceContext* c) {
  for (int i = 1; i < 3; ++i) {
    TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(i), 0).status());
  }
  return FirstInputAsShape(c);
}

}  // namespace troupe
