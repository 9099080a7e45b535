// UnsortedSegmentSum, UnsortedSegmentProd, UnsortedSegmentMin, UnsortedSegmentMax.
#include <memory>

#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"
#include "kernels/reduce/segment_rule.h"
#include "kernels/reduce/segment_shape.h"

namespace troupe {
namespace {

template <SegmentRule kRule>
class UnsortedSegmentKernel final : public Kernel {
 public:
  UnsortedSegmentKernel(KernelConstruction& c, absl::Status* status) {
    const ElementType type = RemoveRef(c.input_type(0));
    *status = Find(type);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(int64_t segments, ReadIntegerScalar(ctx.input(2), "num_segments"));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                            UnsortedSegmentShape(data.shape(), ids.shape(), segments));
    TROUPE_ASSIGN_OR_RETURN(DimVector segment_of, ReadIntegers(ids, "segment_ids"));
    for (size_t i = 0; i < segment_of.size() && data.num_elements() > 0; ++i) {
      if (segment_of[i] >= segments) {
        return InvalidArgument("segment_ids[", i, "] = ", segment_of[i], " is out of range [0, ",
                               segments, ")");
      }
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, data.type(), shape));
    if (output->num_elements() == 0) return absl::OkStatus();
    const int64_t length = output->num_elements() / segments;
    char* out = static_cast<char*>(output->mutable_raw_data());
    FillElements(ctx, data.type(), out, output->num_elements(), identity_.raw_data());
    const char* in = static_cast<const char*>(data.raw_data());
    const int64_t size = ElementSize(data.type());
    // Pieces of columns: each joins all rows, in order.
    const int64_t rows = static_cast<int64_t>(segment_of.size());
    if (length <= kShortRow) {
      short_rows_(in, segment_of.data(), rows, length, out);
      return absl::OkStatus();
    }
    const int64_t grain = KernelContext::GrainFor(0.3 * static_cast<double>(rows));
    ctx.ParallelFor(length, std::max<int64_t>(grain, 64), [&](int64_t begin, int64_t end) {
      for (int64_t r = 0; r < rows; ++r) {
        if (segment_of[r] < 0) continue;
        char* to = out + (segment_of[r] * length + begin) * size;
        join_(to, in + (r * length + begin) * size, to, end - begin);
      }
    });
    return absl::OkStatus();
  }

 private:
  absl::Status Find(ElementType type) {
    TROUPE_ASSIGN_OR_RETURN(join_, FindSegmentJoin(kRule, type));
    short_rows_ = FindShortRows(kRule, type).join;
    TROUPE_ASSIGN_OR_RETURN(identity_, SegmentIdentity(kRule, type));
    return absl::OkStatus();
  }

  simd::BinaryFn join_ = nullptr;
  JoinShortRowsFn short_rows_ = nullptr;
  Tensor identity_;
};

KernelSpec Spec(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op)
      .Types("T", std::move(types))
      .Types("Tindices", {ElementType::kInt16, ElementType::kInt32, ElementType::kInt64});
}

REGISTER_KERNEL(Spec("UnsortedSegmentSum", NumberTypes()),
                MakeKernel<UnsortedSegmentKernel<SegmentRule::kSum>>);
REGISTER_KERNEL(Spec("UnsortedSegmentProd", NumberTypes()),
                MakeKernel<UnsortedSegmentKernel<SegmentRule::kProd>>);
REGISTER_KERNEL(Spec("UnsortedSegmentMin", RealNumberTypes()),
                MakeKernel<UnsortedSegmentKernel<SegmentRule::kMin>>);
REGISTER_KERNEL(Spec("UnsortedSegmentMax", RealNumberTypes()),
                MakeKernel<UnsortedSegmentKernel<SegmentRule::kMax>>);

}  // namespace
}  // namespace troupe
