// UnsortedSegmentSum.
#include <cstring>
#include <memory>

#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/loops.h"
#include "kernels/reduce/segment_shape.h"

namespace troupe {
namespace {

class UnsortedSegmentSumKernel final : public Kernel {
 public:
  UnsortedSegmentSumKernel(KernelConstruction& c, absl::Status* status)
      : add_(FindBinary(simd::kAdd, RemoveRef(c.input_type(0))).aa) {
    if (add_ == nullptr) *status = absl::UnimplementedError("UnsortedSegmentSum of this type");
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
    std::memset(out, 0, output->bytes());
    const char* in = static_cast<const char*>(data.raw_data());
    const int64_t size = ElementSize(data.type());
    // Pieces of columns: each adds all rows, in order.
    const int64_t rows = static_cast<int64_t>(segment_of.size());
    const int64_t grain = KernelContext::GrainFor(0.3 * static_cast<double>(rows));
    ctx.ParallelFor(length, std::max<int64_t>(grain, 64), [&](int64_t begin, int64_t end) {
      for (int64_t r = 0; r < rows; ++r) {
        if (segment_of[r] < 0) continue;
        char* to = out + (segment_of[r] * length + begin) * size;
        add_(to, in + (r * length + begin) * size, to, end - begin);
      }
    });
    return absl::OkStatus();
  }

 private:
  simd::BinaryFn add_;
};

REGISTER_KERNEL(KernelSpec("UnsortedSegmentSum")
                    .Types("T", NumberTypes())
                    .Types("Tindices",
                           {ElementType::kInt16, ElementType::kInt32, ElementType::kInt64}),
                MakeKernel<UnsortedSegmentSumKernel>);

}  // namespace
}  // namespace troupe
