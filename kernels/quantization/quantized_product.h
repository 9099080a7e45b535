/// Products of matrices of 8-bit integers, exact.
#ifndef TROUPE_KERNELS_QUANTIZATION_QUANTIZED_PRODUCT_H_
#define TROUPE_KERNELS_QUANTIZATION_QUANTIZED_PRODUCT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace troupe {

/// A matrix of integers, held as floats. None is larger than kMostExact in magnitude.
///
/// Products are computed in float, which has fast kernels on every processor: integers of 8 bits
/// and a sign, their products and sums of 256 products are floats exactly, whatever their order.
/// Longer sums are cut into such pieces, which are added as integers.
struct ExactOperand {
  const float* data = nullptr;
  int64_t row = 0, column = 0;  ///< Strides.
};

/// The largest difference of two integers of 8 bits.
inline constexpr int64_t kMostExact = 255;

/// c[i, j] = sum over l < k of a[i, l] * b[l, j], modulo 2^32, for i < m and j < n; c is dense.
/// `sums` is room for m * n floats.
absl::Status MultiplyExactly(KernelContext& ctx, int64_t m, int64_t n, int64_t k,
                             const ExactOperand& a, const ExactOperand& b, float* sums, int32_t* c);

/// A matrix of integers of 8 bits as they are, quint8 or qint8 if `is_signed`. One stride is 1.
struct BytesOperand {
  const void* data = nullptr;
  int64_t row = 0, column = 0;  ///< Strides.
  bool is_signed = false;
  int32_t zero = 0;  ///< What is subtracted of each.
};

/// Whether oneDNN has instructions of this processor that multiply bytes without saturating
/// (AVX512_VNNI, AVX_VNNI), and a product of these sizes is worth its call.
bool BytesProductPays(int64_t m, int64_t n, int64_t k);
/// c[i, j] = sum over l < k of (a[i, l] - a.zero) * (b[l, j] - b.zero), modulo 2^32; c is dense.
/// The same on any number of threads.
absl::Status MultiplyBytes(KernelContext& ctx, int64_t m, int64_t n, int64_t k, BytesOperand a,
                           BytesOperand b, int32_t* c);

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUANTIZATION_QUANTIZED_PRODUCT_H_
