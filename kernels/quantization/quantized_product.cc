#include "kernels/quantization/quantized_product.h"

#include <algorithm>

#include "kernels/linalg/product.h"

namespace troupe {
namespace {

/// Products that a float sums exactly: their sum is at most 2^24.
constexpr int64_t kPiece = 256;
static_assert(kPiece * kMostExact * kMostExact < (1 << 24));

}  // namespace

absl::Status MultiplyExactly(KernelContext& ctx, int64_t m, int64_t n, int64_t k,
                             const ExactOperand& a, const ExactOperand& b, float* sums,
                             int32_t* c) {
  GemmProblem<float> problem;
  problem.m = m;
  problem.n = n;
  problem.a_row = a.row;
  problem.a_col = a.column;
  problem.b_row = b.row;
  problem.b_col = b.column;
  problem.c = sums;
  problem.ldc = n;
  std::fill_n(c, m * n, 0);
  for (int64_t l = 0; l < k; l += kPiece) {
    problem.k = std::min(kPiece, k - l);
    TROUPE_RETURN_IF_ERROR(
        RunProducts<float>(ctx, problem, 1, [&](int64_t, GemmProblem<float>* piece) {
          piece->a = a.data + l * a.column;
          piece->b = b.data + l * b.row;
        }));
    ctx.ParallelFor(m * n, KernelContext::GrainFor(0.5), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        c[i] = static_cast<int32_t>(static_cast<uint32_t>(c[i]) +
                                    static_cast<uint32_t>(static_cast<int32_t>(sums[i])));
      }
    });
  }
  return absl::OkStatus();
}

}  // namespace troupe
