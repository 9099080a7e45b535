/// Convolutions of images with few channels, compiled once per instruction set: the elements of an
/// output pixel are the lanes of vectors, and rows of the window are read where they lie in a
/// padded image.
#ifndef TROUPE_KERNELS_SIMD_CONV_H_
#define TROUPE_KERNELS_SIMD_CONV_H_

#include <cstdint>

namespace troupe {

/// How the output's depth is cut into panels: of `lanes` columns if no more are left, else of 2 *
/// lanes.
inline int64_t ConvPanelWidth(int64_t columns_left, int64_t lanes) {
  return columns_left <= lanes ? lanes : 2 * lanes;
}

/// What a convolution reads for each output pixel (y, x): in[y * in_row_step + x * in_column_step +
/// t * tap_step + l] for t < taps, l < run. `depth`: of the output.
struct ConvWindow {
  const float* in = nullptr;
  int64_t in_row_step = 0, in_column_step = 0, tap_step = 0;
  int64_t taps = 0, run = 0;
  int64_t rows = 0, columns = 0, depth = 0;
};

/// out(y, x, :) = sum over t, l of in(...) times row (t, l) of the filter.
struct ConvImage : ConvWindow {
  /// Panels one after the other, each of taps * run rows of the panel's width, filled up with
  /// zeros.
  const float* filter = nullptr;
  float* out = nullptr;
  int64_t out_row_step = 0, out_column_step = 0;
};

/// The gradient of a filter: filter[t, l, :] += sum over y, x of in(...) times gradient(y, x, :).
struct ConvFilterImage : ConvWindow {
  /// Panels one after the other, each of rows * columns rows of the panel's width.
  const float* gradient = nullptr;
  float* filter = nullptr;  ///< [taps, run, depth]
};

/// The functions of one instruction set. Thread-safe.
struct ConvFunctions {
  int64_t lanes;
  /// Copies a matrix of `depth` columns into panels; what fills them up is undefined.
  void (*pack)(const float* from, int64_t rows, int64_t depth, float* to);
  void (*image)(const ConvImage& conv);
  void (*filter)(const ConvFilterImage& conv);
};

/// The best functions that this processor can run.
const ConvFunctions& NarrowConv();

namespace v2 {
ConvFunctions ConvTable();
}
namespace v3 {
ConvFunctions ConvTable();
}
namespace v4 {
ConvFunctions ConvTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_CONV_H_
