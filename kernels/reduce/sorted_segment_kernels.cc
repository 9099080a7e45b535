// SegmentSum: sums of neighbouring rows, as sorted numbers group them.
#include <cstring>
#include <limits>

#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/loops.h"
#include "kernels/reduce/segment_shape.h"

namespace troupe {
namespace {

class SegmentSumKernel final : public Kernel {
 public:
  SegmentSumKernel(KernelConstruction& c, absl::Status* status)
      : add_(FindBinary(simd::kAdd, RemoveRef(c.input_type(0))).aa) {
    if (add_ == nullptr) *status = absl::UnimplementedError("SegmentSum of this type");
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
        // Segments without a row, up to this one, are zeros.
        const int64_t zeros = s == 0 ? 0 : segment_of[first - 1] + 1;
        std::memset(out + zeros * bytes, 0, (id - zeros) * bytes);
        char* sum = out + id * bytes;
        std::memcpy(sum, in + first * bytes, bytes);
        const int64_t last = s + 1 < used ? starts[s + 1] : rows;
        for (int64_t r = first + 1; r < last; ++r) add_(sum, in + r * bytes, sum, length);
      }
    });
    return absl::OkStatus();
  }

 private:
  simd::BinaryFn add_;
};

REGISTER_KERNEL(KernelSpec("SegmentSum").Types("T", NumberTypes()).Types("Tindices", IndexTypes()),
                MakeKernel<SegmentSumKernel>);

}  // namespace
}  // namespace troupe
