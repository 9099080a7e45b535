#include "graph/ops/sparse_shapes.h"

#include "devices/status_macros.h"

namespace troupe {

using C = InferenceContext;

absl::StatusOr<SparseSizes> SparseInputSizes(InferenceContext* c, int first) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(first), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape values, C::WithRank(c->input(first + 1), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, C::WithRank(c->input(first + 2), 1));
  SparseSizes sizes;
  TROUPE_ASSIGN_OR_RETURN(sizes.count, C::MergeDim(indices.dim(0), values.dim(0)));
  TROUPE_ASSIGN_OR_RETURN(sizes.rank, C::MergeDim(indices.dim(1), shape.dim(0)));
  return sizes;
}

void SetSparseOutput(InferenceContext* c, SparseSizes sizes) {
  c->set_output(0, PartialShape({sizes.count, sizes.rank}));
  c->set_output(1, PartialShape({sizes.count}));
  c->set_output(2, PartialShape({sizes.rank}));
}

}  // namespace troupe
