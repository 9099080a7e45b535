// InplaceUpdate, InplaceAdd, InplaceSub, DeepCopy. A shared buffer is copied before it is
// changed; one that no one else holds is changed in place.
#include "kernels/array/scatter.h"
#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"

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
    const Tensor &i = ctx.input(1), &v = ctx.input(2);
    const Shape shape = ctx.input(0).shape();
    if (i.rank() != 1) {
      return InvalidArgument("i must be a vector, got shape ", i.shape().ToString());
    }
    bool fits = shape.rank() == v.rank() && shape.rank() > 0 && v.dim(0) == i.dim(0);
    for (int d = 1; fits && d < shape.rank(); ++d) fits = shape.dim(d) == v.dim(d);
    if (!fits) {
      return InvalidArgument("v of shape ", v.shape().ToString(), " must hold ", i.dim(0),
                             " rows (one for each of i) like those of x of shape ",
                             shape.ToString());
    }
    TROUPE_RETURN_IF_ERROR(ForwardOrCopy(ctx));
    if (shape.num_elements() == 0) return absl::OkStatus();
    // Rows are counted modulo their number.
    const int64_t inner = SliceElements(shape, 1), rows = shape.dim(0);
    TROUPE_ASSIGN_OR_RETURN(const DimVector indices, ReadIntegers(i, "i"));
    std::vector<int64_t> offsets;
    for (const int64_t index : indices) offsets.push_back((index % rows + rows) % rows * inner);
    return ScatterSlices(ctx, kOp, v, offsets, inner, &ctx.output(0));
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
