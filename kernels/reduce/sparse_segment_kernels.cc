// SparseSegmentSum, SparseSegmentMean, SparseSegmentSqrtN, with and without num_segments, and their
// gradients: reductions of rows that are picked by index.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/array/index_view.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/reduce/segment_shape.h"
#include "kernels/simd/add_scaled.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

enum class SparseRule : uint8_t { kSum, kMean, kSqrtN };

/// What rows are added up in: float for half and bfloat16; integers wrap around.
template <typename T>
using Wide = std::conditional_t<
    std::is_integral_v<T>, uint64_t,
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>>;

/// By what the sum of `count` rows is multiplied.
template <typename W>
W Factor(SparseRule rule, int64_t count) {
  if (rule == SparseRule::kSum) return W(1);
  const double divisor = static_cast<double>(count);
  return static_cast<W>(1 / (rule == SparseRule::kMean ? divisor : std::sqrt(divisor)));
}

/// Pairs of the row to take and the segment that it belongs to.
struct Pairs {
  IndexView indices, segments;
  int64_t count;
};

absl::StatusOr<Pairs> ReadPairs(const Tensor& indices, const Tensor& ids) {
  TROUPE_RETURN_IF_ERROR(CheckPairShapes(indices.shape(), ids.shape()));
  TROUPE_ASSIGN_OR_RETURN(IndexView rows, IndexView::Of(indices, "indices"));
  TROUPE_ASSIGN_OR_RETURN(IndexView segments, IndexView::Of(ids, "segment_ids"));
  return Pairs{std::move(rows), std::move(segments), ids.dim(0)};
}

/// `rows` and what of the shape comes after its first dimension. `out` has elements afterwards, or
/// there is nothing to do.
absl::StatusOr<Tensor*> AllocateRows(KernelContext& ctx, const Tensor& like, int64_t rows) {
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(like.shape(), rows));
  return ctx.AllocateOutput(0, like.type(), shape);
}

int64_t RowLength(const Tensor& tensor) {
  int64_t length = 1;
  for (int d = 1; d < tensor.rank(); ++d) length *= tensor.dim(d);
  return length;
}

double RowNs(int64_t length) { return 5 + 0.5 * static_cast<double>(length); }

/// sum[k] += row[k] * factor.
template <typename T>
void AddRow(const T* row, Wide<T> factor, int64_t length, Wide<T>* sum) {
  if constexpr (std::is_same_v<Wide<T>, float>) {
    AddScaled(simd::TypeOf(kElementType<T>))(row, factor, length, sum);
  } else {
    for (int64_t k = 0; k < length; ++k) sum[k] += static_cast<Wide<T>>(row[k]) * factor;
  }
}

template <SparseRule kRule>
absl::Status SparseSegment(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1);
  if (data.rank() < 1) return InvalidArgument("data must have at least one dimension");
  TROUPE_ASSIGN_OR_RETURN(const Pairs pairs, ReadPairs(indices, ctx.input(2)));
  std::vector<int64_t> starts;  // Where segments begin.
  for (int64_t i = 0; i < pairs.count; ++i) {
    const int64_t id = pairs.segments[i], before = i == 0 ? 0 : pairs.segments[i - 1];
    if (id < before || id == std::numeric_limits<int64_t>::max()) {
      return SegmentOrderError(i, id, before);
    }
    if (i == 0 || id != before) starts.push_back(i);
    const int64_t row = pairs.indices[i];
    if (row < 0 || row >= data.dim(0)) {
      return IndexOutOfRange(indices, "indices", i, row, data.dim(0));
    }
  }
  const int64_t needed = pairs.count > 0 ? pairs.segments[pairs.count - 1] + 1 : 0;
  int64_t segments = needed;
  if (ctx.num_inputs() > 3) {
    TROUPE_ASSIGN_OR_RETURN(segments, ReadIntegerScalar(ctx.input(3), "num_segments"));
    if (segments < needed) return TooFewSegments(segments, needed - 1);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, AllocateRows(ctx, data, segments));
  if (output->num_elements() == 0) return absl::OkStatus();
  ZeroElements(ctx, data.type(), output->mutable_raw_data(), output->num_elements());
  if (pairs.count == 0) return absl::OkStatus();

  const int64_t length = RowLength(data), used = static_cast<int64_t>(starts.size());
  const int64_t rows_each = pairs.count / used + 1;
  const double segment_ns = RowNs(length) * static_cast<double>(rows_each);
  return SwitchReal(data.type(), [&]<typename T>() {
    const T* in = data.unchecked_data<T>();
    T* out = output->mutable_data<T>();
    ctx.ParallelFor(used, KernelContext::GrainFor(segment_ns), [&](int64_t begin, int64_t end) {
      std::vector<Wide<T>> sum(length);
      for (int64_t s = begin; s < end; ++s) {
        const int64_t first = starts[s], last = s + 1 < used ? starts[s + 1] : pairs.count;
        std::fill(sum.begin(), sum.end(), Wide<T>(0));
        for (int64_t i = first; i < last; ++i) {
          AddRow(in + pairs.indices[i] * length, Wide<T>(1), length, sum.data());
        }
        const Wide<T> factor = Factor<Wide<T>>(kRule, last - first);
        T* to = out + pairs.segments[first] * length;
        for (int64_t k = 0; k < length; ++k) to[k] = static_cast<T>(sum[k] * factor);
      }
    });
    return absl::OkStatus();
  });
}

/// The pairs' numbers in the order of their rows, all below `rows`; those of a row in their own.
std::vector<int64_t> OrderOfRows(const Pairs& pairs, int64_t rows) {
  std::vector<int64_t> order(pairs.count);
  if (rows / 16 > pairs.count) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return pairs.indices[a] < pairs.indices[b]; });
    return order;
  }
  std::vector<int64_t> next(rows, 0);  // how many a row has, then where its next one belongs
  for (int64_t i = 0; i < pairs.count; ++i) ++next[pairs.indices[i]];
  std::exclusive_scan(next.begin(), next.end(), next.begin(), int64_t{0});
  for (int64_t i = 0; i < pairs.count; ++i) order[next[pairs.indices[i]]++] = i;
  return order;
}

/// The gradient for all rows of the data, or (with a second output) for those that are named.
template <SparseRule kRule>
absl::Status SparseSegmentGrad(KernelContext& ctx) {
  const Tensor &grad = ctx.input(0), &indices = ctx.input(1), &ids = ctx.input(2);
  const bool named_only = ctx.num_outputs() > 1;
  if (grad.rank() < 1) return InvalidArgument("grad must have at least one dimension");
  TROUPE_ASSIGN_OR_RETURN(const Pairs pairs, ReadPairs(indices, ids));
  TROUPE_ASSIGN_OR_RETURN(
      const int64_t rows,
      ReadIntegerScalar(ctx.input(3), named_only ? "dense_output_dim0" : "output_dim0"));
  if (rows < 0) return InvalidArgument("the number of rows must not be negative, got ", rows);
  if (rows == 0) {
    // As in TensorFlow, whatever the indices are.
    TROUPE_RETURN_IF_ERROR(AllocateRows(ctx, grad, 0).status());
    return named_only ? PutIntegers(ctx, 1, indices.type(), {}) : absl::OkStatus();
  }
  const int64_t segments = grad.dim(0);
  std::vector<int64_t> sizes(segments, 0);
  for (int64_t i = 0; i < pairs.count; ++i) {
    const int64_t row = pairs.indices[i], id = pairs.segments[i];
    if (row < 0 || row >= rows) return IndexOutOfRange(indices, "indices", i, row, rows);
    if (id < 0 || id >= segments) return IndexOutOfRange(ids, "segment_ids", i, id, segments);
    ++sizes[id];
  }
  // Pairs in the order of the rows that they add to, and where those rows begin.
  const std::vector<int64_t> order = OrderOfRows(pairs, rows);
  std::vector<int64_t> starts, named;
  for (int64_t i = 0; i < pairs.count; ++i) {
    const int64_t row = pairs.indices[order[i]];
    if (!named.empty() && named.back() == row) continue;
    named.push_back(row);
    starts.push_back(i);
  }
  const int64_t used = static_cast<int64_t>(named.size());
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, AllocateRows(ctx, grad, named_only ? used : rows));
  if (named_only) TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, 1, indices.type(), named));
  if (output->num_elements() == 0) return absl::OkStatus();
  if (!named_only) {
    ZeroElements(ctx, grad.type(), output->mutable_raw_data(), output->num_elements());
  }
  if (used == 0) return absl::OkStatus();

  const int64_t length = RowLength(grad);
  const int64_t rows_each = pairs.count / used + 1;
  const double row_ns = RowNs(length) * static_cast<double>(rows_each);
  return SwitchType<float, double, half, bfloat16>(grad.type(), [&]<typename T>() {
    const T* in = grad.unchecked_data<T>();
    T* out = output->mutable_data<T>();
    ctx.ParallelFor(used, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
      std::vector<Wide<T>> sum(length);
      for (int64_t u = begin; u < end; ++u) {
        std::fill(sum.begin(), sum.end(), Wide<T>(0));
        const int64_t last = u + 1 < used ? starts[u + 1] : pairs.count;
        for (int64_t i = starts[u]; i < last; ++i) {
          const int64_t id = pairs.segments[order[i]];
          const Wide<T> factor = Factor<Wide<T>>(kRule, sizes[id]);
          AddRow(in + id * length, factor, length, sum.data());
        }
        T* to = out + (named_only ? u : named[u]) * length;
        for (int64_t k = 0; k < length; ++k) to[k] = static_cast<T>(sum[k]);
      }
    });
    return absl::OkStatus();
  });
}

KernelSpec Spec(const std::string& op, std::vector<ElementType> types) {
  return KernelSpec(op)
      .Types("T", std::move(types))
      .Types("Tidx", IndexTypes())
      .Types("Tsegmentids", IndexTypes());
}

template <SparseRule kRule>
void Register(const std::vector<ElementType>& types, std::initializer_list<const char*> ops,
              std::initializer_list<const char*> gradients) {
  KernelRegistry* registry = KernelRegistry::Global();
  for (const char* op : ops) {
    registry->Register(Spec(op, types), MakeKernel<SparseSegment<kRule>>);
  }
  for (const char* op : gradients) {
    registry->Register(Spec(op, FloatTypes()), MakeKernel<SparseSegmentGrad<kRule>>);
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  Register<SparseRule::kSum>(RealNumberTypes(),
                             {"SparseSegmentSum", "SparseSegmentSumWithNumSegments"},
                             {"SparseSegmentSumGrad", "SparseSegmentSumGradV2"});
  Register<SparseRule::kMean>(FloatTypes(),
                              {"SparseSegmentMean", "SparseSegmentMeanWithNumSegments"},
                              {"SparseSegmentMeanGrad", "SparseSegmentMeanGradV2"});
  Register<SparseRule::kSqrtN>(FloatTypes(),
                               {"SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments"},
                               {"SparseSegmentSqrtNGrad", "SparseSegmentSqrtNGradV2"});
  return true;
}();

}  // namespace
}  // namespace troupe
