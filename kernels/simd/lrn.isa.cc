#include "kernels/simd/lrn.h"

#include "kernels/simd/packet_ops.h"
#include "kernels/simd/wide_vector.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;

// Parts of the scratch memory. All but `padded` have room for a whole last packet.
struct Scratch {
  Scratch(const LrnForm& form, int64_t pixels, float* memory) {
    const int64_t size = pixels * form.depth + 64;
    norms = memory;
    powers = norms + size;
    sums = powers + size;
    padded = sums + size;
    for (int64_t i = 0; i < form.depth + 2 * form.radius; ++i) padded[i] = 0;
  }
  float *norms, *powers, *sums;
  float* padded;  // the channels of a pixel, with `radius` zeros on both sides
};

// sums[c] = the sum of the values of channel c and its neighbors, for all pixels.
// value(element) may be called for any element.
template <typename Value>
void SumNeighbors(const LrnForm& form, int64_t pixels, float* padded, float* sums, Value value) {
  for (int64_t p = 0; p < pixels; ++p) {
    const int64_t first = p * form.depth;
    TROUPE_INDEPENDENT
    for (int64_t c = 0; c < form.depth; ++c) padded[form.radius + c] = value(first + c);
    ForColumnBlocks(form.depth, [&]<typename V, int N>(int64_t c) {
      V sum[N];
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum[i] = V{};
      for (int64_t k = 0; k <= 2 * form.radius; ++k) {
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) {
          sum[i] += LoadFloats<V, F32>(padded + k + c + i * kFloats<V>);
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) StoreFloats<F32>(sum[i], sums + first + c + i * kFloats<V>);
    });
  }
}

// The norms of all channels, and their powers.
void Norms(const LrnForm& form, const float* x, int64_t pixels, Scratch& scratch) {
  const int64_t count = pixels * form.depth;
  float *norms = scratch.norms, *powers = scratch.powers;
  SumNeighbors(form, pixels, scratch.padded, norms, [=](int64_t i) { return x[i] * x[i]; });
  const float bias = form.bias, alpha = form.alpha;
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) norms[i] = bias + alpha * norms[i];
  if (form.beta == 0.5f) {
    TROUPE_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) powers[i] = 1.0f / __builtin_sqrtf(norms[i]);
    return;
  }
  using P = Packet<float>;
  const P exponent = Eigen::internal::pset1<P>(-form.beta);
  for (int64_t i = 0; i < count; i += kPacketSize<float>) {
    const P log = LogOp::Run<float>(Eigen::internal::ploadu<P>(norms + i));
    Eigen::internal::pstoreu(powers + i, ExpOp::Run<float>(Eigen::internal::pmul(exponent, log)));
  }
}

void Forward(const LrnForm& form, const float* x, int64_t pixels, float* memory, float* y) {
  Scratch scratch(form, pixels, memory);
  Norms(form, x, pixels, scratch);
  const float* powers = scratch.powers;
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < pixels * form.depth; ++i) y[i] = x[i] * powers[i];
}

// y depends on its own x by the power, and on all neighbors by the norm.
void Gradient(const LrnForm& form, const float* dy, const float* x, const float* y, int64_t pixels,
              float* memory, float* dx) {
  Scratch scratch(form, pixels, memory);
  Norms(form, x, pixels, scratch);
  const float *norms = scratch.norms, *powers = scratch.powers, *sums = scratch.sums;
  const float factor = -2 * form.alpha * form.beta;
  SumNeighbors(form, pixels, scratch.padded, scratch.sums,
               [=](int64_t i) { return factor * dy[i] * y[i] / norms[i]; });
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < pixels * form.depth; ++i) dx[i] = dy[i] * powers[i] + sums[i] * x[i];
}

}  // namespace

LrnFunctions LrnTable() { return {Forward, Gradient}; }

}  // namespace troupe::TROUPE_ISA
