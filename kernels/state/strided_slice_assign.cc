// StridedSliceAssign, ResourceStridedSliceAssign: slices of variables replaced in place.
#include "kernels/array/strided_slice.h"
#include "kernels/state/element_ops.h"
#include "kernels/state/own_value.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {
namespace {

class StridedSliceAssignKernel final : public VariableKernel {
 public:
  StridedSliceAssignKernel(KernelConstruction& c, absl::Status*)
      : VariableKernel(c, 1), masks_(layout::ReadMasks(c)), type_(c.input_type(4)) {}

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    const Tensor& value = leases[0].value();
    if (!value.valid()) return leases[0].mutable_value().status();
    if (value.type() != type_) {
      return InvalidArgument("the variable '", leases[0].variable()->name(), "' is of type ",
                             ElementTypeName(value.type()), ", the value of type ",
                             ElementTypeName(type_));
    }
    return layout::AssignSlice(ctx, masks_, Shape(value.shape()),
                               [&] { return OwnValue(ctx, leases[0]); });
  }

 private:
  layout::StridedSliceMasks masks_;
  ElementType type_;
};

}  // namespace

void ForEachSliceAssign(const UseKernel& use) {
  for (const char* op : {"StridedSliceAssign", "ResourceStridedSliceAssign"}) {
    use(KernelSpec(op).Types("T", AllTypes()).Types("Index", IndexTypes()),
        MakeKernel<StridedSliceAssignKernel>);
  }
}

}  // namespace troupe
