/// Sparse tensors on CUDA: indices [n, rank] of int64, values [n].
#ifndef TROUPE_KERNELS_CUDA_SPARSE_H_
#define TROUPE_KERNELS_CUDA_SPARSE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/indexing.h"

namespace troupe::cuda {

/// Sizes of a shape, or what belongs to each of its dimensions.
struct SparseDims {
  static constexpr int kMost = 16;
  int rank = 0;
  int64_t sizes[kMost];
};

/// Indices of `n` elements. Those that are not in the shape are reported: position in row-major
/// order, index, limit.
struct SparseIndicesIn {
  const int64_t* indices;
  int64_t n;
  SparseDims shape;
};

/// Keys of 8 bytes if `wide`, else 4.
struct SparseKeys {
  void* data;
  bool wide;
};

/// keys[begin + i] is the place of element i, moved by `offset`, in a dense tensor of shape `in`.
/// An element that is not in its shape has the place 0.
cudaError_t LaunchPlaceKeys(const SparseIndicesIn& elements, const SparseDims& offset,
                            const SparseDims& in, SparseKeys keys, int64_t begin, LateCheck check,
                            cudaStream_t stream);
/// keys[i] is index `column` of element i, which must be in [0, limit) and is `limit` otherwise.
/// Indices are int64 or int32. The element's number is reported, the index and the limit.
struct SparseColumn {
  Indices indices;
  int64_t n, rank, column, limit;
};
cudaError_t LaunchColumnKeys(const SparseColumn& column, SparseKeys keys, LateCheck check,
                             cudaStream_t stream);
/// The indices in a tensor of shape `in` of the places that are the keys.
cudaError_t LaunchUnravel(const void* keys, bool wide, int64_t n, const SparseDims& in,
                          int64_t* indices, cudaStream_t stream);
/// The indices in a tensor of shape `to`, of as many elements.
cudaError_t LaunchSparseReshape(const SparseIndicesIn& from, const SparseDims& to, int64_t* indices,
                                LateCheck check, cudaStream_t stream);

// ---- Slices and parts.

/// at[i] is how many of the elements before element i are in the slice of `size` from `start` on,
/// at[n] how many are in all. `scratch`: as LaunchScan wants it for n + 1 numbers.
cudaError_t LaunchCountSlice(const SparseIndicesIn& elements, const SparseDims& start,
                             const SparseDims& size, uint64_t* at, void* scratch, LateCheck check,
                             cudaStream_t stream);
/// places[at[i]] is i for elements in the slice.
cudaError_t LaunchListKept(const uint64_t* at, int64_t n, uint32_t* places, cudaStream_t stream);
/// Of the elements at so many `places`, the indices less `start`.
cudaError_t LaunchTakeIndices(const int64_t* indices, const uint32_t* places, int64_t n,
                              const SparseDims& start, int64_t* out, cudaStream_t stream);
/// keys[i] is the part of a dimension that element i is in: the first `larger` ones have one more
/// than `part`. Those that are not in the shape are in the first one.
cudaError_t LaunchPartKeys(const SparseIndicesIn& elements, int axis, int64_t part, int64_t larger,
                           uint32_t* keys, LateCheck check, cudaStream_t stream);

/// For each of `n` indices the value of the equal one of `from`, which are in order, 0 if there is
/// none. `start` is subtracted from the n. `met`: how many have one; reported with `from`'s number
/// if it is another: met, number. Elements are known by their size.
struct SparseMatch {
  const int64_t* from;
  int64_t num_from;
  const void* values;
  const int64_t* to;
  int64_t n;
  SparseDims start;
  void* out;
  unsigned* met;
};
cudaError_t LaunchMatch(int64_t element, const SparseMatch& match, LateCheck check,
                        cudaStream_t stream);

// ---- Rows.

/// at[r] is where the elements of row r begin if rows without any get one, at[rows] how many
/// elements there are then. `scratch`: as LaunchScan wants it for rows + 1 numbers.
cudaError_t LaunchFilledStarts(const int64_t* starts, int64_t rows, uint64_t* at, void* scratch,
                               cudaStream_t stream);
/// Elements in the order of rows, of which row r begins at starts[r], with what fills empty rows.
struct FillRows {
  const int64_t* indices;
  const void *values, *filling;
  int64_t n, rows, rank;
  const void* keys;  ///< The rows, in order; of 8 bytes if `wide`, else 4.
  bool wide;
  const uint32_t* places;  ///< Which elements they are.
  const int64_t* starts;
  const uint64_t* at;
  int64_t* out_indices;
  void* out_values;
  bool* empty;
  int64_t* map;  ///< Where each element has gone.
};
cudaError_t LaunchFillRows(int64_t element, const FillRows& fill, cudaStream_t stream);

/// taken[map[i]] = 1, and 0 for others; bad ones are reported.
cudaError_t LaunchMarkTaken(const int64_t* map, int64_t n, int64_t size, uint8_t* taken,
                            LateCheck check, cudaStream_t stream);
/// rest[i] = values[i], 0 for what is taken: of floating-point numbers as they are, of integers as
/// int64.
cudaError_t LaunchRest(Number type, const void* values, const uint8_t* taken, int64_t n, void* rest,
                       cudaStream_t stream);

// ---- Products.

/// out = a * b, for a sparse matrix whose elements are sorted by the row of the product that they
/// add to: the r-th is element places[r].
struct SparseProduct {
  Number type;
  Indices indices;  ///< [count, 2], of int64 or int32.
  const void* values;
  int64_t count;
  bool adjoint;    ///< Of a.
  const void* b;   ///< [inner, columns]
  bool conjugate;  ///< Of b's elements.
  int64_t rows, inner, columns;
  const uint32_t* places;
  const int64_t* starts;  ///< Of rows of the product.
  void* out;
};
/// Columns of a that are not in [0, inner) are reported: element, index, limit.
cudaError_t LaunchSparseProduct(const SparseProduct& product, LateCheck check, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SPARSE_H_
