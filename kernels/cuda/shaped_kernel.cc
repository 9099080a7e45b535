#include "kernels/cuda/shaped_kernel.h"

#include <utility>
#include <vector>

#include "graph/shape_inference.h"
#include "kernels/cuda/cuda_kernels.h"

namespace troupe::cuda {

ShapedKernel::ShapedKernel(KernelConstruction& construction, absl::Status* status)
    : def_(construction.attrs().def()) {
  const absl::StatusOr<const OpRegistration*> op = OpRegistry::Global()->LookUp(construction.op());
  *status = op.status();
  if (!op.ok()) return;
  op_ = *op;
  if (op_->shape_fn == nullptr) {
    *status = absl::InternalError(StrCat(construction.op(), " has no shape function"));
  }
}

absl::StatusOr<absl::InlinedVector<Shape, 2>> ShapedKernel::OutputShapes(
    const KernelContext& ctx) const {
  std::vector<PartialShape> inputs;
  for (int i = 0; i < ctx.num_inputs(); ++i) inputs.emplace_back(ctx.input(i).shape());
  const auto on_host = [&ctx](int i) {
    return ctx.input(i).space() == MemorySpace::kDevice ? Tensor() : ctx.input(i);
  };
  InferenceContext inference(&def_, op_->def.get(), std::move(inputs),
                             std::vector<HandleShapes>(ctx.num_inputs()), ctx.num_outputs(),
                             {on_host, [&](int i) -> absl::StatusOr<PartialShape> {
                                const Tensor value = on_host(i);
                                if (!value.valid()) return PartialShape();
                                return InferenceContext::TensorAsShape(value, true);
                              }});
  TROUPE_RETURN_IF_ERROR(op_->shape_fn(&inference));
  absl::InlinedVector<Shape, 2> shapes;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    absl::StatusOr<Shape> shape = inference.output(i).ToShape();
    if (!shape.ok()) {
      return absl::InternalError(
          StrCat("the shape of output ", i, " depends on values that are on the device"));
    }
    shapes.push_back(*std::move(shape));
  }
  return shapes;
}

}  // namespace troupe::cuda
