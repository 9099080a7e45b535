#include "kernels/linalg/product.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "kernels/common/strided_copy.h"

namespace troupe {
namespace {

// A piece of work for one thread: long enough to be worth handing over, short enough to share out
// evenly.
constexpr double kPieceOperations = 2e6;

// Scratch memory of this thread. Most products never touch it.
void* Scratch() {
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  static thread_local std::unique_ptr<void, Free> scratch;
  if (scratch == nullptr) {
    scratch.reset(std::aligned_alloc(64, static_cast<size_t>(kGemmScratchBytes)));
    if (scratch == nullptr) throw std::bad_alloc();  // becomes the step's error
  }
  return scratch.get();
}

// A matrix times a vector is a row times a matrix: c' = b' a'.
template <typename T>
bool Flips(const GemmProblem<T>& p) {
  return p.n == 1 && p.ldc == 1 && p.m > 1;
}
template <typename T>
GemmProblem<T> Flipped(const GemmProblem<T>& p) {
  GemmProblem<T> f;
  f.m = 1;
  f.n = p.m;
  f.k = p.k;
  f.a = p.b;
  f.a_row = p.b_col;
  f.a_col = p.b_row;
  f.b = p.a;
  f.b_row = p.a_col;
  f.b_col = p.a_row;
  f.c = p.c;
  f.ldc = p.m;
  return f;
}

template <typename T>
double Operations(const GemmProblem<T>& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

// How a product is cut: tiles of about equal height and of whole panels. Where that is one tile, a
// long sum is cut, or else the rows. Depends on the sizes only.
struct Cut {
  template <typename T>
  explicit Cut(const GemmProblem<T>& p) {
    row_tiles = (p.m + kGemmTileRows - 1) / kGemmTileRows;
    panel = Gemm<T>().panel_columns;
    panels = (p.n + panel - 1) / panel;
    const double panel_operations = 2.0 * static_cast<double>(p.m) /
                                    static_cast<double>(row_tiles) * static_cast<double>(p.k) *
                                    static_cast<double>(panel);
    const double wanted = kPieceOperations / std::max(panel_operations, 1.0);
    // A tile's part of `a` is packed for the tile alone: large products get wider tiles, as long as
    // there are several to share out.
    const int64_t least = std::clamp<int64_t>(panels * row_tiles / 4, 4, 48);
    const int64_t panels_per_tile =
        wanted >= static_cast<double>(panels)
            ? panels
            : std::min(panels, std::max(least, static_cast<int64_t>(wanted)));
    col_tiles = (panels + panels_per_tile - 1) / panels_per_tile;
    if (row_tiles * col_tiles > 1) return;
    // A shorter sum does not pay for adding up, fewer rows not for the panels that each tile packs.
    constexpr int64_t kLeastDepth = 1024, kLeastRows = 16, kMostPieces = 8;
    const int64_t pieces = std::clamp<int64_t>(
        static_cast<int64_t>(std::min(Operations(p) / kPieceOperations, 1e9)), 1, kMostPieces);
    sums = std::clamp<int64_t>(p.k / kLeastDepth, 1, pieces);
    if (sums == 1) row_tiles = std::clamp<int64_t>(p.m / kLeastRows, 1, pieces);
  }
  /// Where tile `c` of the columns begins.
  int64_t ColumnBegin(int64_t c) const { return panels * c / col_tiles * panel; }

  int64_t row_tiles, col_tiles;
  int64_t sums = 1;       // equal parts of the sum over k
  int64_t panel, panels;  // columns of a panel, number of panels
};

template <typename T>
void RunTile(const GemmProblem<T>& p, const Cut& cut, int64_t tile) {
  const int64_t r = tile / cut.col_tiles;
  const int64_t c = tile % cut.col_tiles;
  Gemm<T>().tile(p, p.m * r / cut.row_tiles, p.m * (r + 1) / cut.row_tiles, cut.ColumnBegin(c),
                 std::min(p.n, cut.ColumnBegin(c + 1)), static_cast<T*>(Scratch()));
}

// One product whose sum is cut: each part is a product of its own, and they are added in order.
template <typename T>
absl::Status RunSums(KernelContext& ctx, const GemmProblem<T>& p, const Cut& cut) {
  const int64_t size = p.m * p.n;
  TROUPE_ASSIGN_OR_RETURN(Tensor space,
                          ctx.AllocateTemp(kElementType<T>, Shape({cut.sums * size})));
  T* parts = space.mutable_data<T>();
  ctx.ParallelFor(cut.sums, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = p.k * i / cut.sums;
      GemmProblem<T> part = p;
      part.k = p.k * (i + 1) / cut.sums - first;
      part.a = p.a + first * p.a_col;
      part.b = p.b + first * p.b_row;
      part.c = parts + i * size;
      part.ldc = p.n;
      RunTile(part, cut, 0);
    }
  });
  for (int64_t i = 0; i < p.m; ++i) {
    T* c = p.c + i * p.ldc;
    for (int64_t j = 0; j < p.n; ++j) {
      T sum = parts[i * p.n + j];
      for (int64_t s = 1; s < cut.sums; ++s) sum += parts[s * size + i * p.n + j];
      c[j] = sum;
    }
  }
  return absl::OkStatus();
}

// Each row of tiles copies the panels of b for itself. Where b is transposed that is slow: a large
// product with several rows of tiles has it copied once, by rows.
template <typename T>
bool CopiesB(const GemmProblem<T>& p) {
  return p.m > kGemmTileRows && p.b_col != 1 && Operations(p) >= 8 * kPieceOperations;
}
template <typename T>
absl::Status RunWithCopyOfB(KernelContext& ctx, GemmProblem<T> p) {
  TROUPE_ASSIGN_OR_RETURN(Tensor b, ctx.AllocateTemp(kElementType<T>, Shape({p.k, p.n})));
  StridedCopy(ctx, kElementType<T>, {p.k, p.n}, b.mutable_raw_data(), {p.n, 1}, p.b,
              {p.b_row, p.b_col});
  p.b = b.template unchecked_data<T>();
  p.b_row = p.n;
  p.b_col = 1;
  return RunProducts<T>(ctx, p, 1, [](int64_t, GemmProblem<T>*) {});
}

}  // namespace

template <typename T>
absl::Status RunProducts(KernelContext& ctx, const GemmProblem<T>& form, int64_t count,
                         absl::FunctionRef<void(int64_t, GemmProblem<T>*)> pointers) {
  if (count <= 0 || form.m <= 0 || form.n <= 0) return absl::OkStatus();
  if (CopiesB(form)) {
    for (int64_t i = 0; i < count; ++i) {
      GemmProblem<T> problem = form;
      pointers(i, &problem);
      TROUPE_RETURN_IF_ERROR(RunWithCopyOfB(ctx, problem));
    }
    return absl::OkStatus();
  }
  const bool flips = Flips(form);
  const Cut cut(flips ? Flipped(form) : form);
  if (count == 1 && cut.sums > 1) {
    GemmProblem<T> problem = form;
    pointers(0, &problem);
    return RunSums(ctx, flips ? Flipped(problem) : problem, cut);
  }
  const int64_t tiles = cut.row_tiles * cut.col_tiles;
  int64_t grain = 1;  // in tiles
  if (tiles == 1) {
    grain = std::max<int64_t>(
        1, static_cast<int64_t>(kPieceOperations / std::max(Operations(form), 1.0)));
  }
  ctx.ParallelFor(count * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      GemmProblem<T> problem = form;
      pointers(t / tiles, &problem);
      RunTile(flips ? Flipped(problem) : problem, cut, t % tiles);
    }
  });
  return absl::OkStatus();
}

namespace {

// Integers as unsigned ones, whose sums wrap.
template <typename T>
absl::Status RunWrapping(KernelContext& ctx, const GemmProblem<T>& form, int64_t count,
                         absl::FunctionRef<void(int64_t, GemmProblem<T>*)> pointers) {
  using Sum = std::make_unsigned_t<T>;
  const auto wrapping = [](const GemmProblem<T>& p) {
    return GemmProblem<Sum>{p.m,
                            p.n,
                            p.k,
                            reinterpret_cast<const Sum*>(p.a),
                            p.a_row,
                            p.a_col,
                            reinterpret_cast<const Sum*>(p.b),
                            p.b_row,
                            p.b_col,
                            reinterpret_cast<Sum*>(p.c),
                            p.ldc};
  };
  return RunProducts<Sum>(ctx, wrapping(form), count, [&](int64_t i, GemmProblem<Sum>* p) {
    GemmProblem<T> problem = form;
    pointers(i, &problem);
    *p = wrapping(problem);
  });
}

}  // namespace

template absl::Status RunProducts<float>(KernelContext&, const GemmProblem<float>&, int64_t,
                                         absl::FunctionRef<void(int64_t, GemmProblem<float>*)>);
template absl::Status RunProducts<double>(KernelContext&, const GemmProblem<double>&, int64_t,
                                          absl::FunctionRef<void(int64_t, GemmProblem<double>*)>);

#define TROUPE_INTEGER_PRODUCTS(T)                                                            \
  template <>                                                                                 \
  absl::Status RunProducts<T>(KernelContext & ctx, const GemmProblem<T>& form, int64_t count, \
                              absl::FunctionRef<void(int64_t, GemmProblem<T>*)> pointers) {   \
    return RunWrapping(ctx, form, count, pointers);                                           \
  }
TROUPE_INTEGER_PRODUCTS(int16_t)
TROUPE_INTEGER_PRODUCTS(int32_t)
TROUPE_INTEGER_PRODUCTS(int64_t)
#undef TROUPE_INTEGER_PRODUCTS

template <typename T>
void RunProductHere(const GemmProblem<T>& problem) {
  if (problem.m <= 0 || problem.n <= 0) return;
  const GemmProblem<T> p = Flips(problem) ? Flipped(problem) : problem;
  const int64_t row_tiles = (p.m + kGemmTileRows - 1) / kGemmTileRows;
  for (int64_t r = 0; r < row_tiles; ++r) {
    Gemm<T>().tile(p, p.m * r / row_tiles, p.m * (r + 1) / row_tiles, 0, p.n,
                   static_cast<T*>(Scratch()));
  }
}
template void RunProductHere<float>(const GemmProblem<float>&);
template void RunProductHere<double>(const GemmProblem<double>&);
template void RunProductHere<uint32_t>(const GemmProblem<uint32_t>&);

}  // namespace troupe
