// SparseBincount.
#include <algorithm>
#include <cstdint>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status SparseBincount(KernelContext& ctx, bool binary) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor input, ReadSparse(ctx, 0, "input"));
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, ReadIntegerScalar(ctx.input(3), "size"));
  const Tensor& weights = ctx.input(4);
  if (input.rank() != 1 && input.rank() != 2) {
    return InvalidArgument("the rank must be 1 or 2, got the shape ", input.shape.ToString());
  }
  if (size < 0) return InvalidArgument("size must not be negative, got ", size);
  const bool weighted = weights.num_elements() > 0;
  if (weighted && weights.num_elements() != input.size()) {
    return InvalidArgument("weights must be empty or have an element for each of the ",
                           input.size(), " values, got shape ", weights.shape().ToString());
  }
  TROUPE_RETURN_IF_ERROR(input.CheckBounds("input"));
  DimVector sizes = {size};
  if (input.rank() == 2) sizes.insert(sizes.begin(), input.shape.dim(0));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, weights.type(), shape));
  return SwitchType<int32_t, int64_t, float, double>(weights.type(), [&]<typename T>() {
    return SwitchType<int32_t, int64_t>(input.values.type(), [&]<typename Index>() -> absl::Status {
      const Index* values = input.values.unchecked_data<Index>();
      const T* weight = weights.unchecked_data<T>();
      T* counts = output->mutable_data<T>();
      std::fill_n(counts, output->num_elements(), T(0));
      for (int64_t i = 0; i < input.size(); ++i) {
        if (values[i] < 0) {
          return InvalidArgument("values[", i, "] must not be negative, got ", values[i]);
        }
        if (values[i] >= size) continue;
        T& count = counts[(input.rank() == 2 ? input.indices[i][0] : 0) * size + values[i]];
        count = binary ? T(1) : count + (weighted ? weight[i] : T(1));
      }
      return absl::OkStatus();
    });
  });
}

REGISTER_KERNEL(KernelSpec("SparseBincount"), (MakeAttrKernel<SparseBincount, "binary_output">));

}  // namespace
}  // namespace troupe
