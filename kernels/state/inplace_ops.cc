// InplaceUpdate, InplaceAdd, InplaceSub, DeepCopy. A shared buffer is copied before it is
// changed; one that no one else holds is changed in place.
#include "kernels/array/scatter.h"
#include "kernels/kernel_registry.h"
#include "kernels/state/inplace_rows.h"

namespace troupe {
namespace {

template <ScatterOp kOp>
class Inplace : public Kernel {
 public:
  Inplace(KernelConstruction& construction, absl::Status* status) {
    const ElementType type = construction.input_type(0);
    const bool number = IsFloating(type) || IsComplex(type) || IsInteger(type);
    const bool movable = IsPlain(type) || type == ElementType::kString;
    if (!(kOp == ScatterOp::kUpdate ? movable : number)) {
      *status =
          InvalidArgument(construction.op(), " of ", ElementTypeName(type), " is not supported");
    }
  }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const DimVector rows, TakeRows(ctx));
    const Shape& shape = ctx.output(0).shape();
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t inner = SliceElements(shape, 1);
    std::vector<int64_t> offsets;
    for (const int64_t row : rows) offsets.push_back(row * inner);
    return ScatterSlices(ctx, kOp, ctx.input(2), offsets, inner, &ctx.output(0));
  }
};

REGISTER_KERNEL(KernelSpec("InplaceUpdate").Types("T", AllTypes()),
                MakeKernel<Inplace<ScatterOp::kUpdate>>);
REGISTER_KERNEL(KernelSpec("InplaceAdd").Types("T", AllTypes()),
                MakeKernel<Inplace<ScatterOp::kAdd>>);
REGISTER_KERNEL(KernelSpec("InplaceSub").Types("T", AllTypes()),
                MakeKernel<Inplace<ScatterOp::kSubtract>>);
REGISTER_KERNEL(KernelSpec("DeepCopy").Types("T", AllTypes()), MakeKernel<ForwardOrCopy>);

}  // namespace
}  // namespace troupe
