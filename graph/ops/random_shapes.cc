#include "graph/ops/random_shapes.h"

#include <vector>

#include "devices/status_macros.h"
#include "graph/ops/shape_helpers.h"

namespace troupe {

using C = InferenceContext;

absl::Status CheckSeedShape(InferenceContext* c, int i) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape seed, C::WithRank(c->input(i), 1));
  return WithValue(seed.dim(0), 2).status();
}

absl::Status SeededShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckSeedShape(c, 1));
  return FirstInputAsShape(c);
}

absl::Status KeyedShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape key, C::WithRank(c->input(1), 1));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 1).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(3), 0).status());
  TROUPE_RETURN_IF_ERROR(WithValue(key.dim(0), 1).status());
  return FirstInputAsShape(c);
}

absl::Status InputAsShapeShape(InferenceContext* c, int i) {
  return SetShape(c, c->InputAsShape(i));
}

absl::Status CandidateSamplerShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t num_sampled, c->attrs().Get<int64_t>("num_sampled"));
  TROUPE_ASSIGN_OR_RETURN(const int64_t num_true, c->attrs().Get<int64_t>("num_true"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape true_classes, C::WithRank(c->input(0), 2));
  c->set_output(0, C::VectorOf(num_sampled));
  c->set_output(1, PartialShape({true_classes.dim(0), num_true}));
  c->set_output(2, C::VectorOf(num_sampled));
  return absl::OkStatus();
}

absl::Status ShapeThenParametersShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape samples, c->InputAsShape(0));
  const PartialShape& parameters = c->input(1);
  if (samples.unknown_rank() || parameters.unknown_rank()) return SetShape(c, PartialShape());
  std::vector<int64_t> dims(samples.dims().begin(), samples.dims().end());
  dims.insert(dims.end(), parameters.dims().begin(), parameters.dims().end());
  return SetShape(c, PartialShape(std::move(dims)));
}

}  // namespace troupe
