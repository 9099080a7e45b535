// Moving elements by pieces of dimensions, windows, diagonals and sequences. What lies together is
// moved by up to 16 bytes.
#include "kernels/cuda/rearrange.h"

#include "kernels/cuda/division.cuh"
#include "kernels/cuda/indexing.cuh"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

/// A divisor of numbers of which the host knows whether they are small.
__device__ int64_t Divide(const Divisor& by, bool small, int64_t n, int64_t* rest) {
  return small ? by.Divide<true>(n, rest) : by.Divide<false>(n, rest);
}

struct PieceWalk {
  int rank;
  bool small;
  Divisor sizes[PieceDims::kMost];
  int64_t dst[PieceDims::kMost];
  PieceDims::Piece pieces[PieceDims::kMost][PieceDims::kPieces];
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    CopyPieces(T* dst, const T* src, int64_t n, PieceWalk walk) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t rest = i, to = 0, from = 0;
    for (int d = walk.rank - 1; d >= 0; --d) {
      int64_t index;
      rest = Divide(walk.sizes[d], walk.small, rest, &index);
      PieceDims::Piece piece = walk.pieces[d][0];
      if (index >= walk.pieces[d][1].begin) piece = walk.pieces[d][1];
      if (index >= walk.pieces[d][2].begin) piece = walk.pieces[d][2];
      to += piece.to + index * walk.dst[d];
      from += piece.from + index * piece.step;
    }
    dst[to] = src[from];
  }
}

struct WindowWalk {
  int rank, axes;
  bool small;
  Divisor sizes[WindowDims::kMost];
  int64_t far[WindowDims::kMost];
  int64_t steps[WindowDims::kMost][WindowDims::kAxes];
  int64_t start[WindowDims::kAxes], limits[WindowDims::kAxes];
  int64_t base;
};

template <typename T, bool kToNear>
__global__ void __launch_bounds__(kThreads)
    CopyWindows(T* dst, const T* src, int64_t n, WindowWalk walk) {
  constexpr int kAxes = WindowDims::kAxes;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t rest = i, far = walk.base, at[kAxes];
#pragma unroll
    for (int a = 0; a < kAxes; ++a) at[a] = walk.start[a];
    for (int d = walk.rank - 1; d >= 0; --d) {
      int64_t index;
      rest = Divide(walk.sizes[d], walk.small, rest, &index);
      far += index * walk.far[d];
#pragma unroll
      for (int a = 0; a < kAxes; ++a) {
        if (a < walk.axes) at[a] += index * walk.steps[d][a];
      }
    }
    bool is_inside = true;
#pragma unroll
    for (int a = 0; a < kAxes; ++a) {
      if (a < walk.axes) is_inside = is_inside && at[a] >= 0 && at[a] < walk.limits[a];
    }
    if constexpr (kToNear) {
      dst[i] = is_inside ? src[far] : T{};
    } else {
      if (is_inside) dst[far] = src[i];
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    CopyBand(T* dst, const T* src, int64_t n, BandDims band, bool to_matrix, bool small,
             Divisor width, Divisor count) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column, row;
    const int64_t matrix = Divide(count, small, Divide(width, small, i, &column), &row);
    const int64_t d = band.upper - row;
    const int64_t down = d < 0 ? -d : 0, right = d > 0 ? d : 0;
    const int64_t below = band.rows - down, beside = band.columns - right;
    const int64_t length = below < beside ? below : beside;
    const bool left = (d >= 0 && band.left_above) || (d <= 0 && band.left_below);
    const int64_t k = left ? column : column - (band.width - length);
    if (k < 0 || k >= length) continue;
    const int64_t at = (matrix * band.rows + down + k) * band.columns + right + k;
    if (to_matrix) {
      dst[at] = src[i];
    } else {
      dst[i] = src[at];
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ReverseStarts(T* dst, const T* src, Sequences s, bool small, Divisor seq_stride, Divisor steps,
                  Divisor batch_stride, Divisor batch, Indices lengths, LateCheck check) {
  // Lengths are checked even if there are no elements.
  const int64_t n = s.n > s.batch ? s.n : s.batch, step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    if (i < s.batch) {
      const int64_t length = IndexAt(lengths, i);
      if (length < 0 || length > s.steps) ReportLate(check, i, length, s.steps);
    }
    if (i >= s.n) continue;
    int64_t unused, at, slice;
    Divide(steps, small, Divide(seq_stride, small, i, &unused), &at);
    Divide(batch, small, Divide(batch_stride, small, i, &unused), &slice);
    const int64_t length = IndexAt(lengths, slice);
    const bool reversed = at < length && length <= s.steps;
    dst[i] = src[reversed ? i + (length - 1 - 2 * at) * s.seq_stride : i];
  }
}

struct MirrorWalk {
  int rank, mirrored;
  bool small;
  int64_t skipped;
  Divisor sizes[MirrorDims::kMost];
  int64_t before[MirrorDims::kMost], inside[MirrorDims::kMost], after[MirrorDims::kMost];
  int64_t strides[MirrorDims::kMost];  ///< Of what has the images.
};

/// What of a dimension belongs to an element: its first image, itself and its second image, in the
/// order of the dimension.
struct Images {
  int64_t offsets[3];
  bool there[3];
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    MirrorSums(T* out, const T* in, int64_t n, MirrorWalk walk) {
  using W = WideType<T>;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    Images images[MirrorDims::kMost];  // Of the dimensions with mirrors.
    int64_t rest = i, own = 0;
    int count = 0, combinations = 1;
    bool single = true;
    for (int d = walk.rank - 1; d >= 0; --d) {
      int64_t x;
      rest = Divide(walk.sizes[d], walk.small, rest, &x);
      const int64_t before = walk.before[d], inside = walk.inside[d], after = walk.after[d];
      own += (before + x) * walk.strides[d];
      if (before == 0 && after == 0) continue;
      Images& of = images[count++];
      combinations *= 3;
      of.there[0] = x >= walk.skipped && x < before + walk.skipped;
      of.there[1] = true;
      of.there[2] = x < inside - walk.skipped && x >= inside - walk.skipped - after;
      of.offsets[0] = (walk.skipped - 1 - 2 * x) * walk.strides[d];
      of.offsets[1] = 0;
      of.offsets[2] = (2 * inside - 1 - walk.skipped - 2 * x) * walk.strides[d];
      single = single && !of.there[0] && !of.there[2];
    }
    W sum = 0;
    if (single) {
      sum += static_cast<W>(in[own]);
    } else {
      for (int c = 0; c < combinations; ++c) {  // In the order of `in`: the innermost first.
        int64_t at = own;
        bool there = true;
        for (int k = 0, digits = c; k < count; ++k, digits /= 3) {
          at += images[k].offsets[digits % 3];
          there = there && images[k].there[digits % 3];
        }
        // Small types are rounded each time, as on the CPU.
        if (there) sum = static_cast<W>(static_cast<T>(sum + static_cast<W>(in[at])));
      }
    }
    out[i] = static_cast<T>(sum);
  }
}

template <int kMost>
int64_t Count(const int64_t (&sizes)[kMost], int rank) {
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) count *= sizes[d];
  return count;
}

}  // namespace

void WindowDims::AddLoop(int64_t size, int64_t stride) {
  if (size == 1) return;
  sizes[rank] = size;
  far[rank] = stride;
  for (int64_t& step : steps[rank]) step = 0;
  ++rank;
}

void WindowDims::AddLoop(int64_t size, int axis, int64_t step, int64_t stride) {
  AddLoop(size, step * stride);
  if (size > 1) steps[rank - 1][axis] = step;
}

int WindowDims::AddAxis(int64_t from, int64_t limit, int64_t stride) {
  start[axes] = from;
  limits[axes] = limit;
  base += from * stride;
  return axes++;
}

cudaError_t LaunchPieces(int64_t element, const PieceDims& dims, void* dst, const void* src,
                         cudaStream_t stream) {
  // Several elements of the innermost dimension are one if all pieces consist of such.
  const int last = dims.rank - 1;
  Unit unit;
  unit.Add(dst).Add(src).Add(dims.sizes[last] * element);
  for (int d = 0; d < dims.rank; ++d) {
    if (d < last) unit.Add(dims.dst[d] * element);
    for (int p = 0; p < dims.counts[d]; ++p) {
      const PieceDims::Piece& piece = dims.pieces[d][p];
      unit.Add(piece.to * element).Add(piece.from * element);
      if (d < last || piece.step != 1) unit.Add(piece.step * element);
      if (d == last) unit.Add(piece.begin * element);
    }
  }
  const int64_t wide = unit.bytes();
  PieceWalk walk{};
  walk.rank = dims.rank;
  int64_t n = 1;
  for (int d = 0; d < dims.rank; ++d) {
    const auto in_units = [&](int64_t elements) { return elements * element / wide; };
    const int64_t size = d == last ? in_units(dims.sizes[d]) : dims.sizes[d];
    n *= size;
    walk.sizes[d] = Divisor(size);
    walk.dst[d] = d == last ? 1 : in_units(dims.dst[d]);
    for (int p = 0; p < PieceDims::kPieces; ++p) {
      PieceDims::Piece& piece = walk.pieces[d][p];
      piece.begin = INT64_MAX;
      if (p >= dims.counts[d]) continue;
      const PieceDims::Piece& given = dims.pieces[d][p];
      piece = {given.begin, in_units(given.to), in_units(given.from), in_units(given.step)};
      if (d < last) continue;
      piece.begin = in_units(given.begin);
      if (given.step == 1) piece.step = 1;
    }
  }
  walk.small = IsSmall(n);
  return VisitSize(wide, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&CopyPieces<T>, Blocks(n), kThreads, stream, static_cast<T*>(dst),
                  static_cast<const T*>(src), n, walk);
  });
}

cudaError_t LaunchWindows(int64_t element, const WindowDims& dims, bool to_near, void* dst,
                          const void* src, cudaStream_t stream) {
  WindowWalk walk{};
  walk.rank = dims.rank;
  walk.axes = dims.axes;
  std::copy_n(dims.start, dims.axes, walk.start);
  std::copy_n(dims.limits, dims.axes, walk.limits);
  // Elements that lie together on both sides and are inside together.
  const int last = dims.rank - 1;
  bool adjacent = last >= 0 && dims.far[last] == 1;
  for (int a = 0; adjacent && a < dims.axes; ++a) adjacent = dims.steps[last][a] == 0;
  int64_t wide = element;
  if (adjacent) {
    Unit unit;
    unit.Add(dst).Add(src).Add(dims.sizes[last] * element).Add(dims.base * element);
    for (int d = 0; d < last; ++d) unit.Add(dims.far[d] * element);
    wide = unit.bytes();
  }
  int64_t n = 1;
  for (int d = 0; d < dims.rank; ++d) {
    const bool widened = adjacent && d == last;
    const int64_t size = widened ? dims.sizes[d] * element / wide : dims.sizes[d];
    n *= size;
    walk.sizes[d] = Divisor(size);
    walk.far[d] = widened ? 1 : dims.far[d] * element / wide;
    std::copy_n(dims.steps[d], dims.axes, walk.steps[d]);
  }
  walk.base = dims.base * element / wide;
  walk.small = IsSmall(n);
  return VisitSize(wide, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(to_near ? &CopyWindows<T, true> : &CopyWindows<T, false>, Blocks(n), kThreads,
                  stream, static_cast<T*>(dst), static_cast<const T*>(src), n, walk);
  });
}

cudaError_t LaunchCopyBand(int64_t element, const BandDims& band, bool to_matrix, void* dst,
                           const void* src, cudaStream_t stream) {
  const int64_t count = band.upper - band.lower + 1, n = band.batch * count * band.width;
  if (n == 0) return cudaSuccess;
  return VisitSize(element, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&CopyBand<T>, Blocks(n), kThreads, stream, static_cast<T*>(dst),
                  static_cast<const T*>(src), n, band, to_matrix, IsSmall(n), Divisor(band.width),
                  Divisor(count));
  });
}

cudaError_t LaunchReverseStarts(int64_t element, const Sequences& given, Indices lengths, void* dst,
                                const void* src, const LateCheck& check, cudaStream_t stream) {
  const int64_t work = std::max(given.n, given.batch);
  if (work == 0) return cudaSuccess;
  Sequences s = given;
  int64_t unit = element;
  if (s.n > 0) {
    // All strides are multiples of the smaller one.
    unit =
        Unit().Add(dst).Add(src).Add(s.seq_stride * element).Add(s.batch_stride * element).bytes();
    for (int64_t* elements : {&s.n, &s.seq_stride, &s.batch_stride}) {
      *elements = *elements * element / unit;
    }
  }
  return VisitSize(unit, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&ReverseStarts<T>, Blocks(std::max(s.n, s.batch)), kThreads, stream,
                  static_cast<T*>(dst), static_cast<const T*>(src), s, IsSmall(s.n),
                  Divisor(s.seq_stride), Divisor(s.steps), Divisor(s.batch_stride),
                  Divisor(s.batch), lengths, check);
  });
}

cudaError_t LaunchMirrorSums(Number type, const MirrorDims& dims, int64_t skipped, const void* in,
                             void* out, cudaStream_t stream) {
  const int64_t n = Count(dims.inside, dims.rank);
  MirrorWalk walk{};
  walk.rank = dims.rank;
  walk.skipped = skipped;
  walk.small = IsSmall(n);
  int64_t stride = 1;
  for (int d = dims.rank - 1; d >= 0; --d) {
    walk.sizes[d] = Divisor(dims.inside[d]);
    walk.before[d] = dims.before[d];
    walk.inside[d] = dims.inside[d];
    walk.after[d] = dims.after[d];
    walk.strides[d] = stride;
    stride *= dims.before[d] + dims.inside[d] + dims.after[d];
  }
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&MirrorSums<T>, Blocks(n), kThreads, stream, static_cast<T*>(out),
                  static_cast<const T*>(in), n, walk);
  });
}

}  // namespace troupe::cuda
