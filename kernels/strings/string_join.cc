// StringJoin: strings joined element by element.
#include <string>

#include "devices/status_macros.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

absl::Status StringJoin(KernelContext& ctx, const std::string& separator) {
  const Tensor* wide = nullptr;  ///< The first input that is no scalar.
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Tensor& input = ctx.input(i);
    if (input.rank() == 0) continue;
    if (wide == nullptr) wide = &input;
    if (input.shape() != wide->shape()) {
      return InvalidArgument("strings of the shapes ", wide->shape().ToString(), " and ",
                             input.shape().ToString(), " (input ", i,
                             ") cannot be joined: inputs that are no scalars have one shape");
    }
  }
  const Shape shape = wide == nullptr ? Shape() : wide->shape();
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, ElementType::kString, shape));
  const auto out = output->mutable_values<std::string>();
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Tensor& input = ctx.input(i);
    const std::string* in = input.unchecked_data<std::string>();
    const size_t step = input.rank() == 0 ? 0 : 1;
    for (size_t k = 0; k < out.size(); ++k) {
      if (i > 0) out[k] += separator;
      out[k] += in[k * step];
    }
  }
  return absl::OkStatus();
}

REGISTER_KERNEL(KernelSpec("StringJoin"), (MakeAttrKernel<StringJoin, "separator">));

}  // namespace
}  // namespace troupe
