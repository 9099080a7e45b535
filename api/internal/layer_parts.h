/// What layers are made of. For `api/layers`.
#ifndef TROUPE_API_INTERNAL_LAYER_PARTS_H_
#define TROUPE_API_INTERNAL_LAYER_PARTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "api/layers/weight_options.h"
#include "api/scope.h"
#include "api/variable_scope.h"

namespace troupe::layers {

/// Size `axis` of x, of a known rank, as a scalar int32; a constant if it is known.
Output Dim(const Scope& scope, const Output& x, int axis);

/// Size `axis`, counted from the back if it is negative; -1, with an error in the scope, unless x
/// has at least `rank` axes and that one is known and above 0.
int64_t KnownDim(const Scope& scope, const char* layer, const Output& x, int axis, int rank);

/// False, with an error in the scope, unless x has `rank` axes.
bool HasRank(const Scope& scope, const char* layer, const Output& x, int rank);

/// y in the shape of `like` up to `axis`, and then `sizes`.
Output ReshapeLike(const Scope& scope, const Output& y, const Output& like, int axis,
                   const std::vector<int32_t>& sizes);

/// The variable scope of a layer: `name`, or a default one of `base`.
Scope LayerScope(const Scope& scope, const std::string& name, const char* base);

/// A variable's value, put together if it is in parts. InvalidArgument, in the scope, for sizes
/// that are no shape.
Output Weights(const Scope& scope, std::string_view name, absl::Span<const int64_t> sizes,
               const VariableOptions& options);

/// The same of "kernel", or another name, as the options say.
Output Kernel(const Scope& scope, absl::Span<const int64_t> sizes, ElementType type,
              const WeightOptions& options, const char* name = "kernel");

/// Adds a bias of the size of y's last axis, or of the sizes of the last ones, if the options want
/// one, and what comes after it.
Output Finish(const Scope& scope, Output y, absl::Span<const int64_t> bias_sizes,
              const WeightOptions& options);

/// 1, the numbers of the axes of space, 1: for [batch, space..., channels].
std::vector<int64_t> OfSpace(absl::Span<const int64_t> space);

}  // namespace troupe::layers

#endif  // TROUPE_API_INTERNAL_LAYER_PARTS_H_
