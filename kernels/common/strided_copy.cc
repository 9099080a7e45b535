#include "kernels/common/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "kernels/common/copy_loops.h"
#include "kernels/common/short_copy.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

template <typename T>
inline void FillRun(T* dst, const T& value, int64_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    constexpr int64_t kBlock = 256 / sizeof(T);
    if (n >= 2 * kBlock) {
      // Copies of a block are as wide as the machine's copies are.
      T block[kBlock];
      std::fill(block, block + kBlock, value);
      for (; n >= kBlock; n -= kBlock, dst += kBlock) std::memcpy(dst, block, sizeof(block));
    }
  }
  std::fill(dst, dst + n, value);
}

template <typename T>
inline void CopyInner(T* dst, int64_t dst_stride, const T* src, int64_t src_stride, int64_t n) {
  if (dst_stride == 1 && src_stride == 1) {
    CopyRun(dst, src, n);
  } else if (dst_stride == 1 && src_stride == 0) {
    FillRun(dst, *src, n);
  } else if (dst_stride == 1 && src_stride == -1) {
    std::reverse_copy(src - (n - 1), src + 1, dst);
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i * dst_stride] = src[i * src_stride];
  }
}

/// Rows of `kN` adjacent elements, pixels of an image that is turned over, say.
template <int kN, typename T>
void CopyPixels(T* dst, int64_t dst_step, const T* src, int64_t src_step, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, dst += dst_step, src += src_step) std::copy_n(src, kN, dst);
}

/// The elements [begin, end) of the copy, counted in row-major order of the loops.
template <typename T>
void CopyRange(const CopyLoops& loops, T* dst, const T* src, int64_t begin, int64_t end) {
  const int last = loops.rank() - 1;
  DimVector index(loops.rank());
  int64_t rest = begin;
  for (int i = last; i >= 0; --i) {
    index[i] = rest % loops.dims[i];
    rest /= loops.dims[i];
    dst += index[i] * loops.dst[i];
    src += index[i] * loops.src[i];
  }
  const int64_t inner = loops.dims[last];
  const int64_t dst_stride = loops.dst[last], src_stride = loops.src[last];
  for (int64_t left = end - begin; left > 0;) {
    if (last > 0 && index[last] == 0 && left > inner) {  // All but the last of neighbouring runs.
      const int64_t rows = std::min(loops.dims[last - 1] - index[last - 1], left / inner) - 1;
      const int64_t dst_step = loops.dst[last - 1], src_step = loops.src[last - 1];
      const bool adjacent = dst_stride == 1 && src_stride == 1;
      if (adjacent && inner == 3) {
        CopyPixels<3>(dst, dst_step, src, src_step, rows);
      } else if (adjacent && inner == 4) {
        CopyPixels<4>(dst, dst_step, src, src_step, rows);
      } else {
        for (int64_t r = 0; r < rows; ++r) {
          CopyInner(dst + r * dst_step, dst_stride, src + r * src_step, src_stride, inner);
        }
      }
      dst += rows * dst_step;
      src += rows * src_step;
      index[last - 1] += rows;
      left -= rows * inner;
    }
    const int64_t n = std::min(inner - index[last], left);
    CopyInner(dst, dst_stride, src, src_stride, n);
    left -= n;
    if (left == 0) return;
    dst -= index[last] * dst_stride;
    src -= index[last] * src_stride;
    index[last] = 0;
    for (int i = last - 1; i >= 0; --i) {
      dst += loops.dst[i];
      src += loops.src[i];
      if (++index[i] < loops.dims[i]) break;
      dst -= loops.dims[i] * loops.dst[i];
      src -= loops.dims[i] * loops.src[i];
      index[i] = 0;
    }
  }
}

/// Tiles of this many elements a side: a side is at least one cache line.
template <typename T>
constexpr int64_t kTile = std::max<int64_t>(16, 64 / static_cast<int64_t>(sizeof(T)));

/// dst[r * dst_stride + c] = buffer[c * n + r] for a whole tile of n x n.
template <typename T>
inline void StoreTransposed(const T* buffer, T* dst, int64_t dst_stride) {
  constexpr int64_t n = kTile<T>;
#if defined(__SSE2__)
  if constexpr (sizeof(T) == 4) {
    const float* from = reinterpret_cast<const float*>(buffer);
    for (int64_t r = 0; r < n; r += 4) {
      float* to = reinterpret_cast<float*>(dst + r * dst_stride);
      for (int64_t c = 0; c < n; c += 4) {
        __m128 a0 = _mm_loadu_ps(from + c * n + r), a1 = _mm_loadu_ps(from + (c + 1) * n + r);
        __m128 a2 = _mm_loadu_ps(from + (c + 2) * n + r), a3 = _mm_loadu_ps(from + (c + 3) * n + r);
        _MM_TRANSPOSE4_PS(a0, a1, a2, a3);
        _mm_storeu_ps(to + c, a0);
        _mm_storeu_ps(to + dst_stride + c, a1);
        _mm_storeu_ps(to + 2 * dst_stride + c, a2);
        _mm_storeu_ps(to + 3 * dst_stride + c, a3);
      }
    }
    return;
  }
#endif
  for (int64_t r = 0; r < n; ++r) {
    T line[n];
    for (int64_t c = 0; c < n; ++c) line[c] = buffer[c * n + r];
    std::memcpy(dst + r * dst_stride, line, sizeof(line));
  }
}

/// One tile of a transposition: element (r, c) goes from src[r + c * src_stride] to dst[r *
/// dst_stride
/// + c].
template <typename T>
inline void TransposeTile(T* __restrict dst, int64_t dst_stride, const T* __restrict src,
                          int64_t src_stride, int64_t rows, int64_t columns) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    constexpr int64_t n = kTile<T>;
    if (rows == n && columns == n) {
      // Through a buffer, so that every line of both sides is touched once: with strides that are
      // powers of two, lines of a tile push one another out of the cache.
      T buffer[n * n];
      for (int64_t c = 0; c < n; ++c) {
        std::memcpy(buffer + c * n, src + c * src_stride, n * sizeof(T));
      }
      StoreTransposed(buffer, dst, dst_stride);
      return;
    }
  }
  if (columns >= 8) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) dst[r * dst_stride + c] = src[r + c * src_stride];
    }
  } else {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) dst[r * dst_stride + c] = src[r + c * src_stride];
    }
  }
}

/// The last loop is adjacent in the destination, loop `row` in the source: both are walked in
/// tiles, the other loops around them.
template <typename T>
void CopyTransposed(KernelContext& ctx, const CopyLoops& loops, int row, T* dst, const T* src) {
  const int last = loops.rank() - 1;
  constexpr int64_t tile = kTile<T>;
  const int64_t rows = loops.dims[row], columns = loops.dims[last];
  const int64_t row_tiles = (rows + tile - 1) / tile;
  // A strip of full width where it is narrow, so that small last dimensions make few units.
  const int64_t strip = columns <= 4 * tile ? columns : tile;
  const int64_t column_strips = (columns + strip - 1) / strip;
  int64_t outer = 1;
  for (int i = 0; i < last; ++i) {
    if (i != row) outer *= loops.dims[i];
  }
  const int64_t units = outer * row_tiles * column_strips;
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t rest = unit;
      const int64_t c0 = rest % column_strips * strip;
      rest /= column_strips;
      const int64_t r0 = rest % row_tiles * tile;
      rest /= row_tiles;
      T* to = dst + r0 * loops.dst[row] + c0;
      const T* from = src + r0 + c0 * loops.src[last];
      for (int i = last - 1; i >= 0; --i) {
        if (i == row) continue;
        const int64_t at = rest % loops.dims[i];
        rest /= loops.dims[i];
        to += at * loops.dst[i];
        from += at * loops.src[i];
      }
      const int64_t r_count = std::min(tile, rows - r0), c_end = std::min(strip, columns - c0);
      for (int64_t c = 0; c < c_end; c += tile) {
        TransposeTile(to + c, loops.dst[row], from + c * loops.src[last], loops.src[last], r_count,
                      std::min(tile, c_end - c));
      }
    }
  };
  const double unit_ns = 0.5 * std::min(rows, tile) * strip;
  ctx.ParallelFor(units, KernelContext::GrainFor(unit_ns), body);
}

template <typename T>
void Copy(KernelContext& ctx, const CopyLoops& loops, int64_t total, T* dst, const T* src) {
  const int last = loops.rank() - 1;
  if (loops.dst[last] == 1 && loops.src[last] != 1 && loops.src[last] != 0) {
    for (int i = last - 1; i >= 0; --i) {
      if (loops.src[i] == 1) return CopyTransposed(ctx, loops, i, dst, src);
    }
  }
  constexpr bool plain = std::is_trivially_copyable_v<T>;
  const bool runs = loops.dst[last] == 1 && loops.src[last] <= 1 && loops.src[last] >= 0;
  const double element_ns = !plain ? 20 : (runs ? 0.1 * sizeof(T) : 1) + 4.0 / loops.dims[last];
  // Whole runs where possible: a grain that is a multiple of the run.
  int64_t grain = KernelContext::GrainFor(element_ns);
  if (grain > loops.dims[last]) grain -= grain % loops.dims[last];
  ctx.ParallelFor(total, grain,
                  [&](int64_t begin, int64_t end) { CopyRange(loops, dst, src, begin, end); });
}

}  // namespace

void StridedCopy(KernelContext& ctx, ElementType type, absl::Span<const int64_t> dims, void* dst,
                 absl::Span<const int64_t> dst_strides, const void* src,
                 absl::Span<const int64_t> src_strides) {
  int64_t total = 1;
  for (const int64_t dim : dims) total *= dim;
  if (total == 0) return;
  const CopyLoops loops = MergeLoops(dims, dst_strides, src_strides);
  (void)SwitchBySize(type, [&]<typename T>() {
    Copy<T>(ctx, loops, total, static_cast<T*>(dst), static_cast<const T*>(src));
    return absl::OkStatus();
  });
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
  const int64_t count = from.num_elements();
  CopyRuns(ctx, from.type(), 1, count, to->mutable_raw_data(), count, from.raw_data(), count);
  return absl::OkStatus();
}

void FillElements(KernelContext& ctx, ElementType type, void* dst, int64_t count,
                  const void* value) {
  const int64_t one = 1, zero = 0;
  StridedCopy(ctx, type, {&count, 1}, dst, {&one, 1}, value, {&zero, 1});
}

void ZeroElements(KernelContext& ctx, ElementType type, void* dst, int64_t count) {
  if (!IsPlain(type)) {
    (void)SwitchBySize(type, [&]<typename T>() {
      std::fill(static_cast<T*>(dst), static_cast<T*>(dst) + count, T());
      return absl::OkStatus();
    });
    return;
  }
  const int64_t size = static_cast<int64_t>(ElementSize(type));
  ctx.ParallelFor(count * size, KernelContext::GrainFor(0.05), [&](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(dst) + begin, 0, end - begin);
  });
}

void CopyElements(ElementType type, void* dst, const void* src, int64_t count) {
  if (IsPlain(type)) {
    if (count > 0) std::memcpy(dst, src, count * ElementSize(type));
    return;
  }
  (void)SwitchBySize(type, [&]<typename T>() {
    std::copy(static_cast<const T*>(src), static_cast<const T*>(src) + count, static_cast<T*>(dst));
    return absl::OkStatus();
  });
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

}  // namespace troupe
