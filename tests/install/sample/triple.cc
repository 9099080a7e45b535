// An extension built with an installed Troupe: the op Triple, its kernel and its gradient.
#include <troupe/api/extension.h>

namespace {

class TripleKernel : public troupe::Kernel {
 public:
  TripleKernel(troupe::KernelConstruction&, absl::Status*) {}
  absl::Status Compute(troupe::KernelContext& context) override {
    const troupe::Tensor& x = context.input(0);
    TROUPE_ASSIGN_OR_RETURN(troupe::Tensor * y, context.ForwardOrAllocate(0, 0));
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      y->mutable_data<float>()[i] = 3 * x.unchecked_data<float>()[i];
    }
    return absl::OkStatus();
  }
};

void TripleGradient(troupe::GradientContext& g) { g.set(0, g.Op("Triple", {g.grad(0)})); }

absl::Status Register(troupe::Extension& extension) {
  extension.Op("Triple").Input("x: float").Output("y: float").SetShapeFn(troupe::UnchangedShape);
  extension.Kernel(troupe::KernelSpec("Triple"), troupe::MakeKernel<TripleKernel>);
  extension.Gradient("Triple", TripleGradient);
  return absl::OkStatus();
}

}  // namespace

TROUPE_EXTENSION(Register)
