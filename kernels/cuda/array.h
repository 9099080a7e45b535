/// Small ops of arrays on CUDA: searches in sorted numbers, data formats, products of vectors. All
/// enqueue and return.
#ifndef TROUPE_KERNELS_CUDA_ARRAY_H_
#define TROUPE_KERNELS_CUDA_ARRAY_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// Rows of `columns` values that are looked for in rows of `length` sorted numbers of their type.
struct BoundCall {
  Number type;
  const void* sorted;
  int64_t length;
  const void* values;
  int64_t rows, columns;
  bool upper;  ///< After all equal numbers, else before them.
  bool wide;   ///< Places are int64, else int32.
  void* places;
};
cudaError_t LaunchBound(const BoundCall& call, cudaStream_t stream);

/// Boundaries of buckets, in order.
struct Boundaries {
  static constexpr int kMost = 512;
  int count = 0;
  float at[kMost];
};
/// out[i] = how many of the boundaries are not larger than in[i], or that more if `more`; in[i] is
/// a double, or is taken for a float.
cudaError_t LaunchBucketize(Number type, const void* in, int64_t n, const Boundaries& boundaries,
                            bool more, int32_t* out, cudaStream_t stream);

/// c[i] = the product of the vectors a[i] and b[i], of 3 real numbers. Integers wrap around.
cudaError_t LaunchCross(Number type, const void* a, const void* b, void* c, int64_t vectors,
                        cudaStream_t stream);

/// Places of dimensions, or of elements.
struct Places {
  static constexpr int kMost = 10;
  int64_t count = 0;
  int64_t at[kMost];
};
/// y[i] = the place of dimension x[i], which may be negative: then it counts from the back. Other
/// numbers of no dimension give any place.
cudaError_t LaunchPlaceDims(const Places& places, const int64_t* x, int64_t* y, int64_t n,
                            cudaStream_t stream);
/// y[i] = x[places.at[i]] for all places.
cudaError_t LaunchPick(const Places& places, const int64_t* x, int64_t* y, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_ARRAY_H_
