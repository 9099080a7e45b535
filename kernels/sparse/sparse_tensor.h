/// Sparse tensors as kernels take and give them: `indices` [n, rank] of int64, `values` [n],
/// `shape` [rank].
#ifndef TROUPE_KERNELS_SPARSE_SPARSE_TENSOR_H_
#define TROUPE_KERNELS_SPARSE_SPARSE_TENSOR_H_

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/shape.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"

namespace troupe {

/// Indices of elements, each of `rank` numbers, in memory that belongs to somebody else.
class SparseIndices {
 public:
  /// `indices` must be a matrix of int64.
  explicit SparseIndices(const Tensor& indices)
      : data_(indices.unchecked_data<int64_t>()),
        size_(indices.dim(0)),
        rank_(static_cast<int>(indices.dim(1))) {}

  int64_t size() const { return size_; }
  int rank() const { return rank_; }
  const int64_t* operator[](int64_t i) const { return data_ + i * rank_; }

 private:
  const int64_t* data_;
  int64_t size_;
  int rank_;
};

/// -1, 0 or 1: how two indices of one rank stand to each other in row-major order.
inline int CompareIndices(const int64_t* a, const int64_t* b, int rank) {
  for (int i = 0; i < rank; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

/// Copies an index, which mostly has two numbers; gives where the next one goes.
inline int64_t* CopyIndex(const int64_t* from, int rank, int64_t* to) {
  if (rank != 2) return std::copy_n(from, rank, to);
  to[0] = from[0];
  to[1] = from[1];
  return to + 2;
}

/// A sparse tensor among the inputs. Its index is in bounds if `CheckBounds` has said so.
struct SparseTensor {
  SparseTensor(const Tensor& indices_matrix, const Tensor& values_vector, const Shape& of)
      : indices(indices_matrix), values(values_vector), shape(of) {}

  SparseIndices indices;
  Tensor values;
  Shape shape;

  int64_t size() const { return indices.size(); }
  int rank() const { return indices.rank(); }
  /// The place of element i in a dense tensor of the shape.
  int64_t Linear(int64_t i) const {
    int64_t place = 0;
    for (int d = 0; d < rank(); ++d) place = place * shape.dim(d) + indices[i][d];
    return place;
  }
  /// InvalidArgument names an index that is out of bounds.
  absl::Status CheckBounds(std::string_view what) const;
  /// The same, and that indices are in row-major order, each once.
  absl::Status CheckOrder(std::string_view what) const;
};

/// Reads a sparse tensor from three inputs. InvalidArgument unless their shapes fit each other.
absl::StatusOr<SparseTensor> ReadSparse(const Tensor& indices, const Tensor& values,
                                        const Tensor& shape, std::string_view what);
inline absl::StatusOr<SparseTensor> ReadSparse(KernelContext& ctx, int first,
                                               std::string_view what) {
  return ReadSparse(ctx.input(first), ctx.input(first + 1), ctx.input(first + 2), what);
}

/// InvalidArgument unless `indices` is a matrix and `values` has as many elements as it has rows.
absl::Status CheckIndicesAndValues(const Tensor& indices, const Tensor& values,
                                   std::string_view what);

/// InvalidArgument unless `indices` is a matrix with rows of `rank` elements.
absl::Status CheckRowsOf(const Tensor& indices, int64_t rank, std::string_view what);

/// Makes output `i` a matrix of the `rows` indices in `flat`, each of `rank` numbers.
absl::Status PutIndices(KernelContext& ctx, int i, absl::Span<const int64_t> flat, int64_t rows,
                        int rank);

/// A vector of the elements of `values` at `places`, which are in bounds.
absl::StatusOr<Tensor> TakeValues(KernelContext& ctx, const Tensor& values,
                                  absl::Span<const int64_t> places);
/// Makes output `i` a vector of the elements of `values` at `places`, which are in bounds.
absl::Status PutValues(KernelContext& ctx, int i, const Tensor& values,
                       absl::Span<const int64_t> places);

/// The places of elements in row-major order of their indices; equal ones keep their order.
std::vector<int64_t> SortedPlaces(const SparseIndices& indices);

}  // namespace troupe

#endif  // TROUPE_KERNELS_SPARSE_SPARSE_TENSOR_H_
