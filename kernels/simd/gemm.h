/// Matrix product of float, double and unsigned integers, whose sums wrap, compiled once per
/// instruction set.
///
/// The product is cut into tiles that any threads may compute in any order: an element of the
/// result is always the same sequence of fused multiply-adds, whatever the tiles, so that results
/// do not depend on how the work was cut or on the number of threads.
///
/// A tile packs the columns of `b` that it needs into a buffer of the size of the first-level cache
/// and multiplies all of its rows with them (the layering of Goto and van de Geijn, "Anatomy of
/// High-Performance Matrix Multiplication", 2008, without a shared packed matrix).
#ifndef TROUPE_KERNELS_SIMD_GEMM_H_
#define TROUPE_KERNELS_SIMD_GEMM_H_

#include <cstdint>

namespace troupe {

/// c[i * ldc + j] = sum over l < k of a[i * a_row + l * a_col] * b[l * b_row + j * b_col], for i <
/// m, j < n. One of a_row and a_col is 1, and one of b_row and b_col. k = 0 gives zeros.
template <typename T>
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t a_row = 0, a_col = 0;
  const T* b = nullptr;
  int64_t b_row = 0, b_col = 0;
  T* c = nullptr;
  int64_t ldc = 0;
};

/// The most rows of a tile: its part of `a` stays in the second-level cache.
inline constexpr int64_t kGemmTileRows = 384;
/// Bytes of scratch memory that a tile may need, aligned to 64 bytes.
inline constexpr int64_t kGemmScratchBytes = kGemmTileRows * 256 * 4;

/// The functions of one instruction set. All are thread-safe.
template <typename T>
struct GemmFunctions {
  /// Columns that are computed at once: tiles should begin at multiples of it.
  int panel_columns;
  /// Computes rows [row_begin, row_end), at most kGemmTileRows, of columns [col_begin, col_end) of
  /// the result. `scratch` holds kGemmScratchBytes bytes.
  void (*tile)(const GemmProblem<T>& problem, int64_t row_begin, int64_t row_end, int64_t col_begin,
               int64_t col_end, T* scratch);
};

/// The best functions that this processor can run.
template <typename T>
const GemmFunctions<T>& Gemm();
template <>
const GemmFunctions<float>& Gemm<float>();
template <>
const GemmFunctions<double>& Gemm<double>();
template <>
const GemmFunctions<uint16_t>& Gemm<uint16_t>();
template <>
const GemmFunctions<uint32_t>& Gemm<uint32_t>();
template <>
const GemmFunctions<uint64_t>& Gemm<uint64_t>();

#define TROUPE_DECLARE_GEMM_OF(T)                                                  \
  int GemmPanelColumns(T);                                                         \
  void GemmTile(const GemmProblem<T>& problem, int64_t row_begin, int64_t row_end, \
                int64_t col_begin, int64_t col_end, T* scratch);
#define TROUPE_DECLARE_GEMM(ISA)   \
  namespace ISA {                  \
  TROUPE_DECLARE_GEMM_OF(float)    \
  TROUPE_DECLARE_GEMM_OF(double)   \
  TROUPE_DECLARE_GEMM_OF(uint16_t) \
  TROUPE_DECLARE_GEMM_OF(uint32_t) \
  TROUPE_DECLARE_GEMM_OF(uint64_t) \
  }
TROUPE_DECLARE_GEMM(v2)
TROUPE_DECLARE_GEMM(v3)
TROUPE_DECLARE_GEMM(v4)
#undef TROUPE_DECLARE_GEMM
#undef TROUPE_DECLARE_GEMM_OF

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_GEMM_H_
