// Moving elements: strided copies, transpositions in tiles, columns, borders, bands. What lies
// together is moved by up to 16 bytes.
#include "kernels/cuda/division.cuh"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

/// A copy's loops as the kernels want them.
struct Walk {
  int rank;
  Divisor sizes[CopyDims::kMost];
  int64_t dst[CopyDims::kMost], src[CopyDims::kMost];

  /// Where element number `i` goes and comes from.
  template <bool kSmall>
  __device__ void Find(int64_t i, int64_t* to, int64_t* from) const {
    *to = *from = 0;
    for (int d = rank - 1; d > 0; --d) {
      int64_t index;
      i = sizes[d].Divide<kSmall>(i, &index);
      *to += index * dst[d];
      *from += index * src[d];
    }
    if (rank == 0) return;
    *to += i * dst[0];
    *from += i * src[0];
  }
};

Walk MakeWalk(const CopyDims& dims) {
  Walk walk{};
  walk.rank = dims.rank;
  for (int d = 0; d < dims.rank; ++d) {
    walk.sizes[d] = Divisor(dims.sizes[d]);
    walk.dst[d] = dims.dst[d];
    walk.src[d] = dims.src[d];
  }
  return walk;
}

int64_t Count(const CopyDims& dims) {
  int64_t count = 1;
  for (int d = 0; d < dims.rank; ++d) count *= dims.sizes[d];
  return count;
}

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads) Copy(T* dst, const T* src, int64_t n, Walk walk) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t to, from;
    walk.Find<kSmall>(i, &to, &from);
    dst[to] = src[from];
  }
}

/// A side of a tile: lines of at least 64 bytes.
template <typename T>
inline constexpr int kTile = sizeof(T) >= 4 ? 32 : 64;
inline constexpr int kTileRows = kThreads / 32;

/// The innermost loops of a transposition: `rows` lie together in the source, `columns` in the
/// destination.
struct Transposition {
  int64_t rows, columns, dst_row, src_column;
  int64_t row_tiles, column_tiles, tiles;
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    TransposeTiles(T* dst, const T* src, Transposition t, Walk outer) {
  __shared__ T tile[kTile<T>][kTile<T> + 1];
  for (int64_t i = blockIdx.x; i < t.tiles; i += gridDim.x) {
    const int64_t column = i % t.column_tiles * kTile<T>;
    const int64_t above = i / t.column_tiles;
    const int64_t row = above % t.row_tiles * kTile<T>;
    int64_t to, from;
    outer.Find<false>(above / t.row_tiles, &to, &from);
    for (int y = threadIdx.y; y < kTile<T> && column + y < t.columns; y += kTileRows) {
      const T* const line = src + from + (column + y) * t.src_column + row;
      for (int x = threadIdx.x; x < kTile<T> && row + x < t.rows; x += 32) tile[y][x] = line[x];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < kTile<T> && row + y < t.rows; y += kTileRows) {
      T* const line = dst + to + (row + y) * t.dst_row + column;
      for (int x = threadIdx.x; x < kTile<T> && column + x < t.columns; x += 32) {
        line[x] = tile[x][y];
      }
    }
    __syncthreads();
  }
}

/// The loop that lies together in the source where the innermost one lies together in the
/// destination only; -1: there is none, or tiles would be mostly empty.
int TransposedRow(const CopyDims& dims) {
  constexpr int64_t kNarrow = 8;
  const int last = dims.rank - 1;
  if (dims.dst[last] != 1 || dims.src[last] <= 1 || dims.sizes[last] < kNarrow) return -1;
  for (int d = 0; d < last; ++d) {
    if (dims.src[d] == 1) return dims.sizes[d] < kNarrow ? -1 : d;
  }
  return -1;
}

template <typename T>
cudaError_t Transpose(const CopyDims& dims, int row, T* dst, const T* src, cudaStream_t stream) {
  const int last = dims.rank - 1;
  Transposition t{};
  t.rows = dims.sizes[row];
  t.columns = dims.sizes[last];
  t.dst_row = dims.dst[row];
  t.src_column = dims.src[last];
  t.row_tiles = (t.rows + kTile<T> - 1) / kTile<T>;
  t.column_tiles = (t.columns + kTile<T> - 1) / kTile<T>;
  CopyDims outer;
  for (int d = 0; d < last; ++d) {
    if (d == row) continue;
    outer.sizes[outer.rank] = dims.sizes[d];
    outer.dst[outer.rank] = dims.dst[d];
    outer.src[outer.rank++] = dims.src[d];
  }
  t.tiles = t.row_tiles * t.column_tiles * Count(outer);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(t.tiles, INT32_MAX));
  return Launch(&TransposeTiles<T>, blocks, dim3(32, kTileRows), stream, dst, src, t,
                MakeWalk(outer));
}

/// Elements of `unit` bytes instead of those of `element`.
void Widen(int64_t element, int64_t unit, CopyDims* dims) {
  const int last = dims->rank - 1;
  dims->sizes[last] = dims->sizes[last] * element / unit;
  for (int d = 0; d < last; ++d) {
    dims->dst[d] = dims->dst[d] * element / unit;
    dims->src[d] = dims->src[d] * element / unit;
  }
  if (dims->sizes[last] == 1) --dims->rank;
}

template <typename T>
struct Parts {
  T* data[ColumnParts::kMost];
  int64_t begin[ColumnParts::kMost], size[ColumnParts::kMost];
  Divisor by[ColumnParts::kMost];
};

template <typename T, bool kJoin, bool kSmall>
__global__ void __launch_bounds__(kThreads)
    MoveColumns(T* matrix, int64_t rows, int64_t width, Parts<T> parts) {
  const int p = static_cast<int>(blockIdx.y);
  T* const part = parts.data[p];
  T* const at = matrix + parts.begin[p];
  const int64_t n = rows * parts.size[p], step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column = i;
    const int64_t row = rows == 1 ? 0 : parts.by[p].template Divide<kSmall>(i, &column);
    if constexpr (kJoin) {
      at[row * width + column] = part[i];
    } else {
      part[i] = at[row * width + column];
    }
  }
}

/// The first bytes of a pattern.
template <typename T>
__device__ T Element(const Pattern& pattern) {
  return *reinterpret_cast<const T*>(&pattern);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) Fill(T* dst, int64_t n, Pattern pattern) {
  const T value = Element<T>(pattern);
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) dst[i] = value;
}

struct Border {
  int rank;
  Divisor sizes[PadDims::kMost];
  int64_t before[PadDims::kMost], inside[PadDims::kMost];
};

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads)
    Pad(T* out, const T* in, int64_t n, Pattern pattern, Border border) {
  const T value = Element<T>(pattern);
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t rest = i, from = 0, stride = 1;
    bool is_inside = true;
    for (int d = border.rank - 1; d >= 0; --d) {
      int64_t index;
      rest = border.sizes[d].template Divide<kSmall>(rest, &index);
      index -= border.before[d];
      is_inside = is_inside && index >= 0 && index < border.inside[d];
      from += index * stride;
      stride *= border.inside[d];
    }
    out[i] = is_inside ? in[from] : value;
  }
}

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads) Band(T* to, const T* from, int64_t n, Divisor height,
                                                 Divisor width, int64_t lower, int64_t upper) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t row, column;
    height.template Divide<kSmall>(width.template Divide<kSmall>(i, &column), &row);
    const bool keeps = row - column <= lower && column - row <= upper;
    if (!keeps) {
      to[i] = T{};
    } else if (to != from) {
      to[i] = from[i];
    }
  }
}

}  // namespace

cudaError_t LaunchCopy(int64_t element, const CopyDims& given, void* dst, const void* src,
                       cudaStream_t stream) {
  CopyDims dims = given;
  const int last = dims.rank - 1;
  if (dims.dst[last] == 1 && dims.src[last] == 1) {
    if (last == 0) {
      return cudaMemcpyAsync(dst, src, static_cast<size_t>(dims.sizes[0] * element),
                             cudaMemcpyDeviceToDevice, stream);
    }
    Unit unit;
    unit.Add(dst).Add(src).Add(dims.sizes[last] * element);
    for (int d = 0; d < last; ++d) unit.Add(dims.dst[d] * element).Add(dims.src[d] * element);
    Widen(element, unit.bytes(), &dims);
    element = unit.bytes();
  }
  const int row = TransposedRow(dims);
  const int64_t n = Count(dims);
  return VisitSize(element, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    auto* const to = static_cast<T*>(dst);
    const auto* const from = static_cast<const T*>(src);
    if (row >= 0) return Transpose(dims, row, to, from, stream);
    return Launch(IsSmall(n) ? &Copy<T, true> : &Copy<T, false>, Blocks(n), kThreads, stream, to,
                  from, n, MakeWalk(dims));
  });
}

cudaError_t LaunchColumns(int64_t element, bool join, int64_t rows, int64_t width, void* matrix,
                          const ColumnParts& parts, cudaStream_t stream) {
  Unit unit;
  int64_t largest = 0;
  unit.Add(matrix);
  if (rows > 1) unit.Add(width * element);
  for (int p = 0; p < parts.count; ++p) {
    unit.Add(parts.data[p]).Add(parts.begin[p] * element).Add(parts.size[p] * element);
    largest = std::max(largest, parts.size[p] * element);
  }
  const int64_t n = rows * largest / unit.bytes();
  return VisitSize(unit.bytes(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const auto size = static_cast<int64_t>(sizeof(T));
    Parts<T> columns{};
    for (int p = 0; p < parts.count; ++p) {
      columns.data[p] = static_cast<T*>(parts.data[p]);
      columns.begin[p] = parts.begin[p] * element / size;
      columns.size[p] = parts.size[p] * element / size;
      columns.by[p] = Divisor(columns.size[p]);
    }
    void (*const kernel)(T*, int64_t, int64_t, Parts<T>) =
        join ? (IsSmall(n) ? &MoveColumns<T, true, true> : &MoveColumns<T, true, false>)
             : (IsSmall(n) ? &MoveColumns<T, false, true> : &MoveColumns<T, false, false>);
    return Launch(kernel, dim3(Blocks(n), static_cast<unsigned>(parts.count)), kThreads, stream,
                  static_cast<T*>(matrix), rows, width * element / size, columns);
  });
}

cudaError_t LaunchFill(int64_t element, void* dst, int64_t count, Pattern value,
                       cudaStream_t stream) {
  const int64_t bytes = count * element, unit = Unit().Add(dst).Add(bytes).bytes();
  return VisitSize(unit, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&Fill<T>, Blocks(bytes / unit), kThreads, stream, static_cast<T*>(dst),
                  bytes / unit, value);
  });
}

cudaError_t LaunchPad(int64_t element, const PadDims& dims, void* out, const void* in,
                      Pattern value, cudaStream_t stream) {
  const int last = dims.rank - 1;
  const int64_t unit = Unit()
                           .Add(out)
                           .Add(in)
                           .Add(dims.sizes[last] * element)
                           .Add(dims.before[last] * element)
                           .Add(dims.inside[last] * element)
                           .bytes();
  Border border{};
  border.rank = dims.rank;
  int64_t n = 1;
  for (int d = 0; d < dims.rank; ++d) {
    const int64_t times = d == last ? element : unit;
    n *= dims.sizes[d] * times / unit;
    border.sizes[d] = Divisor(dims.sizes[d] * times / unit);
    border.before[d] = dims.before[d] * times / unit;
    border.inside[d] = dims.inside[d] * times / unit;
  }
  return VisitSize(unit, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(IsSmall(n) ? &Pad<T, true> : &Pad<T, false>, Blocks(n), kThreads, stream,
                  static_cast<T*>(out), static_cast<const T*>(in), n, value, border);
  });
}

cudaError_t LaunchBand(int64_t element, int64_t rows, int64_t height, int64_t width, int64_t lower,
                       int64_t upper, void* to, const void* from, cudaStream_t stream) {
  const int64_t n = rows * width;
  return VisitSize(element, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(IsSmall(n) ? &Band<T, true> : &Band<T, false>, Blocks(n), kThreads, stream,
                  static_cast<T*>(to), static_cast<const T*>(from), n, Divisor(height),
                  Divisor(width), lower, upper);
  });
}

}  // namespace troupe::cuda
