#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/simd/gemm.h"
#include "kernels/simd/vector_bytes.h"

namespace troupe::TROUPE_ISA {
namespace {

// With 32 registers 8 x 2 accumulators and 8 row pointers are all in registers.
constexpr int kRows = kVectorBytes == 64 ? 8 : 6;
constexpr int kVectors = 2;

template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  // The same without its alignment and free to alias, for loads and stores.
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};
template <typename T>
using Vec = typename VectorOf<T>::Type;

template <typename T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
template <typename T>
constexpr int kPanel = kVectors* kLanes<T>;
// A panel of kPanel columns and this depth takes half of the first-level cache, or a little more.
template <typename T>
constexpr int64_t kDepth = (kVectorBytes == 64 ? 192 : 256) * 4 / static_cast<int64_t>(sizeof(T));

template <typename T>
constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));

template <typename T>
inline Vec<T> Load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::Unaligned*>(p);
}
template <typename T>
inline void Store(T* p, Vec<T> v) {
  *reinterpret_cast<typename VectorOf<T>::Unaligned*>(p) = v;
}

#if defined(__AVX512F__)
inline Vec<float> Broadcast(float x) { return (Vec<float>)_mm512_set1_ps(x); }
inline Vec<double> Broadcast(double x) { return (Vec<double>)_mm512_set1_pd(x); }
inline Vec<float> MultiplyAdd(Vec<float> a, Vec<float> b, Vec<float> c) {
  return (Vec<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
inline Vec<double> MultiplyAdd(Vec<double> a, Vec<double> b, Vec<double> c) {
  return (Vec<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif defined(__AVX2__) && defined(__FMA__)
inline Vec<float> Broadcast(float x) { return (Vec<float>)_mm256_set1_ps(x); }
inline Vec<double> Broadcast(double x) { return (Vec<double>)_mm256_set1_pd(x); }
inline Vec<float> MultiplyAdd(Vec<float> a, Vec<float> b, Vec<float> c) {
  return (Vec<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
inline Vec<double> MultiplyAdd(Vec<double> a, Vec<double> b, Vec<double> c) {
  return (Vec<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#endif
template <typename T>
inline Vec<T> Broadcast(T x) {
  return x - Vec<T>{};
}
template <typename V>
inline V MultiplyAdd(V a, V b, V c) {
  return a * b + c;
}

// c[MR][NV vectors] (+)= a[MR][k] b[k][NV vectors]; only `cols` columns of c exist. With kByColumns
// the MR elements of a column of a lie side by side and columns are `a_step` apart; otherwise the
// elements of a row lie side by side and rows are `a_step` apart.
template <typename T, int MR, int NV, bool kByColumns>
void Micro(int64_t k, const T* a, int64_t a_step, const T* b, int64_t b_row, T* c, int64_t ldc,
           bool add, int cols) {
  constexpr int L = kLanes<T>;
  Vec<T> acc[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) acc[i][v] = Broadcast(T(0));
  }
  const T* rows[MR];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) rows[i] = a + (kByColumns ? 0 : i * a_step);
#pragma GCC unroll 4
  for (int64_t l = 0; l < k; ++l) {
    Vec<T> bv[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) bv[v] = Load(b + v * L);
    b += b_row;
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
      const Vec<T> av = Broadcast(kByColumns ? a[i] : rows[i][l]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[i][v] = MultiplyAdd(av, bv[v], acc[i][v]);
    }
    if (kByColumns) a += a_step;
  }
  if (cols == NV * L) {
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        T* p = c + i * ldc + v * L;
        Store(p, add ? acc[i][v] + Load(p) : acc[i][v]);
      }
    }
    return;
  }
  // Unrolled: an index that is not constant would put the sums into memory from the start.
  T block[MR * NV * L];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) Store(block + (i * NV + v) * L, acc[i][v]);
  }
  for (int i = 0; i < MR; ++i) {
    const T* row = block + i * NV * L;
    T* p = c + i * ldc;
    if (add) {
      for (int j = 0; j < cols; ++j) p[j] = row[j] + p[j];
    } else {
      for (int j = 0; j < cols; ++j) p[j] = row[j];
    }
  }
}

template <typename T>
using MicroFunction = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, bool,
                               int);

template <typename T, int NV, bool kByColumns>
MicroFunction<T> MicroForRows(int64_t rows) {
  switch (rows) {
    case 1:
      return Micro<T, 1, NV, kByColumns>;
    case 2:
      return Micro<T, 2, NV, kByColumns>;
    case 3:
      return Micro<T, 3, NV, kByColumns>;
    case 4:
      return Micro<T, 4, NV, kByColumns>;
    case 5:
      return Micro<T, 5, NV, kByColumns>;
    case 6:
      return Micro<T, 6, NV, kByColumns>;
#if defined(__AVX512F__)
    case 7:
      return Micro<T, 7, NV, kByColumns>;
    default:
      return Micro<T, 8, NV, kByColumns>;
#else
    default:
      return Micro<T, 6, NV, kByColumns>;
#endif
  }
}

template <typename T, int kCount>
inline void CopyRows(const T* in, int64_t row_stride, int64_t depth, T* out) {
  for (int64_t l = 0; l < depth; ++l) {
    memcpy(out, in, kCount * sizeof(T));
    in += row_stride;
    out += kCount;
  }
}

// out[l * width + j] = in[l * row_stride + j] for l < depth, j < count; zeros up to `width`.
template <typename T>
inline void PackRows(const T* in, int64_t row_stride, int64_t depth, int64_t count, int64_t width,
                     T* out) {
  if (count == width) {
    if (count == kPanel<T>) return CopyRows<T, kPanel<T>>(in, row_stride, depth, out);
    switch (count) {
      case 3:
        return CopyRows<T, 3>(in, row_stride, depth, out);
      case 4:
        return CopyRows<T, 4>(in, row_stride, depth, out);
      case 5:
        return CopyRows<T, 5>(in, row_stride, depth, out);
      case 6:
        return CopyRows<T, 6>(in, row_stride, depth, out);
      case 7:
        return CopyRows<T, 7>(in, row_stride, depth, out);
      case 8:
        return CopyRows<T, 8>(in, row_stride, depth, out);
      default:
        break;
    }
  }
  for (int64_t l = 0; l < depth; ++l) {
    for (int64_t j = 0; j < count; ++j) out[j] = in[j];
    for (int64_t j = count; j < width; ++j) out[j] = 0;
    in += row_stride;
    out += width;
  }
}

#if defined(__SSE2__)
inline void Transpose4x4(const float* in, int64_t in_stride, float* out, int64_t out_stride) {
  __m128 r0 = _mm_loadu_ps(in), r1 = _mm_loadu_ps(in + in_stride);
  __m128 r2 = _mm_loadu_ps(in + 2 * in_stride), r3 = _mm_loadu_ps(in + 3 * in_stride);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  _mm_storeu_ps(out, r0);
  _mm_storeu_ps(out + out_stride, r1);
  _mm_storeu_ps(out + 2 * out_stride, r2);
  _mm_storeu_ps(out + 3 * out_stride, r3);
}
#endif
template <typename T>
inline void Transpose4x4(const T* in, int64_t in_stride, T* out, int64_t out_stride) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) out[i * out_stride + j] = in[j * in_stride + i];
  }
}

// out[l * width + j] = in[j * column_stride + l]; zeros up to `width`.
template <typename T>
inline void PackColumns(const T* in, int64_t column_stride, int64_t depth, int64_t count,
                        int64_t width, T* out) {
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    const T* from = in + j * column_stride;
    T* to = out + j;
    int64_t l = 0;
    for (; l + 4 <= depth; l += 4) {
      Transpose4x4(from + l, column_stride, to + l * width, width);
    }
    for (; l < depth; ++l) {
      for (int i = 0; i < 4; ++i) to[l * width + i] = from[i * column_stride + l];
    }
  }
  for (; j < width; ++j) {
    if (j < count) {
      const T* from = in + j * column_stride;
      for (int64_t l = 0; l < depth; ++l) out[l * width + j] = from[l];
    } else {
      for (int64_t l = 0; l < depth; ++l) out[l * width + j] = 0;
    }
  }
}

template <typename T>
inline T MultiplyAddOne(T a, T b, T c) {
#if defined(__FMA__)
  if constexpr (T(0.5) != 0)
    return sizeof(T) == 4 ? __builtin_fmaf(a, b, c) : __builtin_fma(a, b, c);
#endif
  if constexpr (sizeof(T) == 2) return static_cast<T>(uint32_t{a} * b + c);
  return a * b + c;
}

template <typename T>
inline T HorizontalSum(Vec<T> v) {
  T lanes[kLanes<T>];
  Store(lanes, v);
  for (int width = kLanes<T> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// Few rows, both operands contiguous along k: dot products.
template <typename T, int MR, int NC>
void Dots(int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_col, T* c, int64_t ldc) {
  constexpr int L = kLanes<T>;
  // Two sets when there are few sums, to hide the latency of the additions.
  constexpr int kSets = MR * NC >= 8 ? 1 : 2;
  Vec<T> acc[kSets][MR][NC];
  for (int s = 0; s < kSets; ++s) {
    for (int i = 0; i < MR; ++i) {
      for (int j = 0; j < NC; ++j) acc[s][i][j] = Broadcast(T(0));
    }
  }
  int64_t l = 0;
  for (; l + kSets * L <= k; l += kSets * L) {
#pragma GCC unroll 2
    for (int s = 0; s < kSets; ++s) {
      Vec<T> av[MR];
#pragma GCC unroll 4
      for (int i = 0; i < MR; ++i) av[i] = Load(a + i * a_row + l + s * L);
#pragma GCC unroll 4
      for (int j = 0; j < NC; ++j) {
        const Vec<T> bv = Load(b + j * b_col + l + s * L);
#pragma GCC unroll 4
        for (int i = 0; i < MR; ++i) acc[s][i][j] = MultiplyAdd(av[i], bv, acc[s][i][j]);
      }
    }
  }
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < NC; ++j) {
      T sum = HorizontalSum<T>(kSets == 2 ? acc[0][i][j] + acc[kSets - 1][i][j] : acc[0][i][j]);
      for (int64_t r = l; r < k; ++r) {
        sum = MultiplyAddOne(a[i * a_row + r], b[j * b_col + r], sum);
      }
      c[i * ldc + j] = sum;
    }
  }
}

// Few rows, b with contiguous rows: they are added up in the order in which they lie in memory.
template <typename T, int MR>
void SumOfRows(const GemmProblem<T>& p, int64_t row_begin, int64_t col_begin, int64_t col_end) {
  constexpr int L = kLanes<T>;
  constexpr int kAtOnce = 4;
  constexpr int64_t kBlock =
      4096 / static_cast<int64_t>(sizeof(T));  // stays in the first-level cache
  const T* a = p.a + row_begin * p.a_row;
  for (int64_t j0 = col_begin; j0 < col_end; j0 += kBlock) {
    const int64_t cols = col_end - j0 < kBlock ? col_end - j0 : kBlock;
    T* c = p.c + row_begin * p.ldc + j0;
    for (int i = 0; i < MR; ++i) memset(c + i * p.ldc, 0, cols * sizeof(T));
    int64_t l = 0;
    for (; l + kAtOnce <= p.k; l += kAtOnce) {
      const T* b = p.b + l * p.b_row + j0;
      Vec<T> av[MR][kAtOnce];
      for (int i = 0; i < MR; ++i) {
        for (int u = 0; u < kAtOnce; ++u) {
          av[i][u] = Broadcast(a[i * p.a_row + (l + u) * p.a_col]);
        }
      }
      int64_t j = 0;
      for (; j + L <= cols; j += L) {
        Vec<T> sum[MR];
#pragma GCC unroll 2
        for (int i = 0; i < MR; ++i) sum[i] = Load(c + i * p.ldc + j);
#pragma GCC unroll 4
        for (int u = 0; u < kAtOnce; ++u) {
          const Vec<T> bv = Load(b + u * p.b_row + j);
#pragma GCC unroll 2
          for (int i = 0; i < MR; ++i) sum[i] = MultiplyAdd(av[i][u], bv, sum[i]);
        }
#pragma GCC unroll 2
        for (int i = 0; i < MR; ++i) Store(c + i * p.ldc + j, sum[i]);
      }
      for (; j < cols; ++j) {
        for (int i = 0; i < MR; ++i) {
          T sum = c[i * p.ldc + j];
          for (int u = 0; u < kAtOnce; ++u) {
            sum = MultiplyAddOne(a[i * p.a_row + (l + u) * p.a_col], b[u * p.b_row + j], sum);
          }
          c[i * p.ldc + j] = sum;
        }
      }
    }
    for (; l < p.k; ++l) {
      const T* b = p.b + l * p.b_row + j0;
      for (int i = 0; i < MR; ++i) {
        const T x = a[i * p.a_row + l * p.a_col];
        for (int64_t j = 0; j < cols; ++j) {
          c[i * p.ldc + j] = MultiplyAddOne(x, b[j], c[i * p.ldc + j]);
        }
      }
    }
  }
}

// Shorter sums are formed in the order of k, as in the other ways.
constexpr int64_t kShortestDot = 64;

// How the sum over k is cut and ordered depends on the number of rows of the whole problem, never
// on the tile.
constexpr int64_t kRowsOfDots = 2;
template <typename T>
bool UsesDots(const GemmProblem<T>& p) {
  return p.m <= kRowsOfDots && p.a_col == 1 && p.b_row == 1 && p.b_col != 1 && p.k >= kShortestDot;
}

template <typename T>
void DotTile(const GemmProblem<T>& p, int64_t row_begin, int64_t row_end, int64_t col_begin,
             int64_t col_end) {
  for (int64_t i = row_begin; i < row_end; ++i) {
    const T* a = p.a + i * p.a_row;
    T* c = p.c + i * p.ldc;
    // Sums of one column are the same in groups of four and alone: both use two sets.
    int64_t j = col_begin;
    for (; j + 4 <= col_end; j += 4) {
      Dots<T, 1, 4>(p.k, a, p.a_row, p.b + j * p.b_col, p.b_col, c + j, p.ldc);
    }
    for (; j < col_end; ++j) {
      Dots<T, 1, 1>(p.k, a, p.a_row, p.b + j * p.b_col, p.b_col, c + j, p.ldc);
    }
  }
}

// `rows` rows in strips of at most kRows rows, as equal as they can be: the first `longer` have
// base + 1.
struct Strips {
  explicit Strips(int64_t rows) {
    count = (rows + kRows - 1) / kRows;
    base = rows / count;
    longer = rows - base * count;
  }
  int64_t count, base, longer;
};

template <typename T>
void PackA(const GemmProblem<T>& p, const Strips& strips, const T* a, int64_t depth, T* out) {
  for (int64_t s = 0; s < strips.count; ++s) {
    const int64_t height = strips.base + (s < strips.longer);
    if (p.a_col == 1) {
      PackColumns(a, p.a_row, depth, height, height, out);
    } else {
      PackRows(a, p.a_col, depth, height, height, out);
    }
    a += height * p.a_row;
    out += height * depth;
  }
}

// What comes next, to be fetched meanwhile: rows lie too far apart for the processor to foresee.
template <typename T>
struct Ahead {
  // The next panel of b; nullptr if it needs no help.
  const T* b_rows = nullptr;
  int64_t b_step = 0;
  // Of each row of a: elements [a_begin, a_end) from where it is read now. They belong to the next
  // block; each panel fetches a part of them.
  int64_t a_begin = 0, a_end = 0;
};

template <typename T, bool kByColumns>
void StripsTimesPanel(const Strips& strips, int64_t depth, const T* a, int64_t a_strip,
                      int64_t a_step, const T* b, int64_t b_row, T* c, int64_t ldc, bool add,
                      int64_t cols, const Ahead<T>& ahead) {
  int64_t fetched = 0, strip = 0;
  const bool narrow = cols <= kLanes<T>;
  for (int part = 0; part < 2; ++part) {  // the longer strips, then the others
    const int64_t height = strips.base + (part == 0);
    const int64_t count = part == 0 ? strips.longer : strips.count - strips.longer;
    if (count == 0) continue;
    const auto micro = narrow ? MicroForRows<T, 1, kByColumns>(height)
                              : MicroForRows<T, kVectors, kByColumns>(height);
    // Packed strips (a_step 0): as many elements from column to column as the strip has rows.
    const int64_t step = a_step == 0 ? height : a_step;
    for (int64_t s = 0; s < count; ++s) {
      if (ahead.b_rows != nullptr) {
        const int64_t until = depth * ++strip / strips.count;
        for (; fetched < until; ++fetched) {
          const T* row = ahead.b_rows + fetched * ahead.b_step;
          __builtin_prefetch(row, 0, 2);
          __builtin_prefetch(row + kPanel<T> - 1, 0, 2);
        }
      }
      for (int64_t l = ahead.a_begin; l < ahead.a_end; l += kLine<T>) {
        for (int64_t i = 0; i < height; ++i) __builtin_prefetch(a + i * a_step + l, 0, 2);
      }
      micro(depth, a, step, b, b_row, c, ldc, add, static_cast<int>(cols));
      a += height * a_strip;
      c += height * ldc;
    }
  }
}

// How a tile reads its operands.
struct Reading {
  bool pack_a;          // copied into strips first
  bool direct_b;        // read where it lies; otherwise copied panel by panel
  int64_t block_depth;  // the part of the sum over k that is worked on at once
};

// Packing pays where rows would fight for a set of the first-level cache, which a distance of
// kSetBytes makes them do, and where a copy is used often enough. Measured on Zen 5 with each
// choice forced (matmul_benchmark): a copy of b costs 100x784x200 4 % and 64x10000x64 8 %; one of a
// is worth 0 to 3 % either way from 256 cubed to 128x1024x1024.
template <typename T>
Reading ReadingFor(const GemmProblem<T>& p, int64_t rows, int64_t panels) {
  constexpr int64_t kSetBytes = 2048, kQuarterSetBytes = 512;
  constexpr int64_t kPanelsForClashingA = 4, kPanelsForTransposedA = 8, kRowsForDirectB = 128;
  constexpr int64_t kSize = sizeof(T);
  const int64_t distance = (p.a_col == 1 ? p.a_row : p.a_col) * kSize;
  Reading reading;
  reading.pack_a = rows > kRows && ((distance % kSetBytes == 0 && panels >= kPanelsForClashingA) ||
                                    (p.a_col != 1 && panels >= kPanelsForTransposedA));
  reading.direct_b =
      p.b_col == 1 &&
      (rows <= 2 * kRows || (rows <= kRowsForDirectB && p.b_row * kSize % kQuarterSetBytes != 0));
  const int64_t blocks = (p.k + kDepth<T> - 1) / kDepth<T>;
  reading.block_depth = ((p.k + blocks - 1) / blocks + 3) / 4 * 4;
  return reading;
}

template <typename T>
void Tile(const GemmProblem<T>& p, int64_t row_begin, int64_t row_end, int64_t col_begin,
          int64_t col_end, T* scratch) {
  const int64_t rows = row_end - row_begin;
  if (rows <= 0 || col_begin >= col_end) return;
  if (p.k == 0) {
    for (int64_t i = row_begin; i < row_end; ++i) {
      for (int64_t j = col_begin; j < col_end; ++j) p.c[i * p.ldc + j] = 0;
    }
    return;
  }
  if (UsesDots(p)) return DotTile(p, row_begin, row_end, col_begin, col_end);
  if (p.m <= kRowsOfDots && p.b_col == 1) {
    return rows == 2 ? SumOfRows<T, 2>(p, row_begin, col_begin, col_end)
                     : SumOfRows<T, 1>(p, row_begin, col_begin, col_end);
  }
  constexpr int L = kLanes<T>;
  constexpr int kPanelColumns = kPanel<T>;
  const Strips strips(rows);
  const int64_t panels = (col_end - col_begin + kPanelColumns - 1) / kPanelColumns;
  const auto [pack_a, direct_b, block_depth] = ReadingFor(p, rows, panels);
  alignas(64) T panel[kPanelColumns * kDepth<T>];
  for (int64_t l = 0; l < p.k; l += block_depth) {
    const int64_t depth = p.k - l < block_depth ? p.k - l : block_depth;
    const T* a = p.a + row_begin * p.a_row + l * p.a_col;
    if (pack_a) PackA(p, strips, a, depth, scratch);
    for (int64_t j = col_begin; j < col_end; j += kPanelColumns) {
      const int64_t cols = col_end - j < kPanelColumns ? col_end - j : kPanelColumns;
      const int64_t width = cols <= L ? L : kPanelColumns;
      const T* b = p.b + l * p.b_row + j * p.b_col;
      int64_t b_row = p.b_row;
      if (!direct_b || cols != width) {
        if (p.b_col == 1) {
          PackRows(b, p.b_row, depth, cols, width, panel);
        } else {
          PackColumns(b, p.b_col, depth, cols, width, panel);
        }
        b = panel;
        b_row = width;
      }
      Ahead<T> ahead;
      if (p.b_col == 1 && rows > kRows && col_end - j >= 2 * kPanelColumns) {
        ahead.b_rows = p.b + l * p.b_row + j + kPanelColumns;
        ahead.b_step = p.b_row;
      }
      if (const int64_t rest = p.k - l - depth; rest > 0 && !pack_a && p.a_col == 1) {
        const int64_t next = rest < block_depth ? rest : block_depth;
        const int64_t lines = (next + kLine<T> - 1) / kLine<T>;
        const int64_t at = (j - col_begin) / kPanelColumns;
        ahead.a_begin = depth + lines * at / panels * kLine<T>;
        ahead.a_end = depth + lines * (at + 1) / panels * kLine<T>;
      }
      T* c = p.c + row_begin * p.ldc + j;
      if (pack_a) {
        StripsTimesPanel<T, true>(strips, depth, scratch, depth, 0, b, b_row, c, p.ldc, l > 0, cols,
                                  ahead);
      } else if (p.a_col == 1) {
        StripsTimesPanel<T, false>(strips, depth, a, p.a_row, p.a_row, b, b_row, c, p.ldc, l > 0,
                                   cols, ahead);
      } else {
        StripsTimesPanel<T, true>(strips, depth, a, 1, p.a_col, b, b_row, c, p.ldc, l > 0, cols,
                                  ahead);
      }
    }
  }
}

}  // namespace

#define TROUPE_GEMM(T)                                                             \
  int GemmPanelColumns(T) { return kPanel<T>; }                                    \
  void GemmTile(const GemmProblem<T>& problem, int64_t row_begin, int64_t row_end, \
                int64_t col_begin, int64_t col_end, T* scratch) {                  \
    Tile(problem, row_begin, row_end, col_begin, col_end, scratch);                \
  }
TROUPE_GEMM(float)
TROUPE_GEMM(double)
TROUPE_GEMM(uint16_t)
TROUPE_GEMM(uint32_t)
TROUPE_GEMM(uint64_t)
#undef TROUPE_GEMM

}  // namespace troupe::TROUPE_ISA
