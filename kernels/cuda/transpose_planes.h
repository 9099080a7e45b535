/// Transposed matrices, for filters of convolutions.
#ifndef TROUPE_KERNELS_CUDA_TRANSPOSE_PLANES_H_
#define TROUPE_KERNELS_CUDA_TRANSPOSE_PLANES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe::cuda {

/// Matrices of rows x columns in a tensor, and the transposed ones in another: how far the rows of
/// one matrix and the first elements of two matrices are apart, in elements.
struct Planes {
  int64_t count, rows, columns;
  int64_t from_row, from_plane;
  int64_t to_row, to_plane;
};

/// to[p][column][row] = from[p][row][column], for elements of 1, 2, 4, 8 or 16 bytes.
cudaError_t LaunchTransposePlanes(int64_t element_bytes, const Planes& planes, const void* from,
                                  void* to, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_TRANSPOSE_PLANES_H_
