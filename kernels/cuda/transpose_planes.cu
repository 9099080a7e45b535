// Tiles of 32 x 32 elements, read and written along rows, turned in shared memory.
#include "kernels/cuda/parallel.cuh"
#include "kernels/cuda/transpose_planes.h"

namespace troupe::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = kThreads / kTile;  ///< Rows of a tile that a block moves at once.

template <typename T>
__global__ void __launch_bounds__(kThreads)
    TransposePlanes(Planes planes, int64_t tiles_down, int64_t tiles_across, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];  // So that columns lie in different banks.
  const int64_t tiles = planes.count * tiles_down * tiles_across;
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t column = t % tiles_across * kTile, row = t / tiles_across % tiles_down * kTile;
    const int64_t plane = t / tiles_across / tiles_down;
    const T* const in = from + plane * planes.from_plane;
    for (int i = y; i < kTile; i += kTileRows) {
      if (row + i < planes.rows && column + x < planes.columns) {
        tile[i][x] = in[(row + i) * planes.from_row + column + x];
      }
    }
    __syncthreads();
    T* const out = to + plane * planes.to_plane;
    for (int i = y; i < kTile; i += kTileRows) {
      if (column + i < planes.columns && row + x < planes.rows) {
        out[(column + i) * planes.to_row + row + x] = tile[x][i];
      }
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t LaunchTransposePlanes(int64_t element_bytes, const Planes& planes, const void* from,
                                  void* to, cudaStream_t stream) {
  const int64_t down = (planes.rows + kTile - 1) / kTile;
  const int64_t across = (planes.columns + kTile - 1) / kTile;
  const int64_t tiles = planes.count * down * across;
  if (tiles == 0) return cudaSuccess;
  return VisitSize(element_bytes, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&TransposePlanes<T>, Blocks(tiles * kThreads), kThreads, stream, planes, down,
                  across, static_cast<const T*>(from), static_cast<T*>(to));
  });
}

}  // namespace troupe::cuda
