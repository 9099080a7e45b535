#include "kernels/nn/conv_engine.h"

#include <cstdint>
#include <cstring>

namespace troupe {

absl::Status ConvEngine::Run(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                             const Tensor& b, const Shape& result, bool filter_is_constant) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.type(), result));
  if (out->num_elements() == 0) return absl::OkStatus();
  if (a.num_elements() == 0 || b.num_elements() == 0) {
    std::memset(out->mutable_raw_data(), 0, out->bytes());
    return absl::OkStatus();
  }
  if (DepthwiseConvPays(op_, shape, a.type())) {
    return op_ == ConvOp::kForward ? DepthwiseConv(ctx, op_, shape, a, b, out)
                                   : DepthwiseConv(ctx, op_, shape, b, a, out);
  }
  switch (a.type()) {
    case ElementType::kDouble:
      RunDirect<double>(ctx, shape, a, b, out);
      return absl::OkStatus();
    case ElementType::kInt32:
      RunDirect<int32_t>(ctx, shape, a, b, out);
      return absl::OkStatus();
    default:
      return a.type() == ElementType::kFloat && NarrowConvPays(op_, shape)
                 ? RunNarrow(ctx, shape, a, b, out, filter_is_constant)
                 : RunOneDnn(ctx, shape, a, b, out, filter_is_constant);
  }
}

absl::Status ConvEngine::RunOneDnn(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                                   const Tensor& b, Tensor* out, bool filter_is_constant) {
  switch (op_) {
    case ConvOp::kForward:
      return onednn_.Forward(ctx, shape, a, {b, filter_is_constant}, out);
    case ConvOp::kBackwardInput:
      return onednn_.BackwardInput(ctx, shape, {a, filter_is_constant}, b, out);
    case ConvOp::kBackwardFilter:
      return onednn_.BackwardFilter(ctx, shape, a, b, out);
  }
  return absl::OkStatus();
}

absl::Status ConvEngine::RunNarrow(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                                   const Tensor& b, Tensor* out, bool filter_is_constant) {
  const float* x = a.unchecked_data<float>();
  const float* y = b.unchecked_data<float>();
  float* z = out->mutable_data<float>();
  switch (op_) {
    case ConvOp::kForward:
      return NarrowConvForward(ctx, shape, x, {b, filter_is_constant}, &narrow_filter_, z);
    case ConvOp::kBackwardInput:
      return NarrowConvBackwardInput(ctx, shape, x, y, z);
    case ConvOp::kBackwardFilter:
      return NarrowConvBackwardFilter(ctx, shape, x, y, z);
  }
  return absl::OkStatus();
}

template <typename T>
void ConvEngine::RunDirect(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                           const Tensor& b, Tensor* out) {
  const T* x = a.unchecked_data<T>();
  const T* y = b.unchecked_data<T>();
  T* z = out->mutable_data<T>();
  const bool one_group = shape.groups == 1;
  switch (op_) {
    case ConvOp::kForward:
      return one_group ? PatchConvForward(ctx, shape, x, y, z)
                       : DirectConvForward(ctx, shape, x, y, z);
    case ConvOp::kBackwardInput:
      return one_group ? PatchConvBackwardInput(ctx, shape, x, y, z)
                       : DirectConvBackwardInput(ctx, shape, x, y, z);
    case ConvOp::kBackwardFilter:
      return one_group ? PatchConvBackwardFilter(ctx, shape, x, y, z)
                       : DirectConvBackwardFilter(ctx, shape, x, y, z);
  }
}

}  // namespace troupe
