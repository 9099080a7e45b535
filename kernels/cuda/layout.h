/// CUDA's part of kernels/common/strided_copy.h and kernels/array/layout_engine.h. Elements are
/// known by their size: 1, 2, 4, 8 or 16 bytes. Offsets, strides and counts are in elements.
#ifndef TROUPE_KERNELS_CUDA_LAYOUT_H_
#define TROUPE_KERNELS_CUDA_LAYOUT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe::cuda {

/// Loops of a copy, the outermost first. Destinations do not overlap.
struct CopyDims {
  static constexpr int kMost = 16;
  int rank = 0;
  int64_t sizes[kMost], dst[kMost], src[kMost];
};
/// dst[sum of index * dst] = src[sum of index * src] for all indices. All sizes are positive; rank
/// is at least 1, dimensions that lie together on both sides are one.
cudaError_t LaunchCopy(int64_t element, const CopyDims& dims, void* dst, const void* src,
                       cudaStream_t stream);

/// The same columns of all rows of a matrix, as matrices of their own.
struct ColumnParts {
  static constexpr int kMost = 64;
  int count = 0;
  void* data[kMost];
  int64_t begin[kMost], size[kMost];
};
/// Fills the columns of a matrix of `rows` times `width` elements, or copies them out.
cudaError_t LaunchColumns(int64_t element, bool join, int64_t rows, int64_t width, void* matrix,
                          const ColumnParts& parts, cudaStream_t stream);

/// 16 bytes of equal elements.
struct alignas(16) Pattern {
  uint64_t words[2];
};
cudaError_t LaunchFill(int64_t element, void* dst, int64_t count, Pattern value,
                       cudaStream_t stream);

/// A block within a larger one.
struct PadDims {
  static constexpr int kMost = 12;
  int rank = 0;
  int64_t sizes[kMost], before[kMost], inside[kMost];
};
/// Makes `out`, of `sizes`, from `in`, of sizes `inside`, which begins there at `before`, and from
/// `value` around it. All sizes are positive, but those of the inside.
cudaError_t LaunchPad(int64_t element, const PadDims& dims, void* out, const void* in,
                      Pattern value, cudaStream_t stream);

/// Zeros where `rows` rows of matrices of `height` rows and `width` columns are more than `lower`
/// below the diagonal or `upper` above. `to` may be `from`.
cudaError_t LaunchBand(int64_t element, int64_t rows, int64_t height, int64_t width, int64_t lower,
                       int64_t upper, void* to, const void* from, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_LAYOUT_H_
