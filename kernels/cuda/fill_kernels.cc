// Ops of GPUs that make tensors, or change rows: Fill, OnesLike, Range, InplaceAdd and the like.
#include <algorithm>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/select.h"
#include "kernels/reduce/range_size.h"
#include "kernels/state/inplace_rows.h"

namespace troupe::cuda {
namespace {

/// Unlike the CPU's, its value is in device memory.
absl::Status Fill(KernelContext& ctx) {
  const Tensor& value = ctx.input(1);
  if (value.rank() > 1 || value.num_elements() != 1) {
    return InvalidArgument("value must be a scalar, got shape ", value.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "dims"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, value.type(), shape));
  return CudaStatus(LaunchSpread(static_cast<int64_t>(ElementSize(value.type())), value.raw_data(),
                                 out->mutable_raw_data(), out->num_elements(), StreamOf(ctx)),
                    "filling a tensor");
}

absl::Status Range(KernelContext& ctx) {
  const Tensor& start = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, RangeSize(start, ctx.input(1), ctx.input(2)));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(start.type()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, start.type(), Shape({n})));
  return CudaStatus(LaunchRange(type, start.raw_data(), ctx.input(2).raw_data(),
                                out->mutable_raw_data(), n, StreamOf(ctx)),
                    "a range");
}

template <RowUpdate kUpdate>
absl::Status Inplace(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(ctx.input(0).type()));
  const ElementType element = ctx.input(2).type();
  TROUPE_ASSIGN_OR_RETURN(const DimVector rows, TakeRows(ctx));
  if (rows.empty()) return absl::OkStatus();
  const int64_t count = static_cast<int64_t>(rows.size());
  const int64_t width = ctx.input(2).num_elements() / count;
  const auto* v = static_cast<const char*>(ctx.input(2).raw_data());
  for (int64_t first = 0; first < count; first += RowNumbers::kMost) {
    RowNumbers some;
    some.count = static_cast<int>(std::min<int64_t>(count - first, RowNumbers::kMost));
    std::copy_n(rows.begin() + first, some.count, some.rows);
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchUpdateRows(kUpdate, type, ctx.output(0).mutable_raw_data(), some,
                                    v + first * width * static_cast<int64_t>(ElementSize(element)),
                                    width, StreamOf(ctx)),
                   "an update of rows"));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterFill(Extension& extension) {
  using enum ElementType;
  const auto spec = [](const char* op, const char* attr, std::vector<ElementType> types) {
    return KernelSpec(op).Device("GPU").Types(attr, std::move(types));
  };
  const auto moved = [&spec](const char* op) { return spec(op, "T", MovedTypes()); };
  std::vector<ElementType> numbers = MovedTypes();
  std::erase(numbers, kBool);
  std::vector<ElementType> ranges = FloatTypes();
  ranges.push_back(kInt64);
  extension.Kernel(KernelSpec("Bitcast")
                       .Device("GPU")
                       .Types("T", NumberTypes())
                       .Types("type", NumberTypes())
                       .Cost(KernelCost::kCheap),
                   MakeAttrKernel<layout::Bitcast, "T", "type">);
  extension.Kernel(moved("DeepCopy"), MakeKernel<ForwardOrCopy>);
  extension.Kernel(spec("Empty", "dtype", MovedTypes()).HostMemory("shape"),
                   MakeAttrKernel<layout::Empty, "dtype", "init">);
  std::vector<ElementType> filled = MovedTypes();
  filled.insert(filled.end(), {kInt4, kUint4});
  extension.Kernel(spec("Fill", "T", filled).HostMemory("dims"), MakeKernel<Fill>);
  extension.Kernel(spec("InplaceAdd", "T", numbers).HostMemory("i"),
                   MakeKernel<Inplace<RowUpdate::kAdd>>);
  extension.Kernel(spec("InplaceSub", "T", numbers).HostMemory("i"),
                   MakeKernel<Inplace<RowUpdate::kSub>>);
  extension.Kernel(moved("InplaceUpdate").HostMemory("i"), MakeKernel<Inplace<RowUpdate::kAssign>>);
  extension.Kernel(moved("OnesLike"), layout::OnesLike);
  extension.Kernel(
      spec("Range", "Tidx", ranges).HostMemory("start").HostMemory("limit").HostMemory("delta"),
      MakeKernel<Range>);
  extension.Kernel(moved("ZerosLike"), MakeKernel<layout::ZerosLike>);
}

}  // namespace troupe::cuda
