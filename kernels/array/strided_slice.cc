// StridedSlice, its gradient, TensorStridedSliceUpdate: NumPy's basic indexing.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "kernels/array/layout_ops.h"
#include "kernels/array/shared_slice.h"
#include "kernels/array/strided_slice.h"
#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"

namespace troupe::layout {
namespace {

using Masks = StridedSliceMasks;

bool Bit(int64_t mask, int64_t i) { return i < 63 && ((mask >> i) & 1) != 0; }

/// What a slice takes of every dimension of the sliced tensor.
struct DenseSlice {
  DimVector begin, stride, size;
  DimVector result;  ///< The shape with new axes put in and shrunk ones left out.
  DimVector place;   ///< Where each dimension is in `result`; -1 if it is left out.
  bool whole = true;
};

/// One dimension of size `dim`: where the slice begins and how many elements it takes.
void ResolveRange(int64_t dim, int64_t begin, bool open_begin, int64_t end, bool open_end,
                  int64_t stride, int64_t* first, int64_t* count) {
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;
  auto canonical = [&](int64_t x) { return std::clamp(x < 0 ? dim + x : x, low, high); };
  *first = open_begin ? (stride > 0 ? low : high) : canonical(begin);
  const int64_t last = open_end ? (stride > 0 ? high : low) : canonical(end);
  const int64_t interval = last - *first;
  *count = interval == 0 || (interval < 0) != (stride < 0)
               ? 0
               : interval / stride + (interval % stride != 0 ? 1 : 0);
}

absl::StatusOr<DenseSlice> Resolve(absl::Span<const int64_t> shape, const Tensor& begin_input,
                                   const Tensor& end_input, const Tensor& strides_input,
                                   const Masks& masks) {
  TROUPE_ASSIGN_OR_RETURN(const DimVector begin, ReadIntegerVector(begin_input, "begin"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector end, ReadIntegerVector(end_input, "end"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector strides, ReadIntegerVector(strides_input, "strides"));
  const int64_t n = static_cast<int64_t>(strides.size());
  if (begin.size() != strides.size() || end.size() != strides.size()) {
    return InvalidArgument("begin, end and strides must have the same size, got ", begin.size(),
                           ", ", end.size(), " and ", n);
  }
  const int64_t rank = static_cast<int64_t>(shape.size());
  // Entries that take a dimension of the input; the ellipsis takes all that they leave.
  int64_t taken = 0, ellipsis = n;
  for (int64_t i = 0; i < n; ++i) {
    if (Bit(masks.ellipsis, i)) {
      if (ellipsis < n) return InvalidArgument("a slice can have only one ellipsis");
      ellipsis = i;
    } else if (!Bit(masks.new_axis, i)) {
      ++taken;
    }
  }
  if (taken > rank) {
    return InvalidArgument("the slice takes ", taken, " dimensions, the input has only ", rank);
  }
  DenseSlice slice;
  int64_t d = 0;
  auto take_all = [&] {
    slice.begin.push_back(0);
    slice.stride.push_back(1);
    slice.size.push_back(shape[d]);
    slice.place.push_back(static_cast<int64_t>(slice.result.size()));
    slice.result.push_back(shape[d]);
    ++d;
  };
  for (int64_t i = 0; i <= n; ++i) {
    if (i == ellipsis) {
      for (int64_t left = rank - taken; left > 0; --left) take_all();
      continue;
    }
    if (i == n) break;
    if (Bit(masks.new_axis, i)) {
      slice.result.push_back(1);
      continue;
    }
    const int64_t dim = shape[d], stride = strides[i];
    if (stride == 0) return InvalidArgument("strides[", i, "] must not be zero");
    int64_t first, count;
    slice.place.push_back(-1);
    if (Bit(masks.shrink_axis, i)) {
      if (stride < 0) {
        return InvalidArgument("strides[", i, "] must be positive where a single index is taken, ",
                               "got ", stride);
      }
      first = begin[i] < 0 ? dim + begin[i] : begin[i];
      count = 1;
      if (first < 0 || first >= dim) {
        return InvalidArgument("slice index ", begin[i], " of dimension ", d,
                               " is out of bounds for a size of ", dim);
      }
    } else {
      ResolveRange(dim, begin[i], Bit(masks.begin, i), end[i], Bit(masks.end, i), stride, &first,
                   &count);
      slice.place.back() = static_cast<int64_t>(slice.result.size());
      slice.result.push_back(count);
    }
    slice.whole = slice.whole && stride == 1 && count == dim;
    slice.begin.push_back(first);
    slice.stride.push_back(stride);
    slice.size.push_back(count);
    ++d;
  }
  return slice;
}

/// Where the slice lies in a row-major tensor of shape `dims`: the element it begins with, its
/// strides.
int64_t Locate(const DenseSlice& slice, absl::Span<const int64_t> dims, DimVector* strides) {
  *strides = RowMajorStrides(dims);
  int64_t offset = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    offset += slice.begin[d] * (*strides)[d];
    // With one element at most there is no next one, whatever a huge stride says.
    (*strides)[d] = slice.size[d] > 1 ? (*strides)[d] * slice.stride[d] : 0;
  }
  return offset;
}

template <absl::Status (*kCompute)(KernelContext& ctx, const Masks& masks)>
class MaskedKernel final : public Kernel {
 public:
  MaskedKernel(KernelConstruction& c, absl::Status*) : masks_(ReadMasks(c)) {}
  absl::Status Compute(KernelContext& ctx) override { return kCompute(ctx, masks_); }

 private:
  Masks masks_;
};

absl::Status TakeSlice(KernelContext& ctx, const Masks& masks) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const DenseSlice slice, Resolve(input.shape().dims(), ctx.input(1),
                                                          ctx.input(2), ctx.input(3), masks));
  TROUPE_ASSIGN_OR_RETURN(Shape shape, Shape::Create(slice.result));
  if (slice.whole) {
    ctx.PassThrough(0, 0);
    ctx.output(0).set_shape(std::move(shape));
    return absl::OkStatus();
  }
  bool rows = input.rank() > 0 && slice.stride[0] == 1;
  for (int d = 1; d < input.rank() && rows; ++d) {
    rows = slice.size[d] == input.dim(d) && slice.stride[d] == 1;
  }
  if (rows && shape.num_elements() > 0 && WorthSharing(input, shape.num_elements())) {
    Tensor part = input.Slice(slice.begin[0], slice.begin[0] + slice.size[0]);
    part.set_shape(std::move(shape));
    ctx.set_output(0, std::move(part));
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  DimVector strides;
  const int64_t offset = Locate(slice, input.shape().dims(), &strides);
  StridedCopy(ctx, input.type(), slice.size, out->mutable_raw_data(), RowMajorStrides(slice.size),
              ElementAt(input.type(), input.raw_data(), offset), strides);
  return absl::OkStatus();
}

absl::Status SpreadSlice(KernelContext& ctx, const Masks& masks) {
  TROUPE_ASSIGN_OR_RETURN(Shape shape, ReadShapeVector(ctx.input(0), "shape"));
  const Tensor& dy = ctx.input(4);
  TROUPE_ASSIGN_OR_RETURN(const DenseSlice slice,
                          Resolve(shape.dims(), ctx.input(1), ctx.input(2), ctx.input(3), masks));
  if (!std::equal(slice.result.begin(), slice.result.end(), dy.shape().dims().begin(),
                  dy.shape().dims().end())) {
    return InvalidArgument("dy must have the shape of the slice, [",
                           absl::StrJoin(slice.result, ","), "], got ", dy.shape().ToString());
  }
  if (slice.whole) {
    ctx.PassThrough(4, 0);
    ctx.output(0).set_shape(std::move(shape));
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, dy.type(), shape));
  ZeroElements(ctx, dy.type(), out->mutable_raw_data(), out->num_elements());
  if (dy.num_elements() == 0) return absl::OkStatus();
  DimVector strides;
  const int64_t offset = Locate(slice, shape.dims(), &strides);
  StridedCopy(ctx, dy.type(), slice.size, ElementAt(dy.type(), out->mutable_raw_data(), offset),
              strides, dy.raw_data(), RowMajorStrides(slice.size));
  return absl::OkStatus();
}

/// For each dimension of the sliced tensor, the value's stride along it when the value is
/// broadcast to the shape of the slice.
absl::StatusOr<DimVector> BroadcastStrides(const Tensor& value, const DenseSlice& slice) {
  const int rank = static_cast<int>(slice.result.size());
  const DimVector strides = RowMajorStrides(value.shape().dims());
  DimVector by_result(rank, 0);
  bool fits = true;
  for (int v = 0; v < value.rank(); ++v) {
    const int at = v + rank - value.rank();
    if (at < 0) {
      fits = fits && value.dim(v) == 1;
    } else if (value.dim(v) == slice.result[at]) {
      by_result[at] = strides[v];
    } else {
      fits = fits && value.dim(v) == 1;
    }
  }
  // What would be put into an empty slice does not matter.
  if (!fits && std::count(slice.size.begin(), slice.size.end(), 0) == 0) {
    return InvalidArgument("the value of shape ", value.shape().ToString(),
                           " cannot be broadcast to the slice, [", absl::StrJoin(slice.result, ","),
                           "]");
  }
  DimVector by_dim;
  for (const int64_t place : slice.place) by_dim.push_back(place < 0 ? 0 : by_result[place]);
  return by_dim;
}

absl::Status UpdateSlice(KernelContext& ctx, const Masks& masks) {
  return AssignSlice(ctx, masks, ctx.input(0).shape(), [&ctx]() -> absl::StatusOr<Tensor*> {
    TROUPE_RETURN_IF_ERROR(ForwardOrCopy(ctx));
    return &ctx.output(0);
  });
}

}  // namespace

StridedSliceMasks ReadMasks(KernelConstruction& c) {
  return {c.Attr<int64_t>("begin_mask"), c.Attr<int64_t>("end_mask"),
          c.Attr<int64_t>("ellipsis_mask"), c.Attr<int64_t>("new_axis_mask"),
          c.Attr<int64_t>("shrink_axis_mask")};
}

absl::Status AssignSlice(KernelContext& ctx, const StridedSliceMasks& masks, const Shape shape,
                         absl::FunctionRef<absl::StatusOr<Tensor*>()> sliced) {
  const Tensor& value = ctx.input(4);
  TROUPE_ASSIGN_OR_RETURN(const DenseSlice slice,
                          Resolve(shape.dims(), ctx.input(1), ctx.input(2), ctx.input(3), masks));
  TROUPE_ASSIGN_OR_RETURN(const DimVector value_strides, BroadcastStrides(value, slice));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, sliced());
  if (std::count(slice.size.begin(), slice.size.end(), 0) > 0) return absl::OkStatus();
  DimVector strides;
  const int64_t offset = Locate(slice, shape.dims(), &strides);
  StridedCopy(ctx, out->type(), slice.size, ElementAt(out->type(), out->mutable_raw_data(), offset),
              strides, value.raw_data(), value_strides);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> StridedSlice(KernelConstruction& construction) {
  return MakeKernel<MaskedKernel<TakeSlice>>(construction);
}
absl::StatusOr<std::unique_ptr<Kernel>> StridedSliceGrad(KernelConstruction& construction) {
  return MakeKernel<MaskedKernel<SpreadSlice>>(construction);
}
absl::StatusOr<std::unique_ptr<Kernel>> TensorStridedSliceUpdate(KernelConstruction& construction) {
  return MakeKernel<MaskedKernel<UpdateSlice>>(construction);
}

}  // namespace troupe::layout
