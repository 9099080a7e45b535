// ConjugateTranspose, UnravelIndex.
#include <complex>
#include <utility>

#include "absl/container/inlined_vector.h"

#include "kernels/array/index_view.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/registration.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status ConjugateTranspose(KernelContext& ctx) {
  TROUPE_RETURN_IF_ERROR(layout::Transpose(ctx));
  Tensor& y = ctx.output(0);
  if (!IsComplex(y.type())) return absl::OkStatus();
  // A transposition that moves nothing passes its input on.
  if (!y.unique()) {
    TROUPE_ASSIGN_OR_RETURN(Tensor copy, y.Clone(ctx.step().allocator));
    y = std::move(copy);
  }
  return SwitchType<complex64, complex128>(y.type(), [&]<typename T>() {
    T* values = y.mutable_data<T>();
    ctx.ParallelFor(y.num_elements(), KernelContext::GrainFor(1.0),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) values[i] = std::conj(values[i]);
                    });
    return absl::OkStatus();
  });
}

absl::Status UnravelIndex(KernelContext& ctx) {
  const Tensor &indices = ctx.input(0), &dims_input = ctx.input(1);
  if (indices.rank() > 1) {
    return InvalidArgument("indices must be a scalar or a vector, got shape ",
                           indices.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector dims, ReadIntegerVector(dims_input, "dims"));
  int64_t limit = 1;
  for (const int64_t size : dims) {
    if (size <= 0) return InvalidArgument("dims must be positive, got ", size);
    limit = MultiplyWithoutOverflow(limit, size);
    if (limit < 0) return InvalidArgument("a tensor with these dims has too many elements");
  }
  TROUPE_ASSIGN_OR_RETURN(const IndexView index, IndexView::Of(indices, "indices"));
  const int64_t n = indices.num_elements(), rank = dims_input.dim(0);
  for (int64_t i = 0; i < n; ++i) {
    if (index[i] < 0 || index[i] >= limit) {
      return IndexOutOfRange(indices, "indices", i, index[i], limit);
    }
  }
  TROUPE_ASSIGN_OR_RETURN(
      Tensor * out, ctx.AllocateOutput(0, indices.type(),
                                       indices.rank() == 0 ? Shape({rank}) : Shape({rank, n})));
  return SwitchType<int32_t, int64_t>(indices.type(), [&]<typename T>() {
    const T* from = indices.unchecked_data<T>();
    T* to = out->mutable_data<T>();
    const absl::InlinedVector<T, 8> sizes(dims.begin(), dims.end());
    for (int64_t i = 0; i < n; ++i) {
      T rest = from[i];
      for (int64_t d = rank - 1; d >= 0; --d) {
        to[d * n + i] = rest % sizes[d];
        rest /= sizes[d];
      }
    }
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(
    KernelSpec("ConjugateTranspose").Types("T", AllTypes()).Types("Tperm", IndexTypes()),
    MakeKernel<ConjugateTranspose>);
REGISTER_KERNEL(KernelSpec("UnravelIndex").Types("Tidx", IndexTypes()), MakeKernel<UnravelIndex>);

}  // namespace
}  // namespace troupe
