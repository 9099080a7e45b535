// Products of bytes by oneDNN, which multiplies unsigned by signed ones. Others become such by
// another zero point, and zero points are taken out of the sums afterwards:
//     sum (a - p)(b - q) = sum a b - q sum a - p sum b + k p q.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/common/onednn.h"
#include "kernels/quantization/quantized_product.h"
#include "kernels/simd/bytes.h"

namespace troupe {
namespace {

using dnnl::memory;

bool HasByteProducts() {
  static const bool has = [] {
    const dnnl::cpu_isa isa = OneDnnInstructionSet();
    return isa == dnnl::cpu_isa::avx512_core_vnni || isa == dnnl::cpu_isa::avx512_core_bf16 ||
           isa == dnnl::cpu_isa::avx512_core_amx || isa == dnnl::cpu_isa::avx2_vnni;
  }();
  return has;
}

/// Turns bytes of the other signedness into those wanted: by 128 more or less.
absl::StatusOr<Tensor> Flipped(KernelContext& ctx, const void* bytes, int64_t count) {
  TROUPE_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(ElementType::kUint8, Shape({count})));
  const uint8_t* from = static_cast<const uint8_t*>(bytes);
  uint8_t* to = copy.mutable_data<uint8_t>();
  ctx.ParallelFor(count, KernelContext::GrainFor(0.05), [&](int64_t begin, int64_t end) {
    Bytes().flip(from + begin, end - begin, to + begin);
  });
  return copy;
}

/// The sums of `count` lines of `terms` bytes, which are beside each other, or else the lines are.
template <typename T, typename Sum, typename Add>
std::vector<uint32_t> SumsOf(KernelContext& ctx, const T* x, int64_t count, int64_t line_step,
                             int64_t terms, int64_t term_step, Sum sum, Add add) {
  std::vector<uint32_t> sums(count);
  const double line_ns = 0.05 * static_cast<double>(terms);
  ctx.ParallelFor(count, KernelContext::GrainFor(line_ns), [&](int64_t begin, int64_t end) {
    if (term_step == 1) {
      for (int64_t i = begin; i < end; ++i) sums[i] = sum(x + i * line_step, terms);
      return;
    }
    for (int64_t l = 0; l < terms; ++l) add(x + begin + l * term_step, end - begin, &sums[begin]);
  });
  return sums;
}

// The sizes of a tile and the strides.
using ByteProductKey = std::array<int64_t, 8>;

std::shared_ptr<OneDnnPrimitive> MakeProduct(const ByteProductKey& key) {
  const auto [m, n, k, a_row, a_column, b_row, b_column, c_row] = key;
  const memory::desc a({m, k}, memory::data_type::u8, memory::dims{a_row, a_column});
  const memory::desc b({k, n}, memory::data_type::s8, memory::dims{b_row, b_column});
  const memory::desc c({m, n}, memory::data_type::s32, memory::dims{c_row, 1});
  return MakeOneDnnMatMul(a, b, c);
}

absl::StatusOr<std::shared_ptr<OneDnnPrimitive>> FindProduct(const ByteProductKey& key) {
  static auto* cache = new OneDnnCache<ByteProductKey, OneDnnPrimitive>;
  return cache->Find(
      key, [&] { return CatchOneDnn("making a product", [&] { return MakeProduct(key); }); });
}

}  // namespace

bool BytesProductPays(int64_t m, int64_t n, int64_t k) {
  constexpr double kLeastMultiplications = 32 * 32 * 32;
  return HasByteProducts() && std::min(m, n) >= 4 &&
         static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) >=
             kLeastMultiplications;
}

absl::Status MultiplyBytes(KernelContext& ctx, int64_t m, int64_t n, int64_t k, BytesOperand a,
                           BytesOperand b, int32_t* c) {
  Tensor unsigned_a, signed_b;
  if (a.is_signed) {
    TROUPE_ASSIGN_OR_RETURN(unsigned_a, Flipped(ctx, a.data, m * k));
    a.data = unsigned_a.raw_data();
    a.zero = static_cast<int32_t>(static_cast<uint32_t>(a.zero) + 128);
  }
  if (!b.is_signed) {
    TROUPE_ASSIGN_OR_RETURN(signed_b, Flipped(ctx, b.data, k * n));
    b.data = signed_b.raw_data();
    b.zero = static_cast<int32_t>(static_cast<uint32_t>(b.zero) - 128);
  }
  const uint8_t* x = static_cast<const uint8_t*>(a.data);
  const int8_t* y = static_cast<const int8_t*>(b.data);
  const auto p = static_cast<uint32_t>(a.zero), q = static_cast<uint32_t>(b.zero);
  std::vector<uint32_t> rows(m), columns(n);  // What is subtracted of their sums.
  if (q != 0) {
    rows = SumsOf(ctx, x, m, a.row, k, a.column, Bytes().sum_unsigned, Bytes().add_unsigned);
    for (uint32_t& sum : rows) sum = (sum - static_cast<uint32_t>(k) * p) * q;
  }
  if (p != 0) {
    columns = SumsOf(ctx, y, n, b.column, k, b.row, Bytes().sum_signed, Bytes().add_signed);
    for (uint32_t& sum : columns) sum *= p;
  }

  // Few tiles, as oneDNN repacks b for each. Rows are cut if there are enough of them: cut columns
  // leave gaps in the result, which oneDNN's fastest product cannot.
  const double tile_multiplications = OneDnnHasAmx() ? 6e7 : 1.6e7;
  constexpr int64_t kPanel = 64;
  const bool cuts_rows = m > n || m >= 4 * kPanel;
  const int64_t length = cuts_rows ? m : n, panels = (length + kPanel - 1) / kPanel;
  const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int64_t tiles =
      std::clamp(static_cast<int64_t>(products / tile_multiplications), int64_t{1}, panels);
  std::vector<absl::Status> results(tiles);
  ctx.ParallelFor(tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = panels * t / tiles * kPanel;
      const int64_t size = std::min(length, panels * (t + 1) / tiles * kPanel) - first;
      const int64_t row = cuts_rows ? first : 0, column = cuts_rows ? 0 : first;
      const int64_t height = cuts_rows ? size : m, width = cuts_rows ? n : size;
      int32_t* to = c + row * n + column;
      results[t] = [&]() -> absl::Status {
        TROUPE_ASSIGN_OR_RETURN(
            const std::shared_ptr<OneDnnPrimitive> product,
            FindProduct({height, width, k, a.row, a.column, b.row, b.column, n}));
        TROUPE_ASSIGN_OR_RETURN(Tensor space,
                                ctx.AllocateTemp(ElementType::kUint8,
                                                 Shape({static_cast<int64_t>(product->bytes(3))})));
        return product->Execute({const_cast<uint8_t*>(x + row * a.row),
                                 const_cast<int8_t*>(y + column * b.column), to,
                                 space.mutable_raw_data()});
      }();
      for (int64_t i = 0; i < height && (p != 0 || q != 0); ++i) {
        Bytes().subtract(rows[row + i], &columns[column], width,
                         reinterpret_cast<uint32_t*>(to + i * n));
      }
    }
  });
  for (absl::Status& status : results) {
    if (!status.ok()) return std::move(status);
  }
  return absl::OkStatus();
}

}  // namespace troupe
