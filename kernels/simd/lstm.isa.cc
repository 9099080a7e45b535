#include "kernels/simd/lstm.h"

#include "kernels/simd/independent.h"

namespace troupe::TROUPE_ISA {
namespace {

void Gate(const float* from_x, const float* from_h, const float* bias, float more, float* out,
          int64_t n) {
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) out[i] = from_x[i] + from_h[i] + bias[i] + more;
}

void Peephole(const float* weights, const float* state, float* out, int64_t n) {
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) out[i] += weights[i] * state[i];
}

void Cell(const float* cell_input, const float* input, const float* last, const float* forget,
          float clip, float* state, int64_t n) {
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) state[i] = cell_input[i] * input[i] + last[i] * forget[i];
  if (!(clip > 0)) return;
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const float x = state[i];
    state[i] = x < -clip ? -clip : clip < x ? clip : x;
  }
}

void Multiply(const float* a, const float* b, float* out, int64_t n) {
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

}  // namespace

LstmFunctions LstmTable() { return {Gate, Peephole, Cell, Multiply}; }

}  // namespace troupe::TROUPE_ISA
