/// Loops over the cells of an LSTM, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_LSTM_H_
#define TROUPE_KERNELS_SIMD_LSTM_H_

#include <cstdint>

namespace troupe {

/// The functions of one instruction set, on `n` cells. Products and sums round one after the other,
/// from the left. Thread-safe.
struct LstmFunctions {
  /// out = from_x + from_h + bias + more.
  void (*gate)(const float* from_x, const float* from_h, const float* bias, float more, float* out,
               int64_t n);
  /// out += weights * state.
  void (*peephole)(const float* weights, const float* state, float* out, int64_t n);
  /// state = cell_input * input + last * forget, not beyond `clip` on both sides if it is positive.
  void (*cell)(const float* cell_input, const float* input, const float* last, const float* forget,
               float clip, float* state, int64_t n);
  /// out = a * b.
  void (*multiply)(const float* a, const float* b, float* out, int64_t n);
};

/// The best functions that this processor can run.
const LstmFunctions& Lstm();

namespace v2 {
LstmFunctions LstmTable();
}
namespace v3 {
LstmFunctions LstmTable();
}
namespace v4 {
LstmFunctions LstmTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_LSTM_H_
