// DynamicPartition: the slices of a tensor dealt out to several tensors.
#include <vector>

#include "kernels/array/indexing_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {

absl::Status DynamicPartition(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &partitions = ctx.input(1);
  const int lead = partitions.rank(), count = ctx.num_outputs();
  bool fits = data.rank() >= lead;
  for (int d = 0; fits && d < lead; ++d) fits = data.dim(d) == partitions.dim(d);
  if (!fits) {
    return InvalidArgument("data of shape ", data.shape().ToString(),
                           " must start with the shape of partitions, ",
                           partitions.shape().ToString());
  }
  const absl::Span<const int32_t> ids = partitions.unchecked_values<int32_t>();
  std::vector<int64_t> rows(count, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= count) {
      return InvalidArgument("partitions, element ", i, ": ", ids[i], " is not in [0, ", count,
                             ")");
    }
    ++rows[ids[i]];
  }
  DimVector dims{0};
  int64_t slice = 1;
  for (int d = lead; d < data.rank(); ++d) {
    dims.push_back(data.dim(d));
    slice *= data.dim(d);
  }
  for (int p = 0; p < count; ++p) {
    dims[0] = rows[p];
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_RETURN_IF_ERROR(ctx.AllocateOutput(p, data.type(), shape).status());
  }
  if (slice == 0 || ids.empty()) return absl::OkStatus();
  return DealRows(ctx, data, ids, slice);
}

}  // namespace troupe::layout
