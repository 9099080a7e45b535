/// Which implementation computes a convolution.
#ifndef TROUPE_KERNELS_NN_CONV_ENGINE_H_
#define TROUPE_KERNELS_NN_CONV_ENGINE_H_

#include "absl/status/status.h"
#include "kernels/kernel.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {

/// One of the three directions of a convolution, channels last, for half, bfloat16, float, double
/// and int32. A kernel has one: it keeps what was made of a constant filter. Thread-safe.
class ConvEngine {
 public:
  explicit ConvEngine(ConvOp op) : op_(op) {}

  /// Makes output 0, of shape `result`, from two tensors: input and filter, or filter and gradient,
  /// or input and gradient. Sums without elements are 0. `filter_is_constant`: the filter is the
  /// same buffer in every step.
  absl::Status Run(KernelContext& ctx, const ConvShape& shape, const Tensor& a, const Tensor& b,
                   const Shape& result, bool filter_is_constant);

 private:
  // Half, bfloat16 and float.
  absl::Status RunOneDnn(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                         const Tensor& b, Tensor* out, bool filter_is_constant);
  absl::Status RunNarrow(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                         const Tensor& b, Tensor* out, bool filter_is_constant);
  template <typename T>
  void RunDirect(KernelContext& ctx, const ConvShape& shape, const Tensor& a, const Tensor& b,
                 Tensor* out);

  const ConvOp op_;
  OneDnnConv onednn_;
  PackedFilters<NarrowLayout> narrow_filter_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_CONV_ENGINE_H_
