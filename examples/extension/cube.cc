// An extension: the op Cube, x to the third, with its shape function, kernel and gradient. Built as
// a shared library of its own, which `use_cube.cc` loads, or `troupe run --library troupe_cube.so`.
#include <troupe/api/extension.h>
#include <troupe/kernels/type_switch.h>

namespace {

using troupe::ElementType;

/// Any of the floating types; the work is shared out among the session's threads.
class CubeKernel : public troupe::Kernel {
 public:
  CubeKernel(troupe::KernelConstruction& construction, absl::Status*)
      : type_(construction.input_type(0)) {}

  absl::Status Compute(troupe::KernelContext& context) override {
    // A reference, no copy: a second holder of the buffer would keep it from becoming the output's.
    // The input stays readable when it does.
    const troupe::Tensor& x = context.input(0);
    TROUPE_ASSIGN_OR_RETURN(troupe::Tensor * y, context.ForwardOrAllocate(0, 0));
    return troupe::SwitchType<float, double, troupe::half, troupe::bfloat16>(
        type_, [&]<typename T>() -> absl::Status {
          using Wide = std::conditional_t<sizeof(T) == 2, float, T>;
          const T* in = x.unchecked_data<T>();
          T* out = y->mutable_data<T>();
          context.ParallelFor(y->num_elements(), troupe::KernelContext::GrainFor(1.0),
                              [&](int64_t begin, int64_t end) {
                                for (int64_t i = begin; i < end; ++i) {
                                  const Wide value = static_cast<Wide>(in[i]);
                                  out[i] = static_cast<T>(value * value * value);
                                }
                              });
          return absl::OkStatus();
        });
  }

 private:
  const ElementType type_;
};

/// dy/dx = 3 x^2, of the graph's ops.
void CubeGradient(troupe::GradientContext& g) {
  const troupe::Output x = g.input(0);
  const troupe::Output slope = g.Op("Mul", {g.ScalarOfType(x.type(), 3.0), g.Op("Square", {x})});
  g.set(0, g.Op("Mul", {g.grad(0), slope}));
}

absl::Status Register(troupe::Extension& extension) {
  extension.Op("Cube")
      .Signature("x: T -> y: T")
      .Attr("T: {half, bfloat16, float, double}")
      .SetShapeFn(troupe::UnchangedShape)
      .Doc("Computes x * x * x element by element. Same shape and type as x.");
  extension.Kernel(troupe::KernelSpec("Cube").Types("T", troupe::FloatTypes()),
                   troupe::MakeKernel<CubeKernel>);
  extension.Gradient("Cube", CubeGradient);
  return absl::OkStatus();
}

}  // namespace

TROUPE_EXTENSION(Register)
