// Permutations that are never made as a whole.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// A scalar if index, seed and max_index are for one index; else a vector.
absl::Status RandomIndexShuffleShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape index, C::WithRankAtMost(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(PartialShape seed, C::WithRankAtLeast(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(seed, C::WithRankAtMost(seed, 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape max_index, C::WithRankAtMost(c->input(2), 1));
  if (!seed.unknown_rank() && seed.dim(seed.rank() - 1) != 3) {
    return InvalidArgument("seed must have shape [3] or [n, 3], got shape ", seed.ToString());
  }
  const bool unknown = index.unknown_rank() || seed.unknown_rank() || max_index.unknown_rank();
  int64_t outputs = PartialShape::kUnknown;
  bool vector = false;
  const auto merge = [&](const PartialShape& shape, int scalar_rank) {
    if (shape.unknown_rank() || shape.rank() == scalar_rank) return absl::OkStatus();
    vector = true;
    const int64_t size = shape.dim(0);
    if (outputs == PartialShape::kUnknown) {
      outputs = size;
    } else if (outputs > 1 && size > 1 && size != outputs) {
      return InvalidArgument("index, seed and max_index must be for the same number of indices, ",
                             "got shapes ", index.ToString(), ", ", seed.ToString(), " and ",
                             max_index.ToString());
    }
    return absl::OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(merge(index, 0));
  TROUPE_RETURN_IF_ERROR(merge(seed, 1));
  TROUPE_RETURN_IF_ERROR(merge(max_index, 0));
  if (vector) return SetShape(c, C::VectorOf(outputs));
  return SetShape(c, unknown ? PartialShape() : C::Scalar());
}

}  // namespace

REGISTER_OP("RandomIndexShuffle")
    .Signature("index: dtype, seed: Tseed, max_index: dtype -> output: dtype")
    .Attr("rounds: int = 4")
    .Attr("dtype: {int32, uint32, int64, uint64}")
    .Attr("Tseed: {int32, uint32, int64, uint64}")
    .SetShapeFn(RandomIndexShuffleShape)
    .Doc(
        "Gives where `index` goes in a permutation of [0, max_index], without making it as a "
        "whole. `seed`, three integers, chooses the permutation; `rounds`, an even number of at "
        "least 4, how well it mixes. For several indices `index` and `max_index` are vectors [n], "
        "or scalars for all, and `seed` is [n, 3], or [3] for all.");

}  // namespace troupe
