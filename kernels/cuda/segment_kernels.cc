// Segment and UnsortedSegment ops of GPUs.
#include <algorithm>
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/cuda/late_shape_kernel.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/sorted_ids.h"
#include "kernels/reduce/segment_shape.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a reduction by segments";

/// Rows of data become `output`; complex numbers are twice as many of their parts.
SegmentCall CallOf(SegmentOp op, Number type, const Tensor& data, const Tensor& ids,
                   int64_t segments, Tensor* output) {
  SegmentCall call{op, type, IndicesOf(ids), data.raw_data(), output->mutable_raw_data()};
  call.rows = ids.num_elements();
  call.segments = segments;
  call.length = output->num_elements() / std::max<int64_t>(segments, 1);
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

template <SegmentOp kOp>
class UnsortedSegmentKernel final : public OneTypeKernel {
 public:
  UnsortedSegmentKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(int64_t segments, ReadIntegerScalar(ctx.input(2), "num_segments"));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                            UnsortedSegmentShape(data.shape(), ids.shape(), segments));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, OutOfRange));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, data.type(), shape));
    const SegmentCall call = CallOf(kOp, type_, data, ids, segments, output);
    const BadIds bad{.negative = false, .large = true};
    if (output->num_elements() == 0) {
      // There may be rows for segments that are not there.
      if (segments > 0 || data.num_elements() == 0) return absl::OkStatus();
      return SortedRows::Of(ctx, call.ids, call.rows, segments, bad, check).status();
    }
    if (call.rows <= kFewRows) {
      return CudaStatus(LaunchReduceFew(call, check, StreamOf(ctx)), kWhat);
    }
    TROUPE_ASSIGN_OR_RETURN(const SortedRows sorted,
                            SortedRows::Of(ctx, call.ids, call.rows, segments, bad, check));
    TROUPE_ASSIGN_OR_RETURN(const Tensor starts, sorted.Starts(ctx, segments));
    return CudaStatus(
        LaunchReduceSorted(call, sorted.places, starts.unchecked_data<int64_t>(), StreamOf(ctx)),
        kWhat);
  }
};

template <SegmentOp kOp>
class SegmentKernel final : public LateShapeKernel {
 public:
  SegmentKernel(KernelConstruction& construction, absl::Status* status) {
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
      TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(data.shape(), 0));
      TROUPE_RETURN_IF_ERROR(ctx.AllocateOutput(0, data.type(), shape).status());
      return Search();
    }
    Search search;
    TROUPE_ASSIGN_OR_RETURN(search.found, ctx.AllocateTemp(ElementType::kInt64, Shape({1})));
    SortedIds sorted{.ids = IndicesOf(ids), .rows = ids.num_elements()};
    TROUPE_ASSIGN_OR_RETURN(sorted.order, CheckLate(ctx, OutOfOrder));
    sorted.last = search.found.mutable_data<int64_t>();
    TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchCheckSorted(sorted, StreamOf(ctx)), kWhat));
    return search;
  }

  absl::Status End(KernelContext& ctx, const int64_t* found, const std::any&) override {
    const Tensor& data = ctx.input(0);
    const int64_t segments = *found + 1;
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(data.shape(), segments));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, data.type(), shape));
    if (output->num_elements() == 0) return absl::OkStatus();
    SegmentCall call = CallOf(kOp, type_, data, ctx.input(1), segments, output);
    call.empty_is_zero = true;
    // Ids are not negative, so that they are keys as they are.
    SortedRows sorted;
    sorted.wide = call.ids.type == Number::kInt64;
    sorted.keys = call.ids.data;
    sorted.rows = call.rows;
    TROUPE_ASSIGN_OR_RETURN(const Tensor starts, sorted.Starts(ctx, segments));
    return CudaStatus(
        LaunchReduceSorted(call, nullptr, starts.unchecked_data<int64_t>(), StreamOf(ctx)), kWhat);
  }

 private:
  static absl::Status OutOfOrder(const int64_t* values) {
    return SegmentOrderError(values[0], values[1], values[2]);
  }

  Number type_ = Number::kFloat;
};

}  // namespace

void RegisterSegment(Extension& extension) {
  const auto unsorted = [&extension](const char* op, std::vector<ElementType> types,
                                     KernelFactory factory) {
    types.push_back(ElementType::kInt32);
    extension.Kernel(KernelSpec(op)
                         .Device("GPU")
                         .Types("T", std::move(types))
                         .Types("Tindices", IndexTypes())
                         .HostMemory("num_segments"),
                     factory);
  };
  unsorted("UnsortedSegmentSum", FloatAndComplexTypes(),
           MakeKernel<UnsortedSegmentKernel<SegmentOp::kSum>>);
  unsorted("UnsortedSegmentProd", FloatTypes(),
           MakeKernel<UnsortedSegmentKernel<SegmentOp::kProd>>);
  unsorted("UnsortedSegmentMin", FloatTypes(), MakeKernel<UnsortedSegmentKernel<SegmentOp::kMin>>);
  unsorted("UnsortedSegmentMax", FloatTypes(), MakeKernel<UnsortedSegmentKernel<SegmentOp::kMax>>);
  const auto sorted = [&extension](const char* op, KernelFactory factory) {
    extension.Kernel(
        KernelSpec(op).Device("GPU").Types("T", FloatTypes()).Types("Tindices", IndexTypes()),
        factory);
  };
  sorted("SegmentSum", MakeKernel<SegmentKernel<SegmentOp::kSum>>);
  sorted("SegmentMean", MakeKernel<SegmentKernel<SegmentOp::kMean>>);
  sorted("SegmentProd", MakeKernel<SegmentKernel<SegmentOp::kProd>>);
  sorted("SegmentMin", MakeKernel<SegmentKernel<SegmentOp::kMin>>);
  sorted("SegmentMax", MakeKernel<SegmentKernel<SegmentOp::kMax>>);
}

}  // namespace troupe::cuda
