/// What kernels of MaxPoolWithArgmax and its gradient share.
#ifndef TROUPE_KERNELS_NN_POOL_ARGMAX_H_
#define TROUPE_KERNELS_NN_POOL_ARGMAX_H_

#include "kernels/kernel.h"
#include "kernels/nn/pool_shape.h"

namespace troupe {

class ArgmaxPoolKernel : public Kernel {
 public:
  ArgmaxPoolKernel(KernelConstruction& construction, absl::Status* status)
      : include_batch_(construction.Attr<bool>("include_batch_in_index")),
        attributes_(construction.num_inputs()) {
    *status = attributes_.Read(construction, /*takes_nchw=*/false);
  }

 protected:
  /// The windows over input 0. InvalidArgument or Unimplemented.
  absl::StatusOr<PoolShape> Resolve(const KernelContext& ctx) const {
    const Shape& input = ctx.input(0).shape();
    if (input.num_elements() == 0) {
      return InvalidArgument("the input must have elements, got shape ", input.ToString());
    }
    return attributes_.Resolve(ctx, input, /*allows_depth=*/false);
  }
  /// The same for the gradient, whose inputs are the input, the output's gradient and argmax.
  absl::StatusOr<PoolShape> ResolveGradient(const KernelContext& ctx) const {
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", ctx.input(1).shape(), s.output_shape()));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("argmax", ctx.input(2).shape(), s.output_shape()));
    return s;
  }

  const bool include_batch_;

 private:
  PoolAttributes attributes_;
};

/// InvalidArgument: argmax has `value` at `i`, which is not one of the elements from `first` on, of
/// which there are `size`.
inline absl::Status BadArgmax(int64_t i, int64_t value, int64_t first, int64_t size) {
  return InvalidArgument("argmax has ", value, " at ", i, ", which is not in [", first, ", ",
                         first + size, ")");
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_POOL_ARGMAX_H_
