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

// Multiplications of a run of tiles without AMX.
constexpr double kLeastRun = 2e6;

double Multiplications(const NarrowProductForm& form) {
  return static_cast<double>(form.m) * static_cast<double>(form.n) * static_cast<double>(form.k);
}

// Runs body(begin, end), giving absl::Status, for runs of the tiles of all products, numbered one
// product after another; a run has at least `least` multiplications. The first error.
template <typename Body>
absl::Status ForTiles(KernelContext& ctx, const NarrowProductForm& form, int64_t count,
                      int64_t num_tiles, double least, Body body) {
  const double each = Multiplications(form) / static_cast<double>(num_tiles);
  const int64_t piece = std::max<int64_t>(1, static_cast<int64_t>(least / each));
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

// A block of a matrix as it lies in memory: rows, `step` elements apart.
struct Block {
  int64_t rows, columns, step;
  // With AMX blocks are copied so that they have no gaps, without which oneDNN's fastest product
  // takes no operand.
  bool packed() const { return OneDnnHasAmx() && step != columns; }
  int64_t packed_size() const { return packed() ? rows * columns : 0; }
  int64_t given_step() const { return packed() ? columns : step; }
};

void CopyRows(const bfloat16* from, int64_t from_step, const Block& size, bfloat16* to,
              int64_t to_step) {
  for (int64_t r = 0; r < size.rows; ++r) {
    std::copy_n(from + r * from_step, size.columns, to + r * to_step);
  }
}

// A tile of the result and what is multiplied for it.
struct TileProduct {
  TileProduct(const NarrowProductForm& form, const ResultTile& tile)
      : a{tile.rows, form.k, form.a_step},
        b{form.k, tile.columns, form.b_step},
        c{tile.rows, tile.columns, form.c_step},
        a_at(tile.row * (form.transpose_a ? 1 : form.a_step)),
        b_at(tile.column * (form.transpose_b ? form.b_step : 1)),
        c_at(tile.row * form.c_step + tile.column) {
    if (form.transpose_a) std::swap(a.rows, a.columns);
    if (form.transpose_b) std::swap(b.rows, b.columns);
  }

  Block a, b, c;
  int64_t a_at, b_at, c_at;  // where they begin
  std::shared_ptr<OneDnnPrimitive> primitive;
};

// The sizes of a tile, the steps of the operands and which are transposed.
using MatMulKey = std::array<int64_t, 8>;

absl::StatusOr<std::shared_ptr<OneDnnPrimitive>> FindMatMul(const NarrowProductForm& form,
                                                            const TileProduct& tile) {
  static auto* cache = new OneDnnCache<MatMulKey, OneDnnPrimitive>;
  const int64_t m = tile.c.rows, n = tile.c.columns, k = form.k;
  const int64_t a_step = tile.a.given_step(), b_step = tile.b.given_step(),
                c_step = tile.c.given_step();
  const auto matrix = [](int64_t rows, int64_t columns, int64_t step, bool transposed) {
    return memory::desc({rows, columns}, memory::data_type::bf16,
                        transposed ? memory::dims{1, step} : memory::dims{step, 1});
  };
  return cache->Find({m, n, k, a_step, b_step, c_step, form.transpose_a, form.transpose_b}, [&] {
    return CatchOneDnn("making a product", [&] {
      return MakeOneDnnMatMul(matrix(m, k, a_step, form.transpose_a),
                              matrix(k, n, b_step, form.transpose_b), matrix(m, n, c_step, false));
    });
  });
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
  // Few tiles: as many as keep a few threads at work, or more of a large product.
  constexpr int64_t kPanel = 64;
  const double speed = OneDnnHasAmx() ? 8 : 1;
  const double least_tile = speed * 8e6, large_tile = speed * 4e7;
  const double products = Multiplications(form);
  const int64_t wanted = static_cast<int64_t>(
      std::clamp(products / least_tile, 1.0, std::max(4.0, products / large_tile)));
  const int64_t row_tiles = std::clamp<int64_t>(form.m / kPanel, 1, wanted);
  const int64_t column_tiles = std::clamp<int64_t>(form.n / kPanel, 1, wanted / row_tiles);
  const std::vector<ResultTile> cut = CutResult(form, row_tiles, column_tiles, kPanel);
  std::vector<TileProduct> tiles;
  int64_t scratch_size = 0, a_size = 0, b_size = 0, c_size = 0;
  for (const ResultTile& tile : cut) {
    TileProduct& made = tiles.emplace_back(form, tile);
    TROUPE_ASSIGN_OR_RETURN(made.primitive, FindMatMul(form, made));
    scratch_size = std::max(scratch_size, static_cast<int64_t>(made.primitive->bytes(3)));
    a_size = std::max(a_size, made.a.packed_size());
    b_size = std::max(b_size, made.b.packed_size());
    c_size = std::max(c_size, made.c.packed_size());
  }
  const bfloat16* a_data = a.unchecked_data<bfloat16>();
  const bfloat16* b_data = b.unchecked_data<bfloat16>();
  bfloat16* c_data = c->mutable_data<bfloat16>();
  const auto run = [&](int64_t begin, int64_t end) -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(Tensor scratch,
                            ctx.AllocateTemp(ElementType::kUint8, Shape({scratch_size})));
    TROUPE_ASSIGN_OR_RETURN(Tensor space,
                            ctx.AllocateTemp(c->type(), Shape({a_size + b_size + c_size})));
    bfloat16* const packed_a = space.mutable_data<bfloat16>();
    bfloat16* const packed_b = packed_a + a_size;
    bfloat16* const packed_c = packed_b + b_size;
    for (int64_t i = begin; i < end; ++i) {
      const NarrowProductPlace at = place(i / static_cast<int64_t>(tiles.size()));
      const TileProduct& tile = tiles[static_cast<size_t>(i) % tiles.size()];
      bfloat16* from_a = const_cast<bfloat16*>(a_data) + at.a + tile.a_at;
      bfloat16* from_b = const_cast<bfloat16*>(b_data) + at.b + tile.b_at;
      bfloat16* to = c_data + at.c + tile.c_at;
      if (tile.a.packed()) {
        CopyRows(from_a, tile.a.step, tile.a, packed_a, tile.a.columns);
        from_a = packed_a;
      }
      if (tile.b.packed()) {
        CopyRows(from_b, tile.b.step, tile.b, packed_b, tile.b.columns);
        from_b = packed_b;
      }
      TROUPE_RETURN_IF_ERROR(tile.primitive->Execute(
          {from_a, from_b, tile.c.packed() ? packed_c : to, scratch.mutable_raw_data()}));
      if (tile.c.packed()) CopyRows(packed_c, tile.c.columns, tile.c, to, tile.c.step);
    }
    return absl::OkStatus();
  };
  return ForTiles(ctx, form, count, static_cast<int64_t>(tiles.size()), speed * kLeastRun, run);
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
  const int64_t num_tiles = static_cast<int64_t>(tiles.size());
  const Conversion type(c->type());
  const auto run = [&](int64_t begin, int64_t end) -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor space, ctx.AllocateTemp(ElementType::kFloat,
                                       Shape({depth * (rows + columns) + 2 * rows * columns})));
    WideBlocks wide;
    wide.a = space.mutable_data<float>();
    wide.b = wide.a + depth * rows;
    wide.sum = wide.b + depth * columns;
    wide.part = wide.sum + rows * columns;
    for (int64_t i = begin; i < end; ++i) {
      MultiplyTile(form, type, tiles[i % num_tiles], a, b, place(i / num_tiles), wide, c);
    }
    return absl::OkStatus();
  };
  return ForTiles(ctx, form, count, num_tiles, kLeastRun, run);
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
