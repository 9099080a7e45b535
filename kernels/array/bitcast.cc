// Bitcast, Empty: tensors whose elements nobody computes.
#include <cstdint>

#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {

absl::Status Bitcast(KernelContext& ctx, ElementType from_type, ElementType to_type) {
  const Tensor& input = ctx.input(0);
  const int64_t from = static_cast<int64_t>(ElementSize(from_type));
  const int64_t to = static_cast<int64_t>(ElementSize(to_type));
  Shape shape = input.shape();
  if (from > to) {
    // Elements become rows of smaller ones.
    DimVector dims(shape.dims().begin(), shape.dims().end());
    dims.push_back(from / to);
    TROUPE_ASSIGN_OR_RETURN(shape, Shape::Create(dims));
  } else if (from < to) {
    if (shape.rank() == 0 || shape.dim(shape.rank() - 1) != to / from) {
      return InvalidArgument("to become ", ElementTypeName(to_type), ", elements of type ",
                             ElementTypeName(from_type), " must come in rows of ", to / from,
                             " (the last dimension), got shape ", shape.ToString());
    }
    shape.RemoveDim(shape.rank() - 1);
  }
  // The bytes are shared, unless they begin where elements of the new type may not.
  if (reinterpret_cast<uintptr_t>(input.raw_data()) % static_cast<uintptr_t>(to) == 0) {
    ctx.set_output(
        0, Tensor(to_type, std::move(shape), input.buffer(), const_cast<void*>(input.raw_data())));
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, to_type, shape));
  StridedCopy(ctx, ElementType::kUint8, {static_cast<int64_t>(input.bytes())},
              out->mutable_raw_data(), {1}, input.raw_data(), {1});
  return absl::OkStatus();
}

absl::Status Empty(KernelContext& ctx, ElementType type, bool init) {
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "shape"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type, shape));
  if (init) ZeroElements(ctx, type, out->mutable_raw_data(), out->num_elements());
  return absl::OkStatus();
}

}  // namespace troupe::layout
