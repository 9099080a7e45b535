#include "kernels/linalg/narrow_product.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "kernels/common/onednn.h"
#include "kernels/linalg/product.h"
#include "kernels/math/cast.h"

namespace troupe {
namespace {

using dnnl::memory;

// A part of the result: rows [row, row + rows) and columns [column, column + columns).
struct ResultTile {
  int64_t row, rows, column, columns;
};

// The result cut into tiles of about equal size, whose columns begin at multiples of `panel`.
std::vector<ResultTile> CutResult(const NarrowProductForm& form, int64_t row_tiles,
                                  int64_t column_tiles, int64_t panel) {
  const int64_t panels = (form.n + panel - 1) / panel;
  std::vector<ResultTile> tiles;
  for (int64_t c = 0; c < column_tiles; ++c) {
    const int64_t column = panels * c / column_tiles * panel;
    const int64_t column_end = std::min(form.n, panels * (c + 1) / column_tiles * panel);
    for (int64_t r = 0; r < row_tiles; ++r) {
      const int64_t row = form.m * r / row_tiles;
      tiles.push_back({row, form.m * (r + 1) / row_tiles - row, column, column_end - column});
    }
  }
  return tiles;
}

double Multiplications(const NarrowProductForm& form) {
  return static_cast<double>(form.m) * static_cast<double>(form.n) * static_cast<double>(form.k);
}

// Runs body(begin, end), giving absl::Status, for runs of the tiles of all products, numbered one
// product after another; the first error.
template <typename Body>
absl::Status ForTiles(KernelContext& ctx, const NarrowProductForm& form, int64_t count,
                      const std::vector<ResultTile>& tiles, Body body) {
  constexpr double kPieceMultiplications = 2e6;
  const int64_t num_tiles = static_cast<int64_t>(tiles.size());
  const double each = Multiplications(form) / static_cast<double>(num_tiles);
  const int64_t piece = std::max<int64_t>(1, static_cast<int64_t>(kPieceMultiplications / each));
  const int64_t total = count * num_tiles, pieces = (total + piece - 1) / piece;
  std::vector<absl::Status> results(pieces);
  ctx.ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      results[p] = body(p * piece, std::min(total, (p + 1) * piece));
    }
  });
  for (absl::Status& status : results) {
    if (!status.ok()) return std::move(status);
  }
  return absl::OkStatus();
}

// --- by oneDNN ---------------------------------------------------------------------------------

// The sizes of a tile, the steps of the whole product, and which operands are transposed.
using MatMulKey = std::array<int64_t, 8>;

std::shared_ptr<OneDnnPrimitive> MakeMatMul(const NarrowProductForm& form, const ResultTile& tile) {
  const auto type = memory::data_type::bf16;
  const memory::desc a(
      {tile.rows, form.k}, type,
      form.transpose_a ? memory::dims{1, form.a_step} : memory::dims{form.a_step, 1});
  const memory::desc b(
      {form.k, tile.columns}, type,
      form.transpose_b ? memory::dims{1, form.b_step} : memory::dims{form.b_step, 1});
  const memory::desc c({tile.rows, tile.columns}, type, memory::dims{form.c_step, 1});
  return MakeOneDnnMatMul(a, b, c);
}

absl::StatusOr<std::shared_ptr<OneDnnPrimitive>> FindMatMul(const NarrowProductForm& form,
                                                            const ResultTile& tile) {
  static auto* cache = new OneDnnCache<MatMulKey, OneDnnPrimitive>;
  return cache->Find(
      {tile.rows, tile.columns, form.k, form.a_step, form.b_step, form.c_step, form.transpose_a,
       form.transpose_b},
      [&] { return CatchOneDnn("making a product", [&] { return MakeMatMul(form, tile); }); });
}

// A matrix with one row or column is read once, and is not worth repacking; a call of oneDNN costs
// as much as a small product.
bool OneDnnPays(const NarrowProductForm& form) {
  constexpr double kLeastMultiplications = 32 * 32 * 32;
  return std::min(form.m, form.n) >= 4 && Multiplications(form) >= kLeastMultiplications;
}

absl::Status RunOneDnn(KernelContext& ctx, const NarrowProductForm& form, const Tensor& a,
                       const Tensor& b, int64_t count,
                       absl::FunctionRef<NarrowProductPlace(int64_t)> place, Tensor* c) {
  // Few tiles, as oneDNN repacks the columns of b for each: as many as keep a few threads at work,
  // or more of a large product. Columns are cut first.
  constexpr double kLeastTile = 8e6, kLargeTile = 4e7;
  constexpr int64_t kPanel = 64;
  const double products = Multiplications(form);
  const int64_t wanted = static_cast<int64_t>(
      std::clamp(products / kLeastTile, 1.0, std::max(4.0, products / kLargeTile)));
  const int64_t column_tiles = std::clamp<int64_t>(form.n / kPanel, 1, wanted);
  const int64_t row_tiles = std::clamp<int64_t>(form.m / kPanel, 1, wanted / column_tiles);
  const std::vector<ResultTile> tiles = CutResult(form, row_tiles, column_tiles, kPanel);
  std::vector<std::shared_ptr<OneDnnPrimitive>> primitives;
  size_t scratch_bytes = 0;
  for (const ResultTile& tile : tiles) {
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<OneDnnPrimitive> found, FindMatMul(form, tile));
    scratch_bytes = std::max(scratch_bytes, found->bytes(3));
    primitives.push_back(std::move(found));
  }
  const bfloat16* a_data = a.unchecked_data<bfloat16>();
  const bfloat16* b_data = b.unchecked_data<bfloat16>();
  bfloat16* c_data = c->mutable_data<bfloat16>();
  return ForTiles(ctx, form, count, tiles, [&](int64_t begin, int64_t end) -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor space,
        ctx.AllocateTemp(ElementType::kUint8, Shape({static_cast<int64_t>(scratch_bytes)})));
    for (int64_t i = begin; i < end; ++i) {
      const NarrowProductPlace at = place(i / static_cast<int64_t>(tiles.size()));
      const size_t t = static_cast<size_t>(i) % tiles.size();
      const ResultTile& tile = tiles[t];
      const bfloat16* from_a = a_data + at.a + tile.row * (form.transpose_a ? 1 : form.a_step);
      const bfloat16* from_b = b_data + at.b + tile.column * (form.transpose_b ? form.b_step : 1);
      TROUPE_RETURN_IF_ERROR(primitives[t]->Execute(
          {const_cast<bfloat16*>(from_a), const_cast<bfloat16*>(from_b),
           c_data + at.c + tile.row * form.c_step + tile.column, space.mutable_raw_data()}));
    }
    return absl::OkStatus();
  });
}

// --- by our own product of floats --------------------------------------------------------------

// The conversions of one type.
struct Conversion {
  explicit Conversion(ElementType type)
      : bytes(ElementSize(type)),
        widen(FindCast(type, ElementType::kFloat)),
        narrow(FindCast(ElementType::kFloat, type)) {}

  // Widens rows of `columns` elements, `step` apart, the first of which begins at element `first`.
  void Widen(const Tensor& from, int64_t first, int64_t step, int64_t rows, int64_t columns,
             float* to) const {
    const char* in = static_cast<const char*>(from.raw_data()) + first * bytes;
    for (int64_t r = 0; r < rows; ++r) widen(in + r * step * bytes, to + r * columns, columns);
  }

  int64_t bytes;
  simd::UnaryFn widen, narrow;
};

// A tile of the result, block by block of the sum over k. The blocks of the operands and the tile
// stay in the second-level cache.
constexpr int64_t kTileRows = 256, kTileColumns = 256, kBlockDepth = 192;

struct WideBlocks {
  float *a, *b, *sum, *part;
};

void MultiplyTile(const NarrowProductForm& form, const Conversion& type, const ResultTile& tile,
                  const Tensor& a, const Tensor& b, const NarrowProductPlace& at,
                  const WideBlocks& wide, Tensor* c) {
  for (int64_t l = 0; l < form.k; l += kBlockDepth) {
    const int64_t depth = std::min(kBlockDepth, form.k - l);
    GemmProblem<float> p;
    p.m = tile.rows;
    p.n = tile.columns;
    p.k = depth;
    if (form.transpose_a) {
      type.Widen(a, at.a + l * form.a_step + tile.row, form.a_step, depth, tile.rows, wide.a);
    } else {
      type.Widen(a, at.a + tile.row * form.a_step + l, form.a_step, tile.rows, depth, wide.a);
    }
    p.a = wide.a;
    p.a_row = form.transpose_a ? 1 : depth;
    p.a_col = form.transpose_a ? tile.rows : 1;
    if (form.transpose_b) {
      type.Widen(b, at.b + tile.column * form.b_step + l, form.b_step, tile.columns, depth, wide.b);
    } else {
      type.Widen(b, at.b + l * form.b_step + tile.column, form.b_step, depth, tile.columns, wide.b);
    }
    p.b = wide.b;
    p.b_row = form.transpose_b ? 1 : tile.columns;
    p.b_col = form.transpose_b ? depth : 1;
    p.c = l == 0 ? wide.sum : wide.part;
    p.ldc = tile.columns;
    RunProductHere(p);
    if (l == 0) continue;
    for (int64_t i = 0; i < tile.rows * tile.columns; ++i) wide.sum[i] += wide.part[i];
  }
  char* out = static_cast<char*>(c->mutable_raw_data()) +
              (at.c + tile.row * form.c_step + tile.column) * type.bytes;
  for (int64_t r = 0; r < tile.rows; ++r) {
    type.narrow(wide.sum + r * tile.columns, out + r * form.c_step * type.bytes, tile.columns);
  }
}

absl::Status RunWidened(KernelContext& ctx, const NarrowProductForm& form, const Tensor& a,
                        const Tensor& b, int64_t count,
                        absl::FunctionRef<NarrowProductPlace(int64_t)> place, Tensor* c) {
  constexpr int64_t kPanel = 32;
  const std::vector<ResultTile> tiles =
      CutResult(form, (form.m + kTileRows - 1) / kTileRows,
                (form.n + kTileColumns - 1) / kTileColumns, kPanel);
  const int64_t rows = std::min(form.m, kTileRows), columns = std::min(form.n, kTileColumns);
  const int64_t depth = std::min(form.k, kBlockDepth);
  const Conversion type(c->type());
  return ForTiles(ctx, form, count, tiles, [&](int64_t begin, int64_t end) -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor space, ctx.AllocateTemp(ElementType::kFloat,
                                       Shape({depth * (rows + columns) + 2 * rows * columns})));
    WideBlocks wide;
    wide.a = space.mutable_data<float>();
    wide.b = wide.a + depth * rows;
    wide.sum = wide.b + depth * columns;
    wide.part = wide.sum + rows * columns;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t num_tiles = static_cast<int64_t>(tiles.size());
      MultiplyTile(form, type, tiles[i % num_tiles], a, b, place(i / num_tiles), wide, c);
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status RunNarrowProducts(KernelContext& ctx, const NarrowProductForm& form, const Tensor& a,
                               const Tensor& b, int64_t count,
                               absl::FunctionRef<NarrowProductPlace(int64_t)> place, Tensor* c) {
  if (c->type() == ElementType::kBfloat16 && OneDnnHasBfloat16() && OneDnnPays(form)) {
    return RunOneDnn(ctx, form, a, b, count, place, c);
  }
  return RunWidened(ctx, form, a, b, count, place, c);
}

}  // namespace troupe
