// SparseSegment ops and their gradients of GPUs.
#include <any>
#include <string>
#include <utility>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/cuda/late_shape_kernel.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/scan.h"
#include "kernels/cuda/sorted_ids.h"
#include "kernels/reduce/segment_shape.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a reduction by segments";

absl::Status BadRow(const int64_t* values) {
  return InvalidArgument("indices[", values[0], "] = ", values[1], " is not in [0, ", values[2],
                         ")");
}
absl::Status BadId(const int64_t* values) {
  return InvalidArgument("segment_ids[", values[0], "] = ", values[1], " is not in [0, ", values[2],
                         ")");
}
absl::Status OutOfOrder(const int64_t* values) {
  return SegmentOrderError(values[0], values[1], values[2]);
}
absl::Status BeyondLast(const int64_t* values) { return TooFewSegments(values[1], values[0]); }

// ---- Reductions of rows of input 0 that input 1 picks, by the segments of input 2.

absl::Status CheckShapes(const KernelContext& ctx) {
  if (ctx.input(0).rank() < 1) return InvalidArgument("data must have at least one dimension");
  return CheckPairShapes(ctx.input(1).shape(), ctx.input(2).shape());
}

/// Puts the last id into `last`; for nullptr it must be below `segments`.
absl::Status CheckIds(KernelContext& ctx, int64_t* last, int64_t segments) {
  SortedIds sorted{.ids = IndicesOf(ctx.input(2)), .rows = ctx.input(2).num_elements()};
  sorted.last = last;
  sorted.segments = segments;
  TROUPE_ASSIGN_OR_RETURN(sorted.order, CheckLate(ctx, OutOfOrder));
  TROUPE_ASSIGN_OR_RETURN(sorted.beyond, CheckLate(ctx, BeyondLast));
  return CudaStatus(LaunchCheckSorted(sorted, StreamOf(ctx)), kWhat);
}

absl::Status SumSegments(KernelContext& ctx, Number type, SegmentScale scale, int64_t segments) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1), &ids = ctx.input(2);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(data.shape(), segments));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, data.type(), shape));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadRow));
  if (output->num_elements() == 0) {  // The indices may be bad all the same.
    return SortedRows::Of(ctx, IndicesOf(indices), indices.num_elements(), data.dim(0),
                          {.negative = true, .large = true}, check)
        .status();
  }
  // Ids are not negative, so that they are keys as they are.
  SortedRows sorted;
  sorted.wide = ids.type() == ElementType::kInt64;
  sorted.keys = ids.raw_data();
  sorted.rows = ids.num_elements();
  TROUPE_ASSIGN_OR_RETURN(const Tensor starts, sorted.Starts(ctx, segments));
  const PickedCall call{.type = type,
                        .data = data.raw_data(),
                        .rows = data.dim(0),
                        .length = output->num_elements() / segments,
                        .segments = segments,
                        .pairs = sorted.rows,
                        .indices = IndicesOf(indices),
                        .places = nullptr,
                        .starts = starts.unchecked_data<int64_t>(),
                        .scale = scale,
                        .factors = nullptr,
                        .out = output->mutable_raw_data()};
  return CudaStatus(LaunchSumPicked(call, check, StreamOf(ctx)), kWhat);
}

template <SegmentScale kScale>
class SparseSegmentKernel final : public LateShapeKernel {
 public:
  SparseSegmentKernel(KernelConstruction& construction, absl::Status* status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  absl::StatusOr<Search> Begin(KernelContext& ctx) override {
    TROUPE_RETURN_IF_ERROR(CheckShapes(ctx));
    Search search;
    if (ctx.input(2).num_elements() == 0) {
      TROUPE_RETURN_IF_ERROR(SumSegments(ctx, type_, kScale, 0));
      return search;
    }
    TROUPE_ASSIGN_OR_RETURN(search.found, ctx.AllocateTemp(ElementType::kInt64, Shape({1})));
    TROUPE_RETURN_IF_ERROR(CheckIds(ctx, search.found.mutable_data<int64_t>(), 0));
    return search;
  }
  absl::Status End(KernelContext& ctx, const int64_t* found, const std::any&) override {
    return SumSegments(ctx, type_, kScale, *found + 1);
  }

 private:
  Number type_ = Number::kFloat;
};

/// The same with num_segments.
template <SegmentScale kScale>
class SparseSegmentOfNumberKernel final : public OneTypeKernel {
 public:
  SparseSegmentOfNumberKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_RETURN_IF_ERROR(CheckShapes(ctx));
    TROUPE_ASSIGN_OR_RETURN(const int64_t segments,
                            ReadIntegerScalar(ctx.input(3), "num_segments"));
    if (segments < 0) return TooFewSegments(segments, -1);
    TROUPE_RETURN_IF_ERROR(CheckIds(ctx, nullptr, segments));
    return SumSegments(ctx, type_, kScale, segments);
  }
};

// ---- Gradients.

/// What both versions have in common: pairs in the order of the rows that they add to.
struct GradientPairs {
  SortedRows sorted;
  Tensor factors;  ///< Of the rows of segments; none if they are not scaled.
  int64_t rows;    ///< Of the data.

  static absl::StatusOr<GradientPairs> Read(KernelContext& ctx, const char* rows_name, Number type,
                                            SegmentScale scale) {
    const Tensor &grad = ctx.input(0), &indices = ctx.input(1), &ids = ctx.input(2);
    GradientPairs pairs;
    if (grad.rank() < 1) return InvalidArgument("grad must have at least one dimension");
    TROUPE_RETURN_IF_ERROR(CheckPairShapes(indices.shape(), ids.shape()));
    TROUPE_ASSIGN_OR_RETURN(pairs.rows, ReadIntegerScalar(ctx.input(3), rows_name));
    if (pairs.rows < 0) {
      return InvalidArgument("the number of rows must not be negative, got ", pairs.rows);
    }
    if (pairs.rows == 0) return pairs;  // As in TensorFlow, whatever the indices are.
    const int64_t count = ids.num_elements(), segments = grad.dim(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor sizes, ctx.AllocateTemp(ElementType::kInt32, Shape({segments})));
    auto* const counted = sizes.mutable_data<int32_t>();
    const cudaStream_t stream = StreamOf(ctx);
    TROUPE_ASSIGN_OR_RETURN(const LateCheck bad_id, CheckLate(ctx, BadId));
    cudaError_t error =
        LaunchSegmentSizes(IndicesOf(ids), count, segments, counted, bad_id, stream);
    if (error == cudaSuccess && scale != SegmentScale::kNone) {
      const bool wide = type == Number::kDouble;
      TROUPE_ASSIGN_OR_RETURN(
          pairs.factors,
          ctx.AllocateTemp(wide ? ElementType::kDouble : ElementType::kFloat, Shape({segments})));
      error = LaunchSegmentFactors(type, scale, counted, segments, pairs.factors.mutable_raw_data(),
                                   stream);
    }
    TROUPE_RETURN_IF_ERROR(CudaStatus(error, kWhat));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck bad_row, CheckLate(ctx, BadRow));
    TROUPE_ASSIGN_OR_RETURN(pairs.sorted,
                            SortedRows::Of(ctx, IndicesOf(indices), count, pairs.rows,
                                           {.negative = true, .large = true}, bad_row));
    return pairs;
  }

  /// The sums for so many rows, of which pairs begin at `starts`.
  absl::Status Sum(KernelContext& ctx, Number type, const int64_t* starts, int64_t sums,
                   Tensor* output) const {
    if (output->num_elements() == 0) return absl::OkStatus();
    const Tensor& grad = ctx.input(0);
    // The ids have been looked at, but bad ones must not be followed.
    TROUPE_ASSIGN_OR_RETURN(const LateCheck bad_id, CheckLate(ctx, BadId));
    const PickedCall call{.type = type,
                          .data = grad.raw_data(),
                          .rows = grad.dim(0),
                          .length = output->num_elements() / sums,
                          .segments = sums,
                          .pairs = sorted.rows,
                          .indices = IndicesOf(ctx.input(2)),
                          .places = sorted.places,
                          .starts = starts,
                          .scale = SegmentScale::kNone,
                          .factors = factors.valid() ? factors.raw_data() : nullptr,
                          .out = output->mutable_raw_data()};
    return CudaStatus(LaunchSumPicked(call, bad_id, StreamOf(ctx)), kWhat);
  }
};

template <SegmentScale kScale>
class SparseSegmentGradKernel final : public OneTypeKernel {
 public:
  SparseSegmentGradKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const GradientPairs pairs,
                            GradientPairs::Read(ctx, "output_dim0", type_, kScale));
    const Tensor& grad = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(grad.shape(), pairs.rows));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, grad.type(), shape));
    if (output->num_elements() == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const Tensor starts, pairs.sorted.Starts(ctx, pairs.rows));
    return pairs.Sum(ctx, type_, starts.unchecked_data<int64_t>(), pairs.rows, output);
  }
};

struct NamedPairs {
  GradientPairs pairs;
  Tensor at;  ///< Of each pair, the number of its row.
};

/// The gradients of the rows that are named, and which these are.
template <SegmentScale kScale>
class SparseSegmentGradV2Kernel final : public LateShapeKernel {
 public:
  SparseSegmentGradV2Kernel(KernelConstruction& construction, absl::Status* status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  absl::StatusOr<Search> Begin(KernelContext& ctx) override {
    NamedPairs named;
    TROUPE_ASSIGN_OR_RETURN(named.pairs,
                            GradientPairs::Read(ctx, "dense_output_dim0", type_, kScale));
    Search search;
    const SortedRows& sorted = named.pairs.sorted;
    const int64_t count = sorted.rows;
    if (count == 0) {
      TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(ctx.input(0).shape(), 0));
      TROUPE_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).type(), shape).status());
      TROUPE_RETURN_IF_ERROR(ctx.AllocateOutput(1, ctx.input(1).type(), Shape({0})).status());
      return search;
    }
    TROUPE_ASSIGN_OR_RETURN(search.found, ctx.AllocateTemp(ElementType::kInt64, Shape({1})));
    TROUPE_ASSIGN_OR_RETURN(named.at, ctx.AllocateTemp(ElementType::kUint64, Shape({count + 1})));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor scratch,
        ctx.AllocateTemp(ElementType::kUint64, Shape({PlanScan(1, count + 1, 1).totals()})));
    auto* const numbers = named.at.mutable_data<uint64_t>();
    const cudaStream_t stream = StreamOf(ctx);
    cudaError_t error = LaunchNumberKeys(sorted.keys, sorted.wide, count, numbers,
                                         scratch.mutable_raw_data(), stream);
    if (error == cudaSuccess) {
      error = cudaMemcpyAsync(search.found.mutable_raw_data(), numbers + count, sizeof(*numbers),
                              cudaMemcpyDeviceToDevice, stream);
    }
    TROUPE_RETURN_IF_ERROR(CudaStatus(error, kWhat));
    search.keep = std::move(named);
    return search;
  }

  absl::Status End(KernelContext& ctx, const int64_t* found, const std::any& keep) override {
    const auto& [pairs, at] = std::any_cast<const NamedPairs&>(keep);
    const Tensor& grad = ctx.input(0);
    const int64_t rows = *found;
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(grad.shape(), rows));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, grad.type(), shape));
    TROUPE_ASSIGN_OR_RETURN(Tensor * named,
                            ctx.AllocateOutput(1, ctx.input(1).type(), Shape({rows})));
    TROUPE_ASSIGN_OR_RETURN(Tensor starts,
                            ctx.AllocateTemp(ElementType::kInt64, Shape({rows + 1})));
    const SortedRows& sorted = pairs.sorted;
    TROUPE_RETURN_IF_ERROR(CudaStatus(
        LaunchNamedKeys(sorted.keys, sorted.wide, sorted.rows, at.unchecked_data<uint64_t>(),
                        starts.mutable_data<int64_t>(), named->type() == ElementType::kInt64,
                        named->mutable_raw_data(), StreamOf(ctx)),
        kWhat));
    return pairs.Sum(ctx, type_, starts.unchecked_data<int64_t>(), rows, output);
  }

 private:
  Number type_ = Number::kFloat;
};

template <SegmentScale kScale>
void Register(Extension& extension, const std::string& op) {
  const auto spec = [](const std::string& name) {
    return KernelSpec(name)
        .Device("GPU")
        .Types("T", FloatTypes())
        .Types("Tidx", IndexTypes())
        .Types("Tsegmentids", IndexTypes());
  };
  extension.Kernel(spec(op), MakeKernel<SparseSegmentKernel<kScale>>);
  extension.Kernel(spec(op + "WithNumSegments").HostMemory("num_segments"),
                   MakeKernel<SparseSegmentOfNumberKernel<kScale>>);
  extension.Kernel(spec(op + "Grad").HostMemory("output_dim0"),
                   MakeKernel<SparseSegmentGradKernel<kScale>>);
  extension.Kernel(spec(op + "GradV2").HostMemory("dense_output_dim0"),
                   MakeKernel<SparseSegmentGradV2Kernel<kScale>>);
}

}  // namespace

void RegisterSparseSegment(Extension& extension) {
  Register<SegmentScale::kNone>(extension, "SparseSegmentSum");
  Register<SegmentScale::kMean>(extension, "SparseSegmentMean");
  Register<SegmentScale::kRootMean>(extension, "SparseSegmentSqrtN");
}

}  // namespace troupe::cuda
