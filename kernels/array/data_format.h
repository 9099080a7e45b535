/// What data formats do to the numbers of dimensions, and to vectors with an element for each.
#ifndef TROUPE_KERNELS_ARRAY_DATA_FORMAT_H_
#define TROUPE_KERNELS_ARRAY_DATA_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "devices/shape.h"

namespace troupe {

/// A small number for each dimension of a data format.
using FormatDims = absl::InlinedVector<int64_t, 8>;

/// The place in `target` of each dimension of `source`. InvalidArgument unless they are the same 4
/// or 5 letters, each of them once.
absl::StatusOr<FormatDims> MapFormatDims(const std::string& source, const std::string& target);

/// Which row of a tensor of shape `shape`, with one for each dimension of the format, or for each
/// one of space, becomes each row of the permuted one. InvalidArgument for other shapes.
absl::StatusOr<FormatDims> PermuteFormatRows(const Shape& shape, const std::string& source,
                                             const std::string& target);

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_DATA_FORMAT_H_
