/// Batches of matrices: the last two dimensions of tensors.
#ifndef TROUPE_KERNELS_LINALG_BATCH_H_
#define TROUPE_KERNELS_LINALG_BATCH_H_

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/shape.h"
#include "kernels/kernel.h"

namespace troupe {

/// The size of the square matrices in the last two dimensions; InvalidArgument if they are none.
absl::StatusOr<int64_t> SquareSize(const Shape& shape, std::string_view what);

/// Whether `rhs` holds right sides of systems with matrices of n rows; InvalidArgument.
absl::Status CheckRightSides(const Shape& matrix, const Shape& rhs, int64_t n);

/// InvalidArgument for matrix number `index` of `count`, which cannot be inverted.
absl::Status SingularMatrix(int64_t index, int64_t count);

/// InvalidArgument for matrix number `index` of `count`, of which `what` is wrong.
absl::Status FailedMatrix(int64_t index, int64_t count, std::string_view what);
inline constexpr std::string_view kNotInvertible = "the matrix is not invertible";
inline constexpr std::string_view kNoEigenvalues =
    "the eigenvalues were not found: the input may hold values that are not finite";

/// The matrices of a tensor.
struct MatrixSizes {
  /// The dimensions of the batch, then `below`.
  absl::StatusOr<Shape> Below(std::initializer_list<int64_t> below) const;

  int64_t count = 1, rows = 0, columns = 0;
  absl::Span<const int64_t> batch;  ///< Of the shape, which must outlive this.
};
/// InvalidArgument for a rank below 2.
absl::StatusOr<MatrixSizes> MatrixSizesOf(const Shape& shape);
/// InvalidArgument, too, for matrices that are not square.
absl::StatusOr<MatrixSizes> SquareSizesOf(const Shape& shape);

/// Allocates output i with matrices, or vectors, of the sizes `below`.
absl::StatusOr<Tensor*> AllocateBelow(KernelContext& ctx, int i, ElementType type,
                                      const MatrixSizes& sizes,
                                      std::initializer_list<int64_t> below);
/// Output i, which is not computed: a vector of no elements.
absl::Status LeaveOut(KernelContext& ctx, int i, ElementType type);

/// Runs `work(i)`, which is false if it fails, for the `count` matrices of a batch, each of which
/// takes about `nanoseconds`. The first that failed; `count` if none did.
int64_t FirstFailure(KernelContext& ctx, int64_t count, double nanoseconds,
                     absl::FunctionRef<bool(int64_t)> work);

/// The results of an operation on two batches.
struct MatrixBatch {
  Shape shape;
  /// For each result, the numbers of the matrices of the two batches that it is made of.
  absl::InlinedVector<std::pair<int64_t, int64_t>, 1> pairs;
};

/// For batches of shapes `a` and `b`, of rank 2 at least, and results of `rows` x `columns`. The
/// outer dimensions must be equal, or are broadcast; InvalidArgument.
absl::StatusOr<MatrixBatch> PairMatrices(const Shape& a, const Shape& b, bool broadcast,
                                         int64_t rows, int64_t columns);

/// The shape of these results alone.
absl::StatusOr<Shape> PairedShape(const Shape& a, const Shape& b, bool broadcast, int64_t rows,
                                  int64_t columns);

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_BATCH_H_
