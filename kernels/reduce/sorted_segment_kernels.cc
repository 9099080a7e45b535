// SegmentSum, SegmentMean, SegmentProd, SegmentMin, SegmentMax: neighbouring rows are joined as
// sorted numbers group them.
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "kernels/common/integer_input.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"
#include "kernels/reduce/segment_rule.h"
#include "kernels/reduce/segment_shape.h"

namespace troupe {
namespace {

/// Divides the `n` numbers at `sums` by `count`.
template <typename T>
void Divide(void* sums, int64_t n, int64_t count) {
  T* sum = static_cast<T*>(sums);
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

template <SegmentRule kRule>
class SegmentKernel final : public Kernel {
 public:
  SegmentKernel(KernelConstruction& c, absl::Status* status) {
    *status = Find(RemoveRef(c.input_type(0)));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    TROUPE_RETURN_IF_ERROR(CheckSegmentShapes(data.shape(), ids.shape()));
    TROUPE_ASSIGN_OR_RETURN(const DimVector segment_of, ReadIntegers(ids, "segment_ids"));
    const int64_t rows = static_cast<int64_t>(segment_of.size());
    // Where segments begin.
    DimVector starts;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t before = r == 0 ? 0 : segment_of[r - 1];
      if (segment_of[r] < before || segment_of[r] == std::numeric_limits<int64_t>::max()) {
        return SegmentOrderError(r, segment_of[r], before);
      }
      if (r == 0 || segment_of[r] != before) starts.push_back(r);
    }
    const int64_t segments = rows > 0 ? segment_of.back() + 1 : 0;
    absl::InlinedVector<int64_t, 8> dims = {segments};
    for (int d = 1; d < data.rank(); ++d) dims.push_back(data.dim(d));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, data.type(), shape));
    if (output->num_elements() == 0) return absl::OkStatus();
    const int64_t length = output->num_elements() / segments;
    const int64_t bytes = length * static_cast<int64_t>(ElementSize(data.type()));
    char* out = static_cast<char*>(output->mutable_raw_data());
    const char* in = static_cast<const char*>(data.raw_data());
    const int64_t used = static_cast<int64_t>(starts.size());
    const double segment_ns = (2 + 0.1 * static_cast<double>(bytes)) * static_cast<double>(rows) /
                              static_cast<double>(used);
    ctx.ParallelFor(used, KernelContext::GrainFor(segment_ns), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t first = starts[s], id = segment_of[first];
        // Before this one there may be segments without a row.
        const int64_t missing = s == 0 ? 0 : segment_of[first - 1] + 1;
        FillElements(ctx, data.type(), out + missing * bytes, (id - missing) * length,
                     missing_.raw_data());
        char* joined = out + id * bytes;
        std::memcpy(joined, in + first * bytes, bytes);
        const int64_t last = s + 1 < used ? starts[s + 1] : rows;
        for (int64_t r = first + 1; r < last; ++r) join_(joined, in + r * bytes, joined, length);
        if (divide_ != nullptr) divide_(joined, length, last - first);
      }
    });
    return absl::OkStatus();
  }

 private:
  absl::Status Find(ElementType type) {
    TROUPE_ASSIGN_OR_RETURN(join_, FindSegmentJoin(kRule, type));
    // As in TensorFlow, extremes of nothing are zeros.
    TROUPE_ASSIGN_OR_RETURN(
        missing_, SegmentIdentity(kRule == SegmentRule::kProd ? kRule : SegmentRule::kSum, type));
    if constexpr (kRule == SegmentRule::kMean) {
      return SwitchNumber(type, [&]<typename T>() {
        divide_ = Divide<T>;
        return absl::OkStatus();
      });
    }
    return absl::OkStatus();
  }

  simd::BinaryFn join_ = nullptr;
  void (*divide_)(void* sums, int64_t n, int64_t count) = nullptr;
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
