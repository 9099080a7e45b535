// ConjugateTranspose, Diag, DiagPart, ParallelConcat, UnravelIndex.
#include <complex>
#include <utility>

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

absl::Status Diag(KernelContext& ctx) {
  const Tensor& diagonal = ctx.input(0);
  if (diagonal.rank() == 0) return InvalidArgument("the diagonal must have a dimension");
  DimVector dims(diagonal.shape().dims().begin(), diagonal.shape().dims().end());
  for (int d = 0; d < diagonal.rank(); ++d) dims.push_back(diagonal.dim(d));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, diagonal.type(), shape));
  const int64_t n = diagonal.num_elements();
  ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
  CopyRuns(ctx, out->type(), n, 1, out->mutable_raw_data(), n + 1, diagonal.raw_data(), 1);
  return absl::OkStatus();
}

absl::Status DiagPart(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const auto dims = input.shape().dims();
  const int half = input.rank() / 2;
  if (half == 0 || input.rank() % 2 != 0 || dims.subspan(0, half) != dims.subspan(half)) {
    return InvalidArgument("the input's shape must be the same one twice, got ",
                           input.shape().ToString());
  }
  const Shape shape(dims.subspan(0, half));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  const int64_t n = out->num_elements();
  CopyRuns(ctx, out->type(), n, 1, out->mutable_raw_data(), 1, input.raw_data(), n + 1);
  return absl::OkStatus();
}

absl::Status ParallelConcat(KernelContext& ctx, const PartialShape& wanted) {
  const Tensor& first = ctx.input(0);
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Shape& shape = ctx.input(i).shape();
    if (shape.rank() == 0 || shape.dim(0) != 1 || !(shape == first.shape())) {
      return InvalidArgument("the values must have one shape that begins with 1, got ",
                             first.shape().ToString(), " and ", shape.ToString());
    }
  }
  Shape shape = first.shape();
  shape.set_dim(0, ctx.num_inputs());
  if (!wanted.IsCompatibleWith(shape)) {
    return InvalidArgument("the values make up the shape ", shape.ToString(), ", not ",
                           wanted.ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, first.type(), shape));
  const int64_t length = first.num_elements();
  if (length == 0) return absl::OkStatus();
  ctx.ParallelFor(ctx.num_inputs(), KernelContext::GrainFor(0.5 * static_cast<double>(length)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      CopyElements(first.type(),
                                   ElementAt(first.type(), out->mutable_raw_data(), i * length),
                                   ctx.input(static_cast<int>(i)).raw_data(), length);
                    }
                  });
  return absl::OkStatus();
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
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = index[i];
    for (int64_t d = rank - 1; d >= 0; --d) {
      const int64_t at = rest % dims[d];
      rest /= dims[d];
      StoreIntegers(&at, 1, indices.type(), out->mutable_raw_data(), d * n + i);
    }
  }
  return absl::OkStatus();
}

std::vector<ElementType> DiagonalTypes() {
  std::vector<ElementType> types = FloatAndComplexTypes();
  types.insert(types.end(), {ElementType::kInt32, ElementType::kInt64});
  return types;
}

REGISTER_KERNEL(
    KernelSpec("ConjugateTranspose").Types("T", AllTypes()).Types("Tperm", IndexTypes()),
    MakeKernel<ConjugateTranspose>);
REGISTER_KERNEL(KernelSpec("Diag").Types("T", DiagonalTypes()), MakeKernel<Diag>);
REGISTER_KERNEL(KernelSpec("DiagPart").Types("T", DiagonalTypes()), MakeKernel<DiagPart>);
REGISTER_KERNEL(KernelSpec("ParallelConcat").Types("T", WithString(PlainTypes())),
                (MakeAttrKernel<ParallelConcat, "shape">));
REGISTER_KERNEL(KernelSpec("UnravelIndex").Types("Tidx", IndexTypes()), MakeKernel<UnravelIndex>);

}  // namespace
}  // namespace troupe
