// LowerBound, UpperBound, Bucketize, Cross, DataFormatDimMap and DataFormatVecPermute of GPUs.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/array/data_format.h"
#include "kernels/array/sorted_search.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/linalg/cross_shape.h"

namespace troupe::cuda {
namespace {

template <bool kUpper>
absl::Status Bound(KernelContext& ctx, ElementType out_type) {
  const Tensor &sorted = ctx.input(0), &values = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckBound(sorted, values, out_type));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(sorted.type()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, out_type, values.shape()));
  const BoundCall call{type,
                       sorted.raw_data(),
                       sorted.dim(1),
                       values.raw_data(),
                       values.dim(0),
                       values.dim(1),
                       kUpper,
                       out_type == ElementType::kInt64,
                       out->mutable_raw_data()};
  return CudaStatus(LaunchBound(call, StreamOf(ctx)), "a search in sorted numbers");
}

class BucketizeKernel final : public OneTypeKernel {
 public:
  BucketizeKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {
    if (!status->ok()) return;
    absl::StatusOr<std::vector<float>> boundaries = ReadBoundaries(construction);
    *status = boundaries.status();
    if (boundaries.ok()) boundaries_ = *std::move(boundaries);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, ElementType::kInt32, input.shape()));
    size_t first = 0;
    do {  // In as many launches as it takes, one at least.
      Boundaries some;
      some.count =
          static_cast<int>(std::min<size_t>(boundaries_.size() - first, size_t{Boundaries::kMost}));
      std::copy_n(boundaries_.begin() + static_cast<int64_t>(first), some.count, some.at);
      TROUPE_RETURN_IF_ERROR(
          CudaStatus(LaunchBucketize(type_, input.raw_data(), input.num_elements(), some, first > 0,
                                     out->mutable_data<int32_t>(), StreamOf(ctx)),
                     "a search for buckets"));
      first += Boundaries::kMost;
    } while (first < boundaries_.size());
    return absl::OkStatus();
  }

 private:
  std::vector<float> boundaries_;
};

absl::Status Cross(KernelContext& ctx) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckCross(a.shape(), b.shape()));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(a.type()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.type(), a.shape()));
  return CudaStatus(LaunchCross(type, a.raw_data(), b.raw_data(), out->mutable_raw_data(),
                                a.num_elements() / 3, StreamOf(ctx)),
                    "a cross product");
}

absl::Status MapDims(KernelContext& ctx, const std::string& source, const std::string& target) {
  TROUPE_ASSIGN_OR_RETURN(const FormatDims dims, MapFormatDims(source, target));
  const auto* const x = ctx.input(0).unchecked_data<int64_t>();
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
  Places places;
  for (const int64_t dim : dims) places.at[places.count++] = dim;
  return CudaStatus(
      LaunchPlaceDims(places, x, y->mutable_data<int64_t>(), y->num_elements(), StreamOf(ctx)),
      "a data format");
}

absl::Status PermuteVector(KernelContext& ctx, const std::string& source,
                           const std::string& target) {
  const Tensor& x = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const FormatDims rows, PermuteFormatRows(x.shape(), source, target));
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.type(), x.shape()));
  const int64_t columns = x.rank() == 1 ? 1 : 2;
  Places places;
  for (const int64_t row : rows) {
    for (int64_t c = 0; c < columns; ++c) places.at[places.count++] = row * columns + c;
  }
  return CudaStatus(
      LaunchPick(places, x.unchecked_data<int64_t>(), y->mutable_data<int64_t>(), StreamOf(ctx)),
      "a data format");
}

}  // namespace

void RegisterArray(Extension& extension) {
  using enum ElementType;
  const auto add = [&extension](const char* op, std::vector<ElementType> types,
                                KernelFactory factory) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", std::move(types)), factory);
  };
  add("LowerBound", RealNumberTypes(), MakeAttrKernel<Bound<false>, "out_type">);
  add("UpperBound", RealNumberTypes(), MakeAttrKernel<Bound<true>, "out_type">);
  add("Bucketize", {kInt32, kInt64, kFloat, kDouble}, MakeKernel<BucketizeKernel>);
  add("Cross", RealNumberTypes(), MakeKernel<Cross>);
  // Those of int32 are on the host.
  add("DataFormatDimMap", {kInt64}, MakeAttrKernel<MapDims, "src_format", "dst_format">);
  add("DataFormatVecPermute", {kInt64}, MakeAttrKernel<PermuteVector, "src_format", "dst_format">);
}

}  // namespace troupe::cuda
