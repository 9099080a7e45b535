// The ops that only move elements, on cards: what kernels/array/layout_ops.h is made of.
#include "kernels/array/layout_engine.h"

#include <algorithm>
#include <cstring>

#include "kernels/array/piecewise_copy.h"
#include "kernels/common/copy_loops.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/rearrange.h"

namespace troupe {
namespace {

using cuda::StreamOf;

int64_t SizeOf(ElementType type) { return static_cast<int64_t>(ElementSize(type)); }

/// Nobody who enqueues waits for an error: it comes with those of the device.
void Say(KernelContext& ctx, cudaError_t error) {
  if (error == cudaSuccess) return;
  ctx.step().late_errors->reporter()(cuda::CudaStatus(error, "a kernel that moves elements"));
}

/// 16 bytes of the element at `value`; of zeros if that is nullptr.
cuda::Pattern PatternOf(ElementType type, const void* value) {
  cuda::Pattern pattern{};
  if (value == nullptr) return pattern;
  for (size_t at = 0; at < sizeof(pattern); at += ElementSize(type)) {
    std::memcpy(reinterpret_cast<char*>(&pattern) + at, value, ElementSize(type));
  }
  return pattern;
}

void CopyLoop(KernelContext& ctx, ElementType type, const CopyLoops& loops, int from_dim, void* dst,
              const void* src) {
  const int rank = loops.rank() - from_dim;
  if (rank > cuda::CopyDims::kMost) {
    for (int64_t i = 0; i < loops.dims[from_dim]; ++i) {
      CopyLoop(ctx, type, loops, from_dim + 1, ElementAt(type, dst, i * loops.dst[from_dim]),
               ElementAt(type, src, i * loops.src[from_dim]));
    }
    return;
  }
  cuda::CopyDims dims;
  dims.rank = rank;
  std::copy_n(loops.dims.begin() + from_dim, rank, dims.sizes);
  std::copy_n(loops.dst.begin() + from_dim, rank, dims.dst);
  std::copy_n(loops.src.begin() + from_dim, rank, dims.src);
  Say(ctx, cuda::LaunchCopy(SizeOf(type), dims, dst, src, StreamOf(ctx)));
}

/// In as many launches as it takes.
template <typename Data>
void MoveColumns(KernelContext& ctx, ElementType type, bool join, int64_t rows, int64_t width,
                 void* matrix, absl::Span<const Columns<Data>> parts) {
  if (rows == 0) return;
  for (size_t first = 0; first < parts.size(); first += cuda::ColumnParts::kMost) {
    cuda::ColumnParts some;
    for (const Columns<Data>& part : parts.subspan(first, cuda::ColumnParts::kMost)) {
      some.data[some.count] = const_cast<void*>(part.data);
      some.begin[some.count] = part.begin;
      some.size[some.count++] = part.count;
    }
    Say(ctx, cuda::LaunchColumns(SizeOf(type), join, rows, width, matrix, some, StreamOf(ctx)));
  }
}

absl::Status TooManyDims(const Shape& shape, int most) {
  return absl::UnimplementedError(
      StrCat("GPUs take apart at most ", most, " dimensions, got shape ", shape.ToString()));
}

/// A dimension of both sides of a copy by pieces, counted in elements of it.
struct PiecedDim {
  int64_t in, out;
  DimPieces pieces;

  bool Stays() const {
    return in == out && pieces.size() == 1 && pieces[0].size == in && pieces[0].step == 1;
  }
  bool Reverses() const {
    return std::any_of(pieces.begin(), pieces.end(), [](const DimPiece& p) { return p.step < 0; });
  }
  /// Takes a dimension in that stays as it is.
  void Widen(int64_t size) {
    in *= size;
    out *= size;
    for (DimPiece& piece : pieces) {
      piece = {piece.to * size, piece.from * size, piece.size * size, piece.step};
    }
  }
};

absl::Status CopyAtOnce(KernelContext& ctx, const Tensor& in, absl::Span<const DimPieces> pieces,
                        Tensor* out) {
  const DimVector in_strides = RowMajorStrides(in.shape().dims());
  const DimVector out_strides = RowMajorStrides(out->shape().dims());
  DimVector sizes, steps;
  int64_t to = 0, from = 0;
  for (size_t d = 0; d < pieces.size(); ++d) {
    const DimPiece& piece = pieces[d][0];
    to += piece.to * out_strides[d];
    from += piece.from * in_strides[d];
    sizes.push_back(piece.size);
    steps.push_back(piece.step * in_strides[d]);
  }
  StridedCopy(ctx, in.type(), sizes, ElementAt(in.type(), out->mutable_raw_data(), to), out_strides,
              ElementAt(in.type(), in.raw_data(), from), steps);
  return absl::OkStatus();
}

}  // namespace

void StridedCopy(KernelContext& ctx, ElementType type, absl::Span<const int64_t> dims, void* dst,
                 absl::Span<const int64_t> dst_strides, const void* src,
                 absl::Span<const int64_t> src_strides) {
  if (std::count(dims.begin(), dims.end(), 0) > 0) return;
  CopyLoop(ctx, type, MergeLoops(dims, dst_strides, src_strides), 0, dst, src);
}

void CopyRuns(KernelContext& ctx, ElementType type, int64_t rows, int64_t run, void* dst,
              int64_t dst_stride, const void* src, int64_t src_stride) {
  const int64_t dims[] = {rows, run};
  const int64_t dst_strides[] = {dst_stride, 1};
  const int64_t src_strides[] = {src_stride, 1};
  StridedCopy(ctx, type, dims, dst, dst_strides, src, src_strides);
}

absl::Status ForwardOrCopy(KernelContext& ctx) {
  if (ctx.CanForward(0)) {
    ctx.set_output(0, ctx.TakeInput(0));
    return absl::OkStatus();
  }
  const Tensor& from = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(Tensor * to, ctx.AllocateOutput(0, from.type(), from.shape()));
  if (from.bytes() == 0) return absl::OkStatus();
  return cuda::CudaStatus(cudaMemcpyAsync(to->mutable_raw_data(), from.raw_data(), from.bytes(),
                                          cudaMemcpyDeviceToDevice, StreamOf(ctx)),
                          "copying a tensor");
}

void FillElements(KernelContext& ctx, ElementType type, void* dst, int64_t count,
                  const void* value) {
  if (count == 0) return;
  Say(ctx, cuda::LaunchFill(SizeOf(type), dst, count, PatternOf(type, value), StreamOf(ctx)));
}

void ZeroElements(KernelContext& ctx, ElementType type, void* dst, int64_t count) {
  if (count == 0) return;
  Say(ctx, cudaMemsetAsync(dst, 0, static_cast<size_t>(count) * ElementSize(type), StreamOf(ctx)));
}

DimVector RowMajorStrides(absl::Span<const int64_t> dims) {
  DimVector strides(dims.size());
  int64_t stride = 1;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

void JoinColumns(KernelContext& ctx, ElementType type, int64_t rows, int64_t width, void* matrix,
                 absl::Span<const Columns<const void>> parts) {
  MoveColumns(ctx, type, /*join=*/true, rows, width, matrix, parts);
}

void CutColumns(KernelContext& ctx, ElementType type, int64_t rows, int64_t width,
                const void* matrix, absl::Span<const Columns<void>> parts) {
  MoveColumns(ctx, type, /*join=*/false, rows, width, const_cast<void*>(matrix), parts);
}

void PadBlock(KernelContext& ctx, ElementType type, absl::Span<const int64_t> dims,
              absl::Span<const int64_t> before, absl::Span<const int64_t> inside, void* out,
              const void* in, const void* value) {
  // A dimension without a border becomes part of the one around it.
  DimVector sizes, befores, insides;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d > 0 && inside[d] == dims[d]) {
      sizes.back() *= dims[d];
      befores.back() *= dims[d];
      insides.back() *= dims[d];
    } else {
      sizes.push_back(dims[d]);
      befores.push_back(before[d]);
      insides.push_back(inside[d]);
    }
  }
  if (sizes.size() > cuda::PadDims::kMost) {
    const DimVector strides = RowMajorStrides(sizes);
    int64_t offset = 0;
    for (size_t d = 0; d < sizes.size(); ++d) offset += befores[d] * strides[d];
    const cuda::Pattern pattern = PatternOf(type, value);
    FillElements(ctx, type, out, strides[0] * sizes[0], &pattern);
    return StridedCopy(ctx, type, insides, ElementAt(type, out, offset), strides, in,
                       RowMajorStrides(insides));
  }
  cuda::PadDims block;
  block.rank = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), block.sizes);
  std::copy(befores.begin(), befores.end(), block.before);
  std::copy(insides.begin(), insides.end(), block.inside);
  Say(ctx, cuda::LaunchPad(SizeOf(type), block, out, in, PatternOf(type, value), StreamOf(ctx)));
}

void KeepBand(KernelContext& ctx, ElementType type, int64_t rows, int64_t height, int64_t width,
              int64_t lower, int64_t upper, void* to, const void* from) {
  Say(ctx,
      cuda::LaunchBand(SizeOf(type), rows, height, width, lower, upper, to, from, StreamOf(ctx)));
}

void CopyBand(KernelContext& ctx, ElementType type, const MatrixBand& m, void* dst,
              bool dst_is_matrix, const void* src) {
  const int64_t width = m.Width();
  if (m.batch == 0 || width <= 0) return;
  const cuda::BandDims band{m.lower,   m.upper, m.batch,      m.rows,
                            m.columns, width,   m.left_above, m.left_below};
  Say(ctx, cuda::LaunchCopyBand(SizeOf(type), band, dst_is_matrix, dst, src, StreamOf(ctx)));
}

absl::Status CopyPieces(KernelContext& ctx, const Tensor& in, absl::Span<const DimPieces> pieces,
                        Tensor* out) {
  if (std::any_of(pieces.begin(), pieces.end(), [](const DimPieces& p) { return p.empty(); })) {
    return absl::OkStatus();
  }
  if (std::all_of(pieces.begin(), pieces.end(), [](const DimPieces& p) { return p.size() == 1; })) {
    return CopyAtOnce(ctx, in, pieces, out);
  }
  absl::InlinedVector<PiecedDim, 8> joined;
  for (int d = 0; d < in.rank(); ++d) {
    const PiecedDim dim{in.dim(d), out->dim(d), pieces[d]};
    if (!joined.empty() && dim.Stays() && !joined.back().Reverses()) {
      joined.back().Widen(dim.in);
    } else {
      joined.push_back(dim);
    }
  }
  cuda::PieceDims dims;
  dims.rank = static_cast<int>(joined.size());
  if (dims.rank > cuda::PieceDims::kMost) {
    return TooManyDims(in.shape(), cuda::PieceDims::kMost);
  }
  int64_t in_stride = 1, out_stride = 1;
  for (int d = dims.rank - 1; d >= 0; --d) {
    dims.dst[d] = out_stride;
    dims.sizes[d] = dims.counts[d] = 0;
    for (const DimPiece& piece : joined[d].pieces) {
      const int64_t begin = dims.sizes[d];
      dims.pieces[d][dims.counts[d]++] = {begin, (piece.to - begin) * out_stride,
                                          (piece.from - piece.step * begin) * in_stride,
                                          piece.step * in_stride};
      dims.sizes[d] += piece.size;
    }
    in_stride *= joined[d].in;
    out_stride *= joined[d].out;
  }
  return cuda::CudaStatus(cuda::LaunchPieces(SizeOf(in.type()), dims, out->mutable_raw_data(),
                                             in.raw_data(), StreamOf(ctx)),
                          "moving pieces of a tensor");
}

absl::Status MoveBlocks(KernelContext& ctx, const SpaceBlocks& blocks, bool to_batch,
                        const Tensor& in, Tensor* out) {
  const Tensor& space = to_batch ? in : *out;
  const Tensor& batched = to_batch ? *out : in;
  if (in.num_elements() == 0) {
    ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
    return absl::OkStatus();
  }
  // The slowest loops are those over the places of a block, then come the batch, the blocks and
  // what they hold: the order of the tensor with blocks in the batch.
  const DimVector strides = RowMajorStrides(space.shape().dims());
  const int rank = blocks.rank();
  cuda::WindowDims dims;
  absl::InlinedVector<int, 8> axes(rank, -1);  // -1: a dimension stays as it is.
  for (int d = 0; d < rank; ++d) {
    if (blocks.sizes[d] == 1 && blocks.before[d] == 0 && blocks.after[d] == 0) continue;
    if (dims.axes == cuda::WindowDims::kAxes) {
      return TooManyDims(space.shape(), cuda::WindowDims::kAxes);
    }
    axes[d] = dims.AddAxis(-blocks.before[d], space.dim(d + 1), strides[d + 1]);
    dims.AddLoop(blocks.sizes[d], axes[d], 1, strides[d + 1]);
  }
  dims.AddLoop(space.dim(0), strides[0]);
  for (int d = 0; d < rank;) {
    if (axes[d] >= 0) {
      dims.AddLoop(batched.dim(d + 1), axes[d], blocks.sizes[d], strides[d + 1]);
      ++d;
      continue;
    }
    int64_t size = 1;
    for (; d < rank && axes[d] < 0; ++d) size *= space.dim(d + 1);
    dims.AddLoop(size, strides[d]);  // Of the last one.
  }
  dims.AddLoop(strides[rank], 1);
  return cuda::CudaStatus(
      cuda::LaunchWindows(SizeOf(in.type()), dims, to_batch, out->mutable_raw_data(), in.raw_data(),
                          StreamOf(ctx)),
      "moving blocks of a tensor");
}

absl::Status AddMirrored(KernelContext& ctx, absl::Span<const Mirror> mirrors, int64_t skipped,
                         const Tensor& in, Tensor* out) {
  cuda::MirrorDims dims;
  bool stays = false;
  for (const Mirror& mirror : mirrors) {
    // Neighbours without images are one.
    const bool joined = stays && dims.rank > 0;
    stays = mirror.before == 0 && mirror.after == 0;
    if (joined && stays) {
      dims.inside[dims.rank - 1] *= mirror.inside;
      continue;
    }
    if (dims.rank == cuda::MirrorDims::kMost) {
      return TooManyDims(in.shape(), cuda::MirrorDims::kMost);
    }
    dims.before[dims.rank] = mirror.before;
    dims.inside[dims.rank] = mirror.inside;
    dims.after[dims.rank++] = mirror.after;
  }
  TROUPE_ASSIGN_OR_RETURN(const cuda::Number type, cuda::NumberOf(in.type()));
  return cuda::CudaStatus(cuda::LaunchMirrorSums(type, dims, skipped, in.raw_data(),
                                                 out->mutable_raw_data(), StreamOf(ctx)),
                          "adding mirror images");
}

}  // namespace troupe
