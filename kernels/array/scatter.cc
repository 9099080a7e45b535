#include "kernels/array/scatter.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "devices/cpu/compute_pool.h"
#include "kernels/array/index_view.h"
#include "kernels/common/short_copy.h"
#include "kernels/common/switch_number.h"
#include "kernels/math/loops.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// A part of a scatter: rows whose place is in [low, high), columns [first, last) of each.
struct Part {
  void* to;
  const void* from;
  absl::Span<const int64_t> offsets;
  int64_t inner;
  bool scalar;  ///< `from` has one element, for all.
  int64_t low, high, first, last;
};
using PartFn = void (*)(const Part& part);

template <typename T>
constexpr bool kHasOrder = !std::is_same_v<T, complex64> && !std::is_same_v<T, complex128>;

template <ScatterOp kOp, typename T>
T Combined(const T& a, const T& b) {
  if constexpr (kOp == ScatterOp::kUpdate) {
    return b;
  } else if constexpr (std::is_same_v<T, bool>) {
    return kOp == ScatterOp::kAdd ? a || b : a != b;
  } else if constexpr (kOp == ScatterOp::kMin) {
    return b < a ? b : a;
  } else if constexpr (kOp == ScatterOp::kMax) {
    return a < b ? b : a;
  } else if constexpr (std::is_integral_v<T>) {
    // Unsigned arithmetic wraps around; 16-bit factors would be multiplied as signed integers.
    using U = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
    const U x = static_cast<U>(a), y = static_cast<U>(b);
    if constexpr (kOp == ScatterOp::kAdd) return static_cast<T>(x + y);
    if constexpr (kOp == ScatterOp::kSubtract) return static_cast<T>(x - y);
    if constexpr (kOp == ScatterOp::kMultiply) return static_cast<T>(x * y);
    if constexpr (std::is_signed_v<T>) {
      // The smallest number divided by -1 wraps around, too.
      if (b == -1) return static_cast<T>(U{0} - x);
    }
    return static_cast<T>(a / b);
  } else {
    if constexpr (kOp == ScatterOp::kAdd) return T(a + b);
    if constexpr (kOp == ScatterOp::kSubtract) return T(a - b);
    if constexpr (kOp == ScatterOp::kMultiply) return T(a * b);
    if constexpr (kOp == ScatterOp::kDivide) return T(a / b);
  }
}

template <ScatterOp kOp, typename T>
void CombineRow(T* to, const T* from, int64_t n) {
  if constexpr (kOp == ScatterOp::kUpdate) {
    CopyRun(to, from, n);
  } else if constexpr ((std::is_same_v<T, float> || std::is_same_v<T, double>)&&(
                           kOp == ScatterOp::kAdd || kOp == ScatterOp::kSubtract)) {
    static const simd::BinaryFn function =
        FindBinary(kOp == ScatterOp::kAdd ? simd::kAdd : simd::kSub, kElementType<T>).aa;
    function(to, from, to, n);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = Combined<kOp>(to[i], from[i]);
  }
}

template <ScatterOp kOp, typename T>
void ScatterPart(const Part& p) {
  T* const out = static_cast<T*>(p.to);
  const T* const updates = static_cast<const T*>(p.from);
  const int64_t n = p.last - p.first;
  for (size_t r = 0; r < p.offsets.size(); ++r) {
    const int64_t offset = p.offsets[r];
    if (offset < p.low || offset >= p.high) continue;
    T* to = out + offset + p.first;
    if (p.scalar) {
      for (int64_t i = 0; i < n; ++i) to[i] = Combined<kOp>(to[i], *updates);
      continue;
    }
    const T* from = updates + static_cast<int64_t>(r) * p.inner + p.first;
    // A call for one element would take longer than the element.
    if (n == 1) {
      *to = Combined<kOp>(*to, *from);
    } else {
      CombineRow<kOp>(to, from, n);
    }
  }
}

template <typename T>
PartFn ArithmeticPart(ScatterOp op) {
  if (op == ScatterOp::kAdd) return ScatterPart<ScatterOp::kAdd, T>;
  if constexpr (!std::is_same_v<T, std::string>) {
    if (op == ScatterOp::kSubtract) return ScatterPart<ScatterOp::kSubtract, T>;
    if constexpr (!std::is_same_v<T, bool>) {
      if (op == ScatterOp::kMultiply) return ScatterPart<ScatterOp::kMultiply, T>;
      if (op == ScatterOp::kDivide) return ScatterPart<ScatterOp::kDivide, T>;
      if constexpr (kHasOrder<T>) {
        if (op == ScatterOp::kMin) return ScatterPart<ScatterOp::kMin, T>;
        if (op == ScatterOp::kMax) return ScatterPart<ScatterOp::kMax, T>;
      }
    }
  }
  return nullptr;
}

absl::StatusOr<PartFn> FindPart(ScatterOp op, ElementType type) {
  PartFn part = nullptr;
  if (op == ScatterOp::kUpdate) {
    TROUPE_RETURN_IF_ERROR(SwitchBySize(type, [&]<typename T>() {
      part = ScatterPart<ScatterOp::kUpdate, T>;
      return absl::OkStatus();
    }));
    return part;
  }
  TROUPE_RETURN_IF_ERROR((SwitchNumber<bool, std::string>(type, [&]<typename T>() {
    part = ArithmeticPart<T>(op);
    return absl::OkStatus();
  })));
  if (part == nullptr) {
    return absl::UnimplementedError(
        StrCat("scattered updates of this kind are not defined for ", ElementTypeName(type)));
  }
  return part;
}

/// Work worth handing to another thread.
constexpr double kPartNs = 20000;
/// Every part looks at all offsets: more parts than this would spend their time on it.
constexpr int64_t kMaxParts = 16;

/// The offsets of slices of `shape` at `index` [offsets, depth], -1 for one outside with
/// `ignore_bad`. Returns where `index` is outside without, -1 if it is not.
template <typename Index>
int64_t FillOffsets(const Index* index, int64_t depth, const Shape& shape, bool ignore_bad,
                    absl::Span<int64_t> offsets) {
  const DimVector strides = RowMajorStrides(shape.dims());
  const int64_t* const stride = strides.data();
  const int64_t* const size = shape.dims().data();
  for (size_t r = 0; r < offsets.size(); ++r, index += depth) {
    int64_t offset = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t at = index[k];
      // One comparison for both ends.
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(size[k])) {
        if (!ignore_bad) return static_cast<int64_t>(r) * depth + k;
        offset = -1;
        break;
      }
      offset += at * stride[k];
    }
    offsets[r] = offset;
  }
  return -1;
}

}  // namespace

absl::Status CheckDivisors(const Tensor& updates) {
  return SwitchNumber(updates.type(), [&]<typename T>() -> absl::Status {
    const auto values = updates.unchecked_values<T>();
    const auto zero = std::find(values.begin(), values.end(), T{});
    if (zero == values.end()) return absl::OkStatus();
    return InvalidArgument("division by zero: element ", zero - values.begin(), " of updates");
  });
}

absl::Status ScatterSlices(KernelContext& ctx, ScatterOp op, const Tensor& updates,
                           absl::Span<const int64_t> offsets, int64_t inner, Tensor* out) {
  const int64_t rows = static_cast<int64_t>(offsets.size());
  if (rows == 0 || inner == 0 || out->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const PartFn part, FindPart(op, updates.type()));
  if (op == ScatterOp::kDivide && IsInteger(updates.type())) {
    TROUPE_RETURN_IF_ERROR(CheckDivisors(updates));
  }
  const Part all{out->mutable_raw_data(),
                 updates.raw_data(),
                 offsets,
                 inner,
                 updates.num_elements() == 1,
                 0,
                 out->num_elements(),
                 0,
                 inner};
  // Equal indices are combined in order: threads share out either columns of all rows, where rows
  // are long, or places of the output.
  const double element_ns =
      IsPlain(updates.type()) ? 0.1 * static_cast<double>(ElementSize(updates.type())) : 20.0;
  const double row_ns = 2 + element_ns * static_cast<double>(inner);
  const double total_ns = row_ns * static_cast<double>(rows);
  constexpr int64_t kLongRow = 8192;
  if (inner >= kLongRow) {
    const int64_t grain = KernelContext::GrainFor(total_ns / static_cast<double>(inner));
    ctx.ParallelFor(inner, std::max<int64_t>(grain, kLongRow / 4), [&](int64_t begin, int64_t end) {
      Part columns = all;
      columns.first = begin;
      columns.last = end;
      part(columns);
    });
    return absl::OkStatus();
  }
  // A part's look at an offset that is not its own takes about 10 ns, mispredicted as it may be.
  const int64_t slices = out->num_elements() / inner;
  const ComputePool* pool = ctx.step().pool;
  const int64_t parts = pool == nullptr || pool->threads() == 1
                            ? 1
                            : std::min({kMaxParts, slices, static_cast<int64_t>(total_ns / kPartNs),
                                        static_cast<int64_t>(row_ns / 10)});
  if (parts <= 1) {
    part(all);
    return absl::OkStatus();
  }
  const int64_t per_part = (slices + parts - 1) / parts * inner;
  ctx.ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    Part places = all;
    places.low = begin * per_part;
    places.high = std::min(end * per_part, all.high);
    part(places);
  });
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> NdOffsets(const Tensor& indices, const Shape& shape,
                                               bool ignore_bad) {
  const int64_t depth = indices.dim(indices.rank() - 1);
  int64_t rows = 1;
  for (int d = 0; d + 1 < indices.rank(); ++d) rows *= indices.dim(d);
  std::vector<int64_t> offsets(rows, 0);
  TROUPE_RETURN_IF_ERROR(
      (SwitchType<int32_t, int64_t, int16_t>(indices.type(), [&]<typename Index>() -> absl::Status {
        const auto* index = indices.unchecked_data<Index>();
        // The first component of an index that lies outside.
        const int64_t bad = FillOffsets(index, depth, shape, ignore_bad, absl::MakeSpan(offsets));
        if (bad < 0) return absl::OkStatus();
        return IndexOutOfRange(indices, "indices", bad, index[bad],
                               shape.dim(static_cast<int>(bad % depth)));
      })));
  return offsets;
}

absl::StatusOr<std::vector<int64_t>> RowOffsets(const Tensor& indices, int64_t limit,
                                                int64_t inner) {
  const int64_t rows = indices.num_elements();
  TROUPE_ASSIGN_OR_RETURN(const IndexView index, IndexView::Of(indices, "indices"));
  std::vector<int64_t> offsets(rows);
  for (int64_t r = 0; r < rows; ++r) {
    if (static_cast<uint64_t>(index[r]) >= static_cast<uint64_t>(limit)) {
      return IndexOutOfRange(indices, "indices", r, index[r], limit);
    }
    offsets[r] = index[r] * inner;
  }
  return offsets;
}

}  // namespace troupe
