// DynamicPartition: the slices of a tensor dealt out to several tensors.
#include <algorithm>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

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
  std::vector<void*> ends(count);
  for (int p = 0; p < count; ++p) {
    dims[0] = rows[p];
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(p, data.type(), shape));
    ends[p] = out->mutable_raw_data();
  }
  if (slice == 0) return absl::OkStatus();
  return SwitchBySize(data.type(), [&]<typename T>() {
    std::vector<T*> to(count);
    for (int p = 0; p < count; ++p) to[p] = static_cast<T*>(ends[p]);
    const T* from = static_cast<const T*>(data.raw_data());
    if (slice == 1) {
      for (const int32_t id : ids) *to[id]++ = *from++;
      return absl::OkStatus();
    }
    // Neighbours that go to one place are copied together.
    for (size_t i = 0; i < ids.size();) {
      size_t next = i + 1;
      while (next < ids.size() && ids[next] == ids[i]) ++next;
      const int64_t elements = static_cast<int64_t>(next - i) * slice;
      to[ids[i]] = std::copy_n(from, elements, to[ids[i]]);
      from += elements;
      i = next;
    }
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(KernelSpec("DynamicPartition").Types("T", AllTypes()),
                MakeKernel<DynamicPartition>);

}  // namespace
}  // namespace troupe
