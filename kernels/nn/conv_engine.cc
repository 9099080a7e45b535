#include "kernels/nn/conv_engine.h"

#include <cstdint>
#include <cstring>

#include "kernels/common/widen.h"

namespace troupe {

absl::Status ConvEngine::Run(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                             const Tensor& b, const Shape& result, bool filter_is_constant) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.type(), result));
  if (out->num_elements() == 0) return absl::OkStatus();
  if (a.num_elements() == 0 || b.num_elements() == 0) {
    std::memset(out->mutable_raw_data(), 0, out->bytes());
    return absl::OkStatus();
  }
  switch (a.type()) {
    case ElementType::kFloat:
      return RunFloat(ctx, shape, a, b, out, filter_is_constant);
    case ElementType::kDouble:
      RunDirect<double>(ctx, shape, a, b, out);
      return absl::OkStatus();
    case ElementType::kInt32:
      RunDirect<int32_t>(ctx, shape, a, b, out);
      return absl::OkStatus();
    default: {
      TROUPE_ASSIGN_OR_RETURN(const Tensor wide_a, Widened(ctx, a));
      TROUPE_ASSIGN_OR_RETURN(const Tensor wide_b, Widened(ctx, b));
      TROUPE_ASSIGN_OR_RETURN(Tensor wide_out, ctx.AllocateTemp(ElementType::kFloat, result));
      TROUPE_RETURN_IF_ERROR(RunFloat(ctx, shape, wide_a, wide_b, &wide_out, false));
      NarrowTo(ctx, wide_out, out);
      return absl::OkStatus();
    }
  }
}

absl::Status ConvEngine::RunFloat(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                                  const Tensor& b, Tensor* out, bool filter_is_constant) {
  const Tensor& filter_tensor = op_ == ConvOp::kForward ? b : a;
  const ConvFilter filter{filter_tensor.unchecked_data<float>(),
                          filter_is_constant ? &filter_tensor : nullptr};
  const float* x = a.unchecked_data<float>();
  const float* y = b.unchecked_data<float>();
  float* z = out->mutable_data<float>();
  const bool narrow = NarrowConvPays(op_, shape);
  switch (op_) {
    case ConvOp::kForward:
      return narrow ? NarrowConvForward(ctx, shape, x, filter, &narrow_filter_, z)
                    : onednn_.Forward(ctx, shape, x, filter, z);
    case ConvOp::kBackwardInput:
      return narrow ? NarrowConvBackwardInput(ctx, shape, x, y, z)
                    : onednn_.BackwardInput(ctx, shape, filter, y, z);
    case ConvOp::kBackwardFilter:
      return narrow ? NarrowConvBackwardFilter(ctx, shape, x, y, z)
                    : onednn_.BackwardFilter(ctx, shape, x, y, z);
  }
  return absl::OkStatus();
}

template <typename T>
void ConvEngine::RunDirect(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                           const Tensor& b, Tensor* out) {
  const T* x = a.unchecked_data<T>();
  const T* y = b.unchecked_data<T>();
  T* z = out->mutable_data<T>();
  switch (op_) {
    case ConvOp::kForward:
      return DirectConvForward(ctx, shape, x, y, z);
    case ConvOp::kBackwardInput:
      return DirectConvBackwardInput(ctx, shape, x, y, z);
    case ConvOp::kBackwardFilter:
      return DirectConvBackwardFilter(ctx, shape, x, y, z);
  }
}

}  // namespace troupe
