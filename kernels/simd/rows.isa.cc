// Softmax, cross entropy and leaky ReLU of the floating types.
#include "kernels/simd/half_blocks.h"
#include "kernels/simd/packet_ops.h"
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

template <typename T>
T RowMax(const T* x, int64_t n) {
  using P = Packet<T>;
  using Eigen::internal::ploadu, Eigen::internal::pmax, Eigen::PropagateNaN;
  constexpr int kSize = kPacketSize<T>;
  constexpr int kPackets = 4, kLanes = kPackets * kSize;  // Four that do not wait for each other.
  T result = x[0];
  if (n < kSize) {
    for (int64_t i = 1; i < n; ++i) result = MaximumOp::Run(result, x[i]);
    return result;
  }
  P most = ploadu<P>(x + n - kSize);  // Some are looked at twice.
  int64_t i = 0;
  if (n >= kLanes) {
    P acc[kPackets];
    for (int k = 0; k < kPackets; ++k) acc[k] = ploadu<P>(x + k * kSize);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 4
      for (int k = 0; k < kPackets; ++k) {
        acc[k] = pmax<PropagateNaN>(acc[k], ploadu<P>(x + i + k * kSize));
      }
    }
    most = pmax<PropagateNaN>(most, pmax<PropagateNaN>(pmax<PropagateNaN>(acc[0], acc[1]),
                                                       pmax<PropagateNaN>(acc[2], acc[3])));
  }
  for (; i + kSize <= n; i += kSize) most = pmax<PropagateNaN>(most, ploadu<P>(x + i));
  T lanes[kSize];
  Eigen::internal::pstoreu(lanes, most);
  for (int width = kSize / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) lanes[k] = MaximumOp::Run(lanes[k], lanes[k + width]);
  }
  return lanes[0];
}

// out[i] = exp(x[i] - max) if kStore; returns their sum, in as many lanes for every instruction
// set.
template <typename T, bool kStore>
T SumExp(const T* x, T max, T* out, int64_t n) {
  using P = Packet<T>;
  constexpr int kSize = kPacketSize<T>;
  constexpr int kLanes = 64 / sizeof(T);
  constexpr int kPackets = kLanes / kSize;
  const P shift = Eigen::internal::pset1<P>(max);
  P acc[kPackets];
  for (int k = 0; k < kPackets; ++k) acc[k] = Eigen::internal::pset1<P>(T(0));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kPackets; ++k) {
      const P e = ExpOp::Run<T>(
          Eigen::internal::psub(Eigen::internal::ploadu<P>(x + i + k * kSize), shift));
      if constexpr (kStore) Eigen::internal::pstoreu(out + i + k * kSize, e);
      acc[k] = Eigen::internal::padd(acc[k], e);
    }
  }
  T lanes[kLanes];
  for (int k = 0; k < kPackets; ++k) Eigen::internal::pstoreu(lanes + k * kSize, acc[k]);
  if (i < n) {
    T rest[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) rest[j] = i + j < n ? x[i + j] : max;
    for (int k = 0; k < kPackets; ++k) {
      if (i + k * kSize >= n) break;
      Eigen::internal::pstoreu(rest + k * kSize,
                               ExpOp::Run<T>(Eigen::internal::psub(
                                   Eigen::internal::ploadu<P>(rest + k * kSize), shift)));
    }
    for (int64_t j = 0; i + j < n; ++j) {
      if constexpr (kStore) out[i + j] = rest[j];
      lanes[j] += rest[j];
    }
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  return lanes[0];
}

// `out` may be `x`.
template <typename T>
void SoftmaxRow(const T* x, T* out, int64_t cols, bool log) {
  const T max = RowMax(x, cols);
  if (log) {
    const T shift = std::log(SumExp<T, false>(x, max, nullptr, cols));
    TROUPE_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) out[c] = (x[c] - max) - shift;
  } else {
    const T scale = T(1) / SumExp<T, true>(x, max, out, cols);
    TROUPE_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) out[c] *= scale;
  }
}

// out[i] = Op(in[i]) of whole packets.
template <typename Op, typename T>
void RunPackets(const T* in, T* out, int64_t n) {
  for (int64_t i = 0; i < n; i += kPacketSize<T>) {
    Eigen::internal::pstoreu(out + i,
                             Op::template Run<T>(Eigen::internal::ploadu<Packet<T>>(in + i)));
  }
}

// Some rows of few columns, of which each function is computed for all rows at once: element (c, r)
// is at c * kRows + r.
template <typename T>
struct ShortRows {
  static constexpr int kRows = 64 / sizeof(T);
  static constexpr int64_t kMostColumns = 32;

  // exps[c, r] = exp(x[c, r] - the row's largest); sums of them.
  ShortRows(const T* in, int64_t stride, int64_t step, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < kRows; ++r) {
      const T* row = in + (r < rows ? r : 0) * stride;
      for (int64_t c = 0; c < cols; ++c) shifted[c * kRows + r] = row[c * step];
    }
    T largest[kRows];
    for (int r = 0; r < kRows; ++r) largest[r] = shifted[r];
    for (int64_t c = 1; c < cols; ++c) {
      for (int r = 0; r < kRows; ++r) {
        largest[r] = MaximumOp::Run(largest[r], shifted[c * kRows + r]);
      }
    }
    for (int64_t c = 0; c < cols; ++c) {
      for (int r = 0; r < kRows; ++r) shifted[c * kRows + r] -= largest[r];
    }
    RunPackets<ExpOp, T>(shifted, exps, cols * kRows);
    for (int r = 0; r < kRows; ++r) sums[r] = 0;
    for (int64_t c = 0; c < cols; ++c) {
      for (int r = 0; r < kRows; ++r) sums[r] += exps[c * kRows + r];
    }
  }
  // exps[c, r] over sums[r].
  void Normalize(int64_t cols) {
    T scale[kRows];
    for (int r = 0; r < kRows; ++r) scale[r] = T(1) / sums[r];
    for (int64_t c = 0; c < cols; ++c) {
      for (int r = 0; r < kRows; ++r) exps[c * kRows + r] *= scale[r];
    }
  }
  static void Store(const T* from, int64_t rows, int64_t cols, T* out) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = from[c * kRows + r];
    }
  }

  T shifted[kMostColumns * kRows], exps[kMostColumns * kRows], sums[kRows];
};

// Calls body(first row, rows) for blocks of so many rows as ShortRows holds.
template <typename T, typename Body>
void ForShortRows(int64_t rows, Body body) {
  for (int64_t r = 0; r < rows; r += ShortRows<T>::kRows) {
    body(r, rows - r < ShortRows<T>::kRows ? rows - r : ShortRows<T>::kRows);
  }
}

template <typename T>
void Softmax(const void* logits, void* out, int64_t rows, int64_t cols, bool log) {
  const T* x = static_cast<const T*>(logits);
  T* y = static_cast<T*>(out);
  if (cols > ShortRows<T>::kMostColumns) {
    for (int64_t r = 0; r < rows; ++r) SoftmaxRow(x + r * cols, y + r * cols, cols, log);
    return;
  }
  ForShortRows<T>(rows, [&](int64_t first, int64_t count) {
    ShortRows<T> block(x + first * cols, cols, 1, count, cols);
    if (log) {
      RunPackets<LogOp, T>(block.sums, block.sums, block.kRows);
      for (int64_t c = 0; c < cols; ++c) {
        for (int r = 0; r < block.kRows; ++r) block.shifted[c * block.kRows + r] -= block.sums[r];
      }
    } else {
      block.Normalize(cols);
    }
    block.Store(log ? block.shifted : block.exps, count, cols, y + first * cols);
  });
}

// From logits in `backprop` (contiguous) to loss and gradient, in place.
template <typename T>
T CrossEntropyRow(const T* labels, int64_t step, T* backprop, int64_t cols) {
  const T max = RowMax(backprop, cols);
  constexpr int64_t kExpsKept = 256;  // Exponentials of longer rows are computed twice.
  T exps[kExpsKept];
  const T sum = cols <= kExpsKept ? SumExp<T, true>(backprop, max, exps, cols)
                                  : SumExp<T, false>(backprop, max, nullptr, cols);
  const T log_sum = std::log(sum), scale = T(1) / sum;
  T loss = 0;
  for (int64_t c = 0; c < cols; ++c) loss += labels[c * step] * (log_sum - (backprop[c] - max));
  if (cols <= kExpsKept) {
    for (int64_t c = 0; c < cols; ++c) backprop[c] = exps[c] * scale - labels[c * step];
    return loss;
  }
  SumExp<T, true>(backprop, max, backprop, cols);
  for (int64_t c = 0; c < cols; ++c) backprop[c] = backprop[c] * scale - labels[c * step];
  return loss;
}

template <typename T>
void CrossEntropy(const void* logits, int64_t logits_stride, int64_t logits_step,
                  const void* labels, int64_t labels_stride, int64_t labels_step, void* loss,
                  void* backprop, int64_t rows, int64_t cols) {
  if (cols <= ShortRows<T>::kMostColumns) {
    ForShortRows<T>(rows, [&](int64_t first, int64_t count) {
      ShortRows<T> block(static_cast<const T*>(logits) + first * logits_stride, logits_stride,
                         logits_step, count, cols);
      T log_sums[ShortRows<T>::kRows];
      RunPackets<LogOp, T>(block.sums, log_sums, block.kRows);
      block.Normalize(cols);
      for (int64_t r = 0; r < count; ++r) {
        const T* label = static_cast<const T*>(labels) + (first + r) * labels_stride;
        T* to = static_cast<T*>(backprop) + (first + r) * cols;
        T sum = 0;
        for (int64_t c = 0; c < cols; ++c) {
          const T wanted = label[c * labels_step];
          sum += wanted * (log_sums[r] - block.shifted[c * block.kRows + r]);
          to[c] = block.exps[c * block.kRows + r] - wanted;
        }
        static_cast<T*>(loss)[first + r] = sum;
      }
    });
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = static_cast<const T*>(logits) + r * logits_stride;
    T* out = static_cast<T*>(backprop) + r * cols;
    TROUPE_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) out[c] = x[c * logits_step];
    static_cast<T*>(loss)[r] =
        CrossEntropyRow(static_cast<const T*>(labels) + r * labels_stride, labels_step, out, cols);
  }
}

// `backprop` may be `x`.
template <typename T>
T SparseCrossEntropyRow(const T* x, int64_t label, T* backprop, int64_t cols) {
  const T max = RowMax(x, cols);
  const T shifted = x[label] - max;
  const T sum = SumExp<T, true>(x, max, backprop, cols);
  const T scale = T(1) / sum;
  TROUPE_INDEPENDENT
  for (int64_t c = 0; c < cols; ++c) backprop[c] *= scale;
  backprop[label] -= T(1);
  return std::log(sum) - shifted;
}

template <typename T>
void SparseCrossEntropy(const void* logits, const int64_t* labels, void* loss, void* backprop,
                        int64_t rows, int64_t cols) {
  if (cols <= ShortRows<T>::kMostColumns) {
    ForShortRows<T>(rows, [&](int64_t first, int64_t count) {
      ShortRows<T> block(static_cast<const T*>(logits) + first * cols, cols, 1, count, cols);
      T log_sums[ShortRows<T>::kRows];
      RunPackets<LogOp, T>(block.sums, log_sums, block.kRows);
      block.Normalize(cols);
      T* to = static_cast<T*>(backprop) + first * cols;
      block.Store(block.exps, count, cols, to);
      for (int64_t r = 0; r < count; ++r) {
        const int64_t label = labels[first + r];
        to[r * cols + label] -= T(1);
        static_cast<T*>(loss)[first + r] = log_sums[r] - block.shifted[label * block.kRows + r];
      }
    });
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    static_cast<T*>(loss)[r] =
        SparseCrossEntropyRow(static_cast<const T*>(logits) + r * cols, labels[r],
                              static_cast<T*>(backprop) + r * cols, cols);
  }
}

template <typename T>
void LeakyRelu(const void* in, void* out, int64_t n, float alpha) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  const T a = static_cast<T>(alpha);
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > T(0) ? x[i] : a * x[i];
}

template <typename T>
void LeakyReluGrad(const void* g, const void* x, void* out, int64_t n, float alpha) {
  const T* dy = static_cast<const T*>(g);
  const T* v = static_cast<const T*>(x);
  T* y = static_cast<T*>(out);
  const T a = static_cast<T>(alpha);
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = v[i] > T(0) ? dy[i] : a * dy[i];
}

template <typename H>
void HalfLeakyRelu(const void* in, void* out, int64_t n, float alpha) {
  float buffer[kHalfBlock];
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t m = n - i < kHalfBlock ? n - i : kHalfBlock;
    H::Load(static_cast<const uint16_t*>(in) + i, buffer, m);
    LeakyRelu<float>(buffer, buffer, m, alpha);
    H::Store(buffer, static_cast<uint16_t*>(out) + i, m);
  }
}
template <typename H>
void HalfLeakyReluGrad(const void* g, const void* x, void* out, int64_t n, float alpha) {
  float u[kHalfBlock], v[kHalfBlock];
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t m = n - i < kHalfBlock ? n - i : kHalfBlock;
    H::Load(static_cast<const uint16_t*>(g) + i, u, m);
    H::Load(static_cast<const uint16_t*>(x) + i, v, m);
    LeakyReluGrad<float>(u, v, u, m, alpha);
    H::Store(u, static_cast<uint16_t*>(out) + i, m);
  }
}

template <typename T>
void Set(RowFns* fns) {
  *fns = {Softmax<T>, CrossEntropy<T>, SparseCrossEntropy<T>, LeakyRelu<T>, LeakyReluGrad<T>};
}
// The rows of half and bfloat16 are widened by the kernels, which have memory for a whole row.
template <typename H>
void SetHalf(RowFns* fns) {
  fns->leaky_relu = HalfLeakyRelu<H>;
  fns->leaky_relu_grad = HalfLeakyReluGrad<H>;
}

}  // namespace

void FillRows(Table* table) {
  Set<float>(&table->rows[kF32]);
  Set<double>(&table->rows[kF64]);
  SetHalf<F16>(&table->rows[kF16]);
  SetHalf<BF16>(&table->rows[kBF16]);
}

}  // namespace troupe::simd::TROUPE_ISA
