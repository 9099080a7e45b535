/// What scattered updates and gathered slices have in common, for shape functions.
#ifndef TROUPE_GRAPH_OPS_SCATTER_SHAPE_H_
#define TROUPE_GRAPH_OPS_SCATTER_SHAPE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/shape.h"

namespace troupe {

/// InvalidArgument unless `updates` may be `indices`[:-1] + `output`[depth:], where depth is the
/// last size of `indices`, and unless there is something to write to where there is something to
/// write.
absl::Status CheckScatterNdShapes(const PartialShape& output, const PartialShape& indices,
                                  const PartialShape& updates);

/// `indices`[:-1] + `params`[depth:], where depth is the last size of `indices`.
absl::StatusOr<PartialShape> GatherNdOutputShape(const PartialShape& params,
                                                 const PartialShape& indices);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_SCATTER_SHAPE_H_
