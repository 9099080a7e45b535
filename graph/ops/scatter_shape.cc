#include "graph/ops/scatter_shape.h"

#include "absl/algorithm/container.h"
#include "devices/status_macros.h"
#include "graph/shape_inference.h"

namespace troupe {

using C = InferenceContext;

absl::Status CheckScatterNdShapes(const PartialShape& output, const PartialShape& indices,
                                  const PartialShape& updates) {
  if (absl::c_linear_search(output.dims(), 0) &&
      (C::NumElements(indices) > 0 || C::NumElements(updates) > 0)) {
    return InvalidArgument("There are indices or updates for an empty output of shape ",
                           output.ToString());
  }
  if (indices.unknown_rank() || updates.unknown_rank()) return absl::OkStatus();
  const int outer = indices.rank() - 1;
  const int64_t depth = indices.dim(outer);
  if (depth == -1) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices_outer, C::Subshape(indices, 0, outer));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape updates_outer, C::Subshape(updates, 0, outer));
  TROUPE_RETURN_IF_ERROR(C::Merge(indices_outer, updates_outer).status());
  TROUPE_ASSIGN_OR_RETURN(const PartialShape slice, C::Subshape(output, depth));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape updates_slice, C::Subshape(updates, outer));
  return C::Merge(slice, updates_slice).status();
}

absl::StatusOr<PartialShape> GatherNdOutputShape(const PartialShape& params,
                                                 const PartialShape& indices) {
  TROUPE_RETURN_IF_ERROR(C::WithRankAtLeast(params, 1).status());
  TROUPE_RETURN_IF_ERROR(C::WithRankAtLeast(indices, 1).status());
  const int64_t depth = C::DimOf(indices, -1);
  if (params.unknown_rank() || depth == -1) return PartialShape();
  if (depth > params.rank()) {
    return InvalidArgument("An index has ", depth, " components (indices of shape ",
                           indices.ToString(), "), but the tensor only ", params.rank(),
                           " dimensions (shape ", params.ToString(), ")");
  }
  TROUPE_ASSIGN_OR_RETURN(const PartialShape outer, C::Subshape(indices, 0, -1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape inner, C::Subshape(params, depth));
  return outer.Concatenate(inner);
}

}  // namespace troupe
