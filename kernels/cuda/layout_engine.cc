// The ops that only move elements, on cards: what kernels/array/layout_ops.h is made of.
#include "kernels/array/layout_engine.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/copy_loops.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/layout.h"

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

}  // namespace

void StridedCopy(KernelContext& ctx, ElementType type, absl::Span<const int64_t> dims, void* dst,
                 absl::Span<const int64_t> dst_strides, const void* src,
                 absl::Span<const int64_t> src_strides) {
  if (std::count(dims.begin(), dims.end(), 0) > 0) return;
  CopyLoop(ctx, type, MergeLoops(dims, dst_strides, src_strides), 0, dst, src);
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

}  // namespace troupe
