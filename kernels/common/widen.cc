#include "kernels/common/widen.h"

#include "kernels/math/cast.h"

namespace troupe {
namespace {

void Convert(KernelContext& ctx, const Tensor& from, Tensor* to) {
  constexpr int64_t kGrain = 32768;
  const simd::UnaryFn convert = FindCast(from.type(), to->type());
  const char* in = static_cast<const char*>(from.raw_data());
  char* out = static_cast<char*>(to->mutable_raw_data());
  const int64_t in_size = ElementSize(from.type()), out_size = ElementSize(to->type());
  ctx.ParallelFor(from.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
    convert(in + begin * in_size, out + begin * out_size, end - begin);
  });
}

}  // namespace

absl::StatusOr<Tensor> Widened(KernelContext& ctx, const Tensor& tensor) {
  if (tensor.type() == ElementType::kFloat) return tensor;
  TROUPE_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(ElementType::kFloat, tensor.shape()));
  Convert(ctx, tensor, &wide);
  return wide;
}

void NarrowTo(KernelContext& ctx, const Tensor& wide, Tensor* to) { Convert(ctx, wide, to); }

}  // namespace troupe
