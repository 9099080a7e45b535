// SegmentSum, SegmentMean, SegmentProd, SegmentMin, SegmentMax: neighbouring rows are joined as
// sorted numbers group them.
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/cast.h"
#include "kernels/math/loops.h"
#include "kernels/reduce/reduce_loops.h"
#include "kernels/reduce/segment_rule.h"
#include "kernels/reduce/segment_shape.h"

namespace troupe {
namespace {

/// Divides the `n` numbers at `sums` by `count`.
template <typename T>
void Divide(void* sums, int64_t n, int64_t count) {
  T* sum = static_cast<T*>(sums);
  if constexpr (std::is_floating_point_v<T>) {
    const T divisor = static_cast<T>(count);
    FindBinary(simd::kDiv, kElementType<T>).as(sum, &divisor, sum, n);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
      // A count is no more than the rows of a tensor: it fits both signs.
      sum[i] /= static_cast<T>(count);
    } else if constexpr (std::is_integral_v<T>) {
      sum[i] = static_cast<T>(static_cast<int64_t>(sum[i]) / count);
    } else {
      sum[i] = T(sum[i] / T(static_cast<float>(count)));
    }
  }
}

/// Where segments begin: rows whose number differs from the one before. InvalidArgument unless the
/// numbers are not negative and do not fall.
template <typename Id>
absl::StatusOr<int64_t> FindSegments(absl::Span<const Id> ids, int64_t* starts) {
  if (ids.empty()) return 0;
  starts[0] = 0;
  int64_t segments = 1;
  Id before = ids[0];
  bool falls = before < 0;
  for (size_t r = 1; r < ids.size(); ++r) {
    const Id id = ids[r];
    falls |= id < before;
    starts[segments] = static_cast<int64_t>(r);  // Written again if none begins here.
    segments += static_cast<int64_t>(id != before);
    before = id;
  }
  if (!falls && static_cast<int64_t>(before) != std::numeric_limits<int64_t>::max()) {
    return segments;
  }
  before = 0;
  for (size_t r = 0; r < ids.size(); before = ids[r], ++r) {
    if (ids[r] < before || static_cast<int64_t>(ids[r]) == std::numeric_limits<int64_t>::max()) {
      return SegmentOrderError(static_cast<int64_t>(r), ids[r], before);
    }
  }
  return segments;
}

/// Rows of one type become one row.
class RowJoiner {
 public:
  absl::Status Find(SegmentRule rule, ElementType type) {
    static constexpr Reduction kReductions[] = {
        // In the order of `SegmentRule`.
        Reduction::kSum, Reduction::kSum, Reduction::kProd, Reduction::kMin, Reduction::kMax};
    TROUPE_RETURN_IF_ERROR(FindSegmentJoin(rule, type).status());  // whether the type has an order
    loops_ = FindReduce(kReductions[static_cast<int>(rule)], type);
    row_step_ = static_cast<int64_t>(ElementSize(type));
    fold_short_ = FindShortRows(rule, type).fold;
    if (loops_.acc_type != type) {
      widen_ = FindCast(type, loops_.acc_type);
      narrow_ = FindCast(loops_.acc_type, type);
    }
    if (rule != SegmentRule::kMean) return absl::OkStatus();
    return SwitchNumber(loops_.acc_type, [&]<typename T>() {
      divide_ = Divide<T>;
      return absl::OkStatus();
    });
  }

  bool has_accumulators() const { return widen_ != nullptr; }

  /// The `rows` > 0 rows of `length` elements from `in` on, to `out`. `accumulators`: of a row, if
  /// they are of another type.
  void Join(const char* in, int64_t rows, int64_t length, float* accumulators, char* out) const {
    const int64_t bytes = length * row_step_;
    if (rows == 1) {
      std::memcpy(out, in, static_cast<size_t>(bytes));
      return;
    }
    void* sums = widen_ == nullptr ? static_cast<void*>(out) : accumulators;
    if (length == 1) {
      loops_.rows(in, 1, rows, sums);
    } else {
      if (widen_ == nullptr) {
        std::memcpy(sums, in, static_cast<size_t>(bytes));
      } else {
        widen_(in, sums, length);
      }
      // Reductions of columns take longer to start, and less for a row.
      constexpr int64_t kFewRows = 64, kShortRowBytes = 32;
      if (rows <= kFewRows && bytes <= kShortRowBytes && length <= kShortRow && widen_ == nullptr) {
        fold_short_(in + bytes, rows - 1, length, sums);
      } else {
        loops_.cols(in + bytes, rows - 1, length, length, sums);
      }
    }
    if (divide_ != nullptr) divide_(sums, length, rows);
    if (narrow_ != nullptr) narrow_(sums, out, length);
  }

 private:
  ReduceLoops loops_;
  int64_t row_step_ = 0;
  FoldShortRowsFn fold_short_ = nullptr;
  simd::UnaryFn widen_ = nullptr, narrow_ = nullptr;  // null if accumulators are of the type
  void (*divide_)(void* sums, int64_t n, int64_t count) = nullptr;
};

template <SegmentRule kRule>
class SegmentKernel final : public Kernel {
 public:
  SegmentKernel(KernelConstruction& c, absl::Status* status) {
    *status = Find(RemoveRef(c.input_type(0)));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& ids = ctx.input(1);
    TROUPE_RETURN_IF_ERROR(CheckSegmentShapes(ctx.input(0).shape(), ids.shape()));
    return ids.type() == ElementType::kInt32 ? Run(ctx, ids.unchecked_values<int32_t>())
                                             : Run(ctx, ids.unchecked_values<int64_t>());
  }

 private:
  template <typename Id>
  absl::Status Run(KernelContext& ctx, absl::Span<const Id> segment_of) {
    const Tensor& data = ctx.input(0);
    const int64_t rows = static_cast<int64_t>(segment_of.size());
    TROUPE_ASSIGN_OR_RETURN(Tensor start_of, ctx.AllocateTemp(ElementType::kInt64, Shape({rows})));
    int64_t* starts = start_of.mutable_data<int64_t>();
    TROUPE_ASSIGN_OR_RETURN(const int64_t used, FindSegments(segment_of, starts));
    const int64_t segments = rows > 0 ? static_cast<int64_t>(segment_of.back()) + 1 : 0;
    absl::InlinedVector<int64_t, 8> dims = {segments};
    for (int d = 1; d < data.rank(); ++d) dims.push_back(data.dim(d));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, data.type(), shape));
    if (output->num_elements() == 0) return absl::OkStatus();
    const int64_t length = output->num_elements() / segments;
    const int64_t bytes = length * static_cast<int64_t>(ElementSize(data.type()));
    char* out = static_cast<char*>(output->mutable_raw_data());
    const char* in = static_cast<const char*>(data.raw_data());
    const double segment_ns = 10 + 0.1 * static_cast<double>(bytes) * static_cast<double>(rows) /
                                       static_cast<double>(used);
    ctx.ParallelFor(used, KernelContext::GrainFor(segment_ns), [&](int64_t begin, int64_t end) {
      std::vector<float> accumulators(joiner_.has_accumulators() ? length : 0);
      for (int64_t s = begin; s < end; ++s) {
        const int64_t first = starts[s], id = segment_of[first];
        // Before this one there may be segments without a row.
        const int64_t missing = s == 0 ? 0 : segment_of[first - 1] + 1;
        if (missing < id) Fill(ctx, out + missing * bytes, (id - missing) * length);
        const int64_t last = s + 1 < used ? starts[s + 1] : rows;
        joiner_.Join(in + first * bytes, last - first, length, accumulators.data(),
                     out + id * bytes);
      }
    });
    return absl::OkStatus();
  }

  absl::Status Find(ElementType type) {
    TROUPE_RETURN_IF_ERROR(joiner_.Find(kRule, type));
    // As in TensorFlow, extremes of nothing are zeros.
    TROUPE_ASSIGN_OR_RETURN(
        missing_, SegmentIdentity(kRule == SegmentRule::kProd ? kRule : SegmentRule::kSum, type));
    return absl::OkStatus();
  }

  void Fill(KernelContext& ctx, char* out, int64_t count) const {
    if constexpr (kRule == SegmentRule::kProd) {
      FillElements(ctx, missing_.type(), out, count, missing_.raw_data());
    } else {
      std::memset(out, 0, static_cast<size_t>(count) * ElementSize(missing_.type()));
    }
  }

  RowJoiner joiner_;
  Tensor missing_;
};

KernelSpec Spec(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op).Types("T", std::move(types)).Types("Tindices", IndexTypes());
}

REGISTER_KERNEL(Spec("SegmentSum", NumberTypes()), MakeKernel<SegmentKernel<SegmentRule::kSum>>);
REGISTER_KERNEL(Spec("SegmentMean", NumberTypes()), MakeKernel<SegmentKernel<SegmentRule::kMean>>);
REGISTER_KERNEL(Spec("SegmentProd", NumberTypes()), MakeKernel<SegmentKernel<SegmentRule::kProd>>);
REGISTER_KERNEL(Spec("SegmentMin", RealNumberTypes()),
                MakeKernel<SegmentKernel<SegmentRule::kMin>>);
REGISTER_KERNEL(Spec("SegmentMax", RealNumberTypes()),
                MakeKernel<SegmentKernel<SegmentRule::kMax>>);

}  // namespace
}  // namespace troupe
