/// Moving elements whose places follow from more than strides: pieces of dimensions, windows, bands
/// of diagonals, beginnings of sequences; and the sums of mirror images. Elements are known by
/// their size: 1, 2, 4, 8 or 16 bytes, but where they are added. Offsets, strides and counts are in
/// elements.
#ifndef TROUPE_KERNELS_CUDA_REARRANGE_H_
#define TROUPE_KERNELS_CUDA_REARRANGE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/indexing.h"
#include "kernels/cuda/number.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

/// Dimensions that are copied by pieces, the outermost first.
struct PieceDims {
  static constexpr int kMost = 12, kPieces = 3;
  /// Index i of a dimension, from `begin` to the next piece's, is i * dst elements on from `to` in
  /// the destination, and i * step elements on from `from` in the source.
  struct Piece {
    int64_t begin, to, from, step;
  };
  int rank = 0;
  int64_t sizes[kMost];  ///< Of all pieces.
  int64_t dst[kMost];
  int counts[kMost];
  Piece pieces[kMost][kPieces];
};
/// All sizes are positive; rank is at least 1.
cudaError_t LaunchPieces(int64_t element, const PieceDims& dims, void* dst, const void* src,
                         cudaStream_t stream);

/// Loops over a block of adjacent elements, the near side, each of which belongs to one on the far
/// side, if that has it: an index moves by far[d] elements, and by steps[d][a] along each of the
/// far side's axes, which have `limits` places. Index 0 of all loops is at element `base` and at
/// `start`, which may be outside.
struct WindowDims {
  static constexpr int kMost = 16, kAxes = 4;
  int rank = 0, axes = 0;
  int64_t sizes[kMost], far[kMost];
  int64_t steps[kMost][kAxes];
  int64_t start[kAxes], limits[kAxes];
  int64_t base = 0;

  /// A loop that moves along no axis.
  void AddLoop(int64_t size, int64_t stride);
  /// One that moves along `axis`, whose places are `stride` elements apart.
  void AddLoop(int64_t size, int axis, int64_t step, int64_t stride);
  /// An axis of `limit` places, where index 0 is at `start`; its number.
  int AddAxis(int64_t start, int64_t limit, int64_t stride);
};
/// Fills the near side from the far one, with zeros for what that does not have; or fills the far
/// one from the near one, what it does not have left out. All sizes are positive.
cudaError_t LaunchWindows(int64_t element, const WindowDims& dims, bool to_near, void* dst,
                          const void* src, cudaStream_t stream);

/// What `MatrixBand` of kernels/array/layout_engine.h is, with the width of its rows.
struct BandDims {
  int64_t lower, upper, batch, rows, columns, width;
  bool left_above, left_below;
};
/// Copies the diagonals from their rows to the matrices, or back. The width is positive.
cudaError_t LaunchCopyBand(int64_t element, const BandDims& band, bool to_matrix, void* dst,
                           const void* src, cudaStream_t stream);

/// Where sequences of `steps` elements lie, `seq_stride` apart: slices of a tensor of `n` elements
/// along a dimension of `batch` slices, `batch_stride` apart.
struct Sequences {
  int64_t n, steps, seq_stride, batch, batch_stride;
};
/// Copies with the first lengths[b] elements of the sequences of slice b in reverse order. A length
/// that is not in [0, steps] is reported: its position, itself, `steps`.
cudaError_t LaunchReverseStarts(int64_t element, const Sequences& sequences, Indices lengths,
                                void* dst, const void* src, const LateCheck& check,
                                cudaStream_t stream);

/// A dimension of `inside` elements and their mirror images, `before` and `after` of them.
struct MirrorDims {
  static constexpr int kMost = 8;
  int rank = 0;
  int64_t before[kMost], inside[kMost], after[kMost];
};
/// out[i] = the sum of itself and its images in `in`, in the order of `in`, of floating-point
/// numbers. Images begin `skipped` elements from the end. There are elements.
cudaError_t LaunchMirrorSums(Number type, const MirrorDims& dims, int64_t skipped, const void* in,
                             void* out, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_REARRANGE_H_
