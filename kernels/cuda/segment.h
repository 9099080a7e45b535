/// Reductions of rows by segments on CUDA.
#ifndef TROUPE_KERNELS_CUDA_SEGMENT_H_
#define TROUPE_KERNELS_CUDA_SEGMENT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/indexing.h"

namespace troupe::cuda {

enum class SegmentOp : uint8_t { kSum, kMean, kProd, kMin, kMax };

/// out[s] is what the rows of `data` that have the id s become, in their order. Without rows it is
/// 0, of products 1, of extremes the finite number at the other end, which counts as one of the
/// rows then; 0 if `empty_is_zero`.
struct SegmentCall {
  SegmentOp op;
  Number type;  ///< A real floating-point type, or int32, which has no mean.
  Indices ids;  ///< int64 or int32.
  const void* data;
  void* out;
  int64_t rows, length;  ///< Of `data`.
  int64_t segments;
  bool empty_is_zero;
};

/// Up to so many rows each segment looks at every id.
inline constexpr int64_t kFewRows = 512;

/// For up to kFewRows rows, in any order. Ids below 0 are left out, those from `segments` on are
/// reported: position, id, limit.
cudaError_t LaunchReduceFew(const SegmentCall& call, LateCheck check, cudaStream_t stream);
/// Ids that are reported: position, id, limit. The others that are not in range are left out.
struct BadIds {
  bool negative, large;
};
/// What `LaunchSort` sorts: ids, or `segments` for those that are left out.
cudaError_t LaunchSegmentKeys(Indices ids, int64_t rows, int64_t segments, BadIds bad,
                              bool wide_keys, void* keys, LateCheck check, cudaStream_t stream);
/// starts[s] is where segment s begins, how many of the keys (of 8 or 4 bytes, in order) are less,
/// for s <= segments.
cudaError_t LaunchSegmentStarts(const void* keys, bool wide_keys, int64_t rows, int64_t segments,
                                int64_t* starts, cudaStream_t stream);
/// For rows in the order of segments: the r-th is row places[r], or r for nullptr.
cudaError_t LaunchReduceSorted(const SegmentCall& call, const uint32_t* places,
                               const int64_t* starts, cudaStream_t stream);
/// Reports ids that are negative or less than the one before them: position, id, the one before.
/// Puts the last id into `last`; for nullptr it is reported to `beyond`, with `segments`, unless it
/// is less.
struct SortedIds {
  Indices ids;
  int64_t rows;
  LateCheck order;
  int64_t* last;
  int64_t segments;
  LateCheck beyond;
};
cudaError_t LaunchCheckSorted(const SortedIds& sorted, cudaStream_t stream);

// ---- Rows that are picked by index.

/// What becomes of a sum of so many rows.
enum class SegmentScale : uint8_t { kNone, kMean, kRootMean };

/// out[s] is a sum over r of [starts[s], starts[s + 1]), which pairs are sorted by: of row
/// indices[places[r]] of `data`, `rows` times `length`; places[r] is r for nullptr.
struct PickedCall {
  Number type;  ///< A real floating-point type.
  const void* data;
  int64_t rows, length, segments, pairs;
  Indices indices;
  const uint32_t* places;
  const int64_t* starts;
  SegmentScale scale;   ///< Of the sum, by the number of its pairs.
  const void* factors;  ///< Of each row, from LaunchSegmentFactors; nullptr: none.
  void* out;
};
/// Bad indices are reported: position, index, limit.
cudaError_t LaunchSumPicked(const PickedCall& call, LateCheck check, cudaStream_t stream);

/// sizes[s] is how many ids are s; bad ones are reported: position, id, limit.
cudaError_t LaunchSegmentSizes(Indices ids, int64_t rows, int64_t segments, int32_t* sizes,
                               LateCheck check, cudaStream_t stream);
/// By what rows of segments of these sizes are multiplied. Numbers of 8 bytes if `type` is double,
/// else 4.
cudaError_t LaunchSegmentFactors(Number type, SegmentScale scale, const int32_t* sizes,
                                 int64_t segments, void* factors, cudaStream_t stream);
/// Of keys in order: at[r] is how many of those before the r-th differ from the ones before them,
/// at[rows] how many there are in all. `scratch`: as LaunchScan wants it for rows + 1 numbers.
cudaError_t LaunchNumberKeys(const void* keys, bool wide_keys, int64_t rows, uint64_t* at,
                             void* scratch, cudaStream_t stream);
/// For what LaunchNumberKeys has left: starts[u] is where the u-th key begins, starts[total] is
/// `rows`, and named[u], of int32 or int64, is the key.
cudaError_t LaunchNamedKeys(const void* keys, bool wide_keys, int64_t rows, const uint64_t* at,
                            int64_t* starts, bool wide_named, void* named, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SEGMENT_H_
