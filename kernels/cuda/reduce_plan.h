/// How a reduction is cut into launches. Plain arithmetic: it knows no card, so that results do not
/// depend on one.
#ifndef TROUPE_KERNELS_CUDA_REDUCE_PLAN_H_
#define TROUPE_KERNELS_CUDA_REDUCE_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::cuda {

/// One launch: elements [outer, n, inner] become accumulators [outer, splits, inner].
///
/// Rows (inner is 1): `group` threads for each piece of a row, neighbours reading neighbours; a
/// block of 256 threads has 256 / group pieces.
/// Columns: a block has `height` lines of `width` threads; a line reads neighbours of one index of
/// n, each thread `pack` columns, and the lines of a block share n. A tile is `width` packs of
/// columns: of one `outer`, or, if `flat`, of outer and inner as one dimension.
struct ReducePass {
  int64_t outer = 1, n = 1, inner = 1;
  int pack = 1;               ///< Elements that a thread reads at once, at an aligned address.
  int64_t splits = 1;         ///< Pieces of n, each with its own accumulators,
  int64_t piece = 0;          ///< and their length: in packs (rows) or indices of n (columns).
  int64_t blocks = 1;         ///< Of the grid.
  int group = 0;              ///< Rows only; a power of two up to 32, or 256.
  int width = 0, height = 0;  ///< Columns only.
  int64_t tiles = 0;
  bool flat = false;

  bool rows() const { return inner == 1; }
  int64_t results() const { return outer * splits * inner; }
};

/// Each pass reads what the one before has left; the last one leaves the results.
struct ReducePlan {
  std::vector<ReducePass> passes;
  /// Accumulators between passes, all of them.
  int64_t scratch = 0;
};

struct ReduceDim {
  int64_t size;
  bool reduced;
};

/// Elements of `size` bytes that a thread reads at once and has accumulators of `acc_size` for.
constexpr int ReducePack(int64_t size, int64_t acc_size) {
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(16 / size, 64 / acc_size)));
}

/// For dimensions from the outermost to the innermost. Those of the same fate may be neighbours.
/// `pack`: as `ReducePack` says if the elements' address is a multiple of 16, else 1.
ReducePlan PlanReduce(std::vector<ReduceDim> dims, int pack);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_REDUCE_PLAN_H_
