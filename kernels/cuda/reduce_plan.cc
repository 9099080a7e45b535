#include "kernels/cuda/reduce_plan.h"

#include <utility>

namespace troupe::cuda {
namespace {

constexpr int kThreads = 256;
/// So many blocks of 256 threads run at once on the largest cards (132 processors, 8 each).
constexpr int64_t kBlocks = 1024;
/// No thread adds more packs than this one after the other: rounding errors grow with it.
constexpr int64_t kLongest = 4096;
/// A piece has at least so many packs for each thread: a further launch has to pay.
constexpr int64_t kShortestPiece = 8;
/// With so many columns each has a thread of its own, and so it has if n is small.
constexpr int64_t kManyColumns = 64 << 10;
constexpr int64_t kFew = 8;
/// Columns of a tile, at most; neighbours that a line reads at once.
constexpr int64_t kTile = 64;
constexpr int64_t kMaxBlocks = INT32_MAX;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Cuts `length` units, of which `threads` threads take turns.
void Split(int64_t length, int64_t threads, int64_t blocks, ReducePass* pass) {
  const int64_t wanted = std::min(CeilDiv(kBlocks, blocks), length / (threads * kShortestPiece));
  const int64_t needed = CeilDiv(length, threads * kLongest);
  pass->splits = std::max<int64_t>({1, wanted, needed});
  pass->piece = CeilDiv(length, pass->splits);
  pass->splits = std::max<int64_t>(1, CeilDiv(length, std::max<int64_t>(pass->piece, 1)));
}

void PlanRows(int pack, ReducePass* pass) {
  // A last element may stand alone, but every row has to begin at an aligned address.
  pass->pack = pass->outer == 1 || pass->n % pack == 0 ? pack : 1;
  const int64_t units = pass->n / pass->pack;
  pass->piece = units;
  const bool few = pass->outer < kBlocks && units >= kThreads;
  if (few || units >= 4 * kThreads) {
    pass->group = kThreads;
    Split(units, kThreads, pass->outer, pass);
  } else {
    pass->group = 1;
    while (pass->group < 32 && pass->group * 4 < units) pass->group *= 2;
  }
  pass->blocks = CeilDiv(pass->outer * pass->splits, kThreads / pass->group);
}

void PlanColumns(int pack, ReducePass* pass) {
  pass->pack = pass->inner % pack == 0 ? pack : 1;
  const int64_t columns = pass->inner / pass->pack, all = pass->outer * columns;
  pass->flat = all >= kManyColumns || pass->n <= kFew;
  if (pass->flat) {
    pass->width = kThreads;
    pass->height = 1;
    pass->tiles = CeilDiv(all, kThreads);
  } else {
    pass->width = static_cast<int>(CeilDiv(columns, CeilDiv(columns, kTile)));
    pass->height = static_cast<int>(std::min<int64_t>(kThreads / pass->width, pass->n));
    pass->tiles = CeilDiv(columns, pass->width);
  }
  const int64_t blocks = pass->flat ? pass->tiles : pass->outer * pass->tiles;
  Split(pass->n, pass->height, blocks, pass);
  pass->blocks = blocks * pass->splits;
}

ReducePass PlanPass(int64_t outer, int64_t n, int64_t inner, int pack) {
  ReducePass pass;
  pass.outer = outer;
  pass.n = n;
  pass.inner = inner;
  (inner == 1 ? PlanRows : PlanColumns)(pack, &pass);
  pass.blocks = std::clamp<int64_t>(pass.blocks, 1, kMaxBlocks);
  return pass;
}

void JoinNeighbours(std::vector<ReduceDim>* dims) {
  std::vector<ReduceDim> joined;
  for (const ReduceDim& dim : *dims) {
    if (dim.size == 1) continue;
    if (!joined.empty() && joined.back().reduced == dim.reduced) {
      joined.back().size *= dim.size;
    } else {
      joined.push_back(dim);
    }
  }
  *dims = std::move(joined);
}

}  // namespace

ReducePlan PlanReduce(std::vector<ReduceDim> dims, int pack) {
  ReducePlan plan;
  int64_t kept = 1;
  bool empty = false;
  for (const ReduceDim& dim : dims) {
    if (dim.reduced) {
      empty |= dim.size == 0;
    } else {
      kept *= dim.size;
    }
  }
  if (empty) {
    plan.passes = {PlanPass(kept, 0, 1, 1)};
    return plan;
  }
  JoinNeighbours(&dims);
  while (true) {
    // The longest first: it leaves the least for the others.
    size_t longest = dims.size();
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].reduced) continue;
      if (longest == dims.size() || dims[d].size > dims[longest].size) longest = d;
    }
    int64_t outer = 1, inner = 1;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d != longest) (d < longest ? outer : inner) *= dims[d].size;
    }
    if (longest == dims.size()) {  // Nothing is left, if anything was there.
      if (plan.passes.empty()) plan.passes = {PlanPass(outer, 1, 1, 1)};
      for (size_t p = 0; p + 1 < plan.passes.size(); ++p) plan.scratch += plan.passes[p].results();
      return plan;
    }
    plan.passes.push_back(PlanPass(outer, dims[longest].size, inner, pack));
    dims[longest].size = plan.passes.back().splits;
    JoinNeighbours(&dims);
    pack = 1;
  }
}

}  // namespace troupe::cuda
