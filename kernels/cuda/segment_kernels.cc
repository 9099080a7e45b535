// UnsortedSegmentSum and SegmentSum of GPUs.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/cuda/late_shape_kernel.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/segment.h"
#include "kernels/cuda/sort_memory.h"
#include "kernels/reduce/segment_shape.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a sum by segments";

/// Data of `rows` rows, summed into `output`; complex numbers are twice as many of their parts.
SegmentCall CallOf(Number type, const Tensor& data, const Tensor& ids, int64_t segments,
                   Tensor* output) {
  SegmentCall call{type, ids.type() == ElementType::kInt64, data.raw_data(), ids.raw_data()};
  call.rows = ids.num_elements();
  call.segments = segments;
  if (output != nullptr) {
    call.out = output->mutable_raw_data();
    call.length = output->num_elements() / std::max<int64_t>(segments, 1);
  }
  if (type == Number::kComplex64 || type == Number::kComplex128) {
    call.type = type == Number::kComplex64 ? Number::kFloat : Number::kDouble;
    call.length *= 2;
  }
  return call;
}

absl::Status OutOfRange(const int64_t* values) {
  return InvalidArgument("segment_ids[", values[0], "] = ", values[1], " is out of range [0, ",
                         values[2], ")");
}

class UnsortedSegmentSumKernel final : public OneTypeKernel {
 public:
  UnsortedSegmentSumKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(int64_t segments, ReadIntegerScalar(ctx.input(2), "num_segments"));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                            UnsortedSegmentShape(data.shape(), ids.shape(), segments));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, OutOfRange));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, data.type(), shape));
    const SegmentCall call = CallOf(type_, data, ids, segments, output);
    const cudaStream_t stream = StreamOf(ctx);
    if (output->num_elements() == 0) {
      // There may be rows for segments that are not there.
      if (segments > 0 || data.num_elements() == 0) return absl::OkStatus();
      TROUPE_ASSIGN_OR_RETURN(Tensor keys, ctx.AllocateTemp(ElementType::kUint64, ids.shape()));
      return CudaStatus(LaunchSegmentKeys(call, true, keys.mutable_raw_data(), check, stream),
                        kWhat);
    }
    if (call.rows <= kFewRows) return CudaStatus(LaunchSumOfFew(call, check, stream), kWhat);
    const int bits = std::bit_width(static_cast<uint64_t>(segments));
    const bool wide = bits > 32;
    TROUPE_ASSIGN_OR_RETURN(const SortMemory sort, SortMemory::Allocate(ctx, call.rows, wide));
    TROUPE_ASSIGN_OR_RETURN(Tensor starts,
                            ctx.AllocateTemp(ElementType::kInt64, Shape({segments + 1})));
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchSegmentKeys(call, wide, sort.buffers.keys[0], check, stream), kWhat));
    int result = 0;
    TROUPE_RETURN_IF_ERROR(CudaStatus(
        LaunchSort(sort.buffers, call.rows, bits, /*fresh=*/true, &result, stream), "a sort"));
    return CudaStatus(
        LaunchSumSorted(call, wide, sort.buffers.keys[result], sort.buffers.places[result],
                        starts.mutable_data<int64_t>(), stream),
        kWhat);
  }
};

class SegmentSumKernel final : public LateShapeKernel {
 public:
  SegmentSumKernel(KernelConstruction& construction, absl::Status* status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  absl::StatusOr<Search> Begin(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    TROUPE_RETURN_IF_ERROR(CheckSegmentShapes(data.shape(), ids.shape()));
    if (ids.num_elements() == 0) {
      Shape shape = data.shape();
      shape.set_dim(0, 0);
      TROUPE_RETURN_IF_ERROR(ctx.AllocateOutput(0, data.type(), shape).status());
      return Search();
    }
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, OutOfOrder));
    Search search;
    TROUPE_ASSIGN_OR_RETURN(search.found, ctx.AllocateTemp(ElementType::kInt64, Shape({1})));
    const SegmentCall call = CallOf(type_, data, ids, 0, nullptr);
    TROUPE_RETURN_IF_ERROR(CudaStatus(
        LaunchCheckSorted(call, search.found.mutable_data<int64_t>(), check, StreamOf(ctx)),
        kWhat));
    return search;
  }

  absl::Status End(KernelContext& ctx, const int64_t* found, Tensor) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    const int64_t segments = *found + 1;
    absl::InlinedVector<int64_t, 8> dims = {segments};
    for (int d = 1; d < data.rank(); ++d) dims.push_back(data.dim(d));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, data.type(), shape));
    if (output->num_elements() == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(Tensor starts,
                            ctx.AllocateTemp(ElementType::kInt64, Shape({segments + 1})));
    // Ids are not negative, so that they are keys as they are.
    const SegmentCall call = CallOf(type_, data, ids, segments, output);
    return CudaStatus(LaunchSumSorted(call, call.wide_ids, call.ids, nullptr,
                                      starts.mutable_data<int64_t>(), StreamOf(ctx)),
                      kWhat);
  }

 private:
  static absl::Status OutOfOrder(const int64_t* values) {
    return SegmentOrderError(values[0], values[1], values[2]);
  }

  Number type_ = Number::kFloat;
};

}  // namespace

void RegisterSegment(Extension& extension) {
  std::vector<ElementType> types = FloatAndComplexTypes();
  types.push_back(ElementType::kInt32);
  extension.Kernel(KernelSpec("UnsortedSegmentSum")
                       .Device("GPU")
                       .Types("T", std::move(types))
                       .Types("Tindices", IndexTypes())
                       .HostMemory("num_segments"),
                   MakeKernel<UnsortedSegmentSumKernel>);
  extension.Kernel(KernelSpec("SegmentSum")
                       .Device("GPU")
                       .Types("T", FloatTypes())
                       .Types("Tindices", IndexTypes()),
                   MakeKernel<SegmentSumKernel>);
}

}  // namespace troupe::cuda
