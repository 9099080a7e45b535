// DataFormatDimMap, DataFormatVecPermute.
#include <algorithm>

#include "kernels/array/data_format.h"
#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status MapDims(KernelContext& ctx, const std::string& source, const std::string& target) {
  TROUPE_ASSIGN_OR_RETURN(const FormatDims places, MapFormatDims(source, target));
  const auto count = static_cast<int64_t>(places.size());
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
  return SwitchType<int32_t, int64_t>(y->type(), [&]<typename T>() {
    const T* from = ctx.input(0).unchecked_data<T>();
    T* to = y->mutable_data<T>();
    for (int64_t i = 0; i < y->num_elements(); ++i) {
      // Numbers of no dimension are not refused; what they give is TensorFlow's.
      const int64_t dim = (from[i] < 0 ? from[i] + count : from[i]) % count;
      to[i] = static_cast<T>(dim < 0 ? places.back() : places[dim]);
    }
    return absl::OkStatus();
  });
}

absl::Status PermuteVector(KernelContext& ctx, const std::string& source,
                           const std::string& target) {
  const Tensor& x = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const FormatDims rows, PermuteFormatRows(x.shape(), source, target));
  const int64_t columns = x.rank() == 1 ? 1 : 2;
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.type(), x.shape()));
  return SwitchType<int32_t, int64_t>(x.type(), [&]<typename T>() {
    T* to = y->mutable_data<T>();
    for (const int64_t row : rows) {
      to = std::copy_n(x.unchecked_data<T>() + row * columns, columns, to);
    }
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(Cheap("DataFormatDimMap").Types("T", IndexTypes()),
                (MakeAttrKernel<MapDims, "src_format", "dst_format">));
REGISTER_KERNEL(Cheap("DataFormatVecPermute").Types("T", IndexTypes()),
                (MakeAttrKernel<PermuteVector, "src_format", "dst_format">));

}  // namespace
}  // namespace troupe
