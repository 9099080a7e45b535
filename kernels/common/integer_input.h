/// Reading inputs, and writing outputs, that hold sizes, axes and indices.
#ifndef TROUPE_KERNELS_COMMON_INTEGER_INPUT_H_
#define TROUPE_KERNELS_COMMON_INTEGER_INPUT_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "devices/tensor.h"
#include "kernels/common/strided_copy.h"

namespace troupe {

/// All elements of an integer tensor of any shape. InvalidArgument for other element types; `what`
/// names the input in messages.
absl::StatusOr<DimVector> ReadIntegers(const Tensor& tensor, std::string_view what);
/// The same of a tensor that must have rank 1.
absl::StatusOr<DimVector> ReadIntegerVector(const Tensor& tensor, std::string_view what);
/// The only element of a tensor that must have rank 0.
absl::StatusOr<int64_t> ReadIntegerScalar(const Tensor& tensor, std::string_view what);
/// The same, but, as some ops take it from old graphs, a vector of one element will do.
absl::StatusOr<int64_t> ReadOneInteger(const Tensor& tensor, std::string_view what);
/// A shape from a vector of sizes (or a scalar, as old graphs have it); all at least 0.
absl::StatusOr<Shape> ReadShape(const Tensor& tensor, std::string_view what);
/// The same, but from a vector only.
absl::StatusOr<Shape> ReadShapeVector(const Tensor& tensor, std::string_view what);
/// Makes output `i` a vector of `values`, of type int32 or int64, on the host. InvalidArgument for
/// one that does not fit.
absl::Status PutIntegers(KernelContext& ctx, int i, ElementType type,
                         absl::Span<const int64_t> values);
/// Writes `n` integers to the elements of `to`, which are of `type`, from `at` on: int16, uint16,
/// int32 or int64.
void StoreIntegers(const int64_t* from, int64_t n, ElementType type, void* to, int64_t at);
/// `axis` counted from the front; InvalidArgument unless it lies in [-rank, rank).
absl::StatusOr<int> ResolveAxis(int64_t axis, int rank, std::string_view what);

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_INTEGER_INPUT_H_
