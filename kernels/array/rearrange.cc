// Transpose, ReverseV2, Tile, BroadcastTo: every output element is a copy of one input element.
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {

absl::Status Transpose(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int rank = input.rank();
  TROUPE_ASSIGN_OR_RETURN(const DimVector perm, ReadIntegerVector(ctx.input(1), "perm"));
  if (static_cast<int>(perm.size()) != rank) {
    return InvalidArgument("perm must have one element for each dimension of the input of shape ",
                           input.shape().ToString(), ", got ", perm.size());
  }
  const DimVector in_strides = RowMajorStrides(input.shape().dims());
  DimVector dims(rank), strides(rank);
  absl::InlinedVector<bool, 8> seen(rank, false);
  // Dimensions of one element may go anywhere.
  bool moved = false;
  int64_t last = -1;
  for (int i = 0; i < rank; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const int from, ResolveAxis(perm[i], rank, "perm"));
    if (seen[from]) return InvalidArgument("perm names dimension ", from, " twice");
    seen[from] = true;
    dims[i] = input.dim(from);
    strides[i] = in_strides[from];
    if (dims[i] != 1) {
      moved = moved || from < last;
      last = from;
    }
  }
  troupe::Shape shape{absl::Span<const int64_t>(dims)};
  if (!moved || input.num_elements() == 0) {
    ctx.PassThrough(0, 0);
    ctx.output(0).set_shape(std::move(shape));
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  StridedCopy(ctx, input.type(), dims, out->mutable_raw_data(), RowMajorStrides(dims),
              input.raw_data(), strides);
  return absl::OkStatus();
}

absl::Status ReverseV2(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int rank = input.rank();
  TROUPE_ASSIGN_OR_RETURN(const DimVector axes, ReadIntegerVector(ctx.input(1), "axis"));
  if (rank == 0) {  // Whatever the axes are, as in TensorFlow.
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  DimVector strides = RowMajorStrides(input.shape().dims());
  absl::InlinedVector<bool, 8> reversed(rank, false);
  int64_t offset = 0;
  bool moved = false;
  for (const int64_t axis : axes) {
    TROUPE_ASSIGN_OR_RETURN(const int d, ResolveAxis(axis, rank, "axis"));
    if (reversed[d]) return InvalidArgument("axis ", d, " is given twice");
    reversed[d] = true;
    moved = moved || input.dim(d) > 1;
  }
  if (!moved || input.num_elements() == 0) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  const DimVector out_strides = strides;
  for (int d = 0; d < rank; ++d) {
    if (!reversed[d]) continue;
    offset += (input.dim(d) - 1) * strides[d];
    strides[d] = -strides[d];
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), input.shape()));
  StridedCopy(ctx, input.type(), input.shape().dims(), out->mutable_raw_data(), out_strides,
              ElementAt(input.type(), input.raw_data(), offset), strides);
  return absl::OkStatus();
}

absl::Status Tile(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int rank = input.rank();
  TROUPE_ASSIGN_OR_RETURN(const DimVector times, ReadIntegerVector(ctx.input(1), "multiples"));
  if (static_cast<int>(times.size()) != rank) {
    return InvalidArgument("multiples must have one element for each dimension of the input of ",
                           "shape ", input.shape().ToString(), ", got ", times.size());
  }
  DimVector out_dims(rank);
  bool once = true;
  for (int d = 0; d < rank; ++d) {
    if (times[d] < 0) {
      return InvalidArgument("multiples[", d, "] must be at least 0, got ", times[d]);
    }
    out_dims[d] = MultiplyWithoutOverflow(input.dim(d), times[d]);
    if (out_dims[d] < 0) return InvalidArgument("multiples[", d, "] = ", times[d], " is too large");
    once = once && times[d] == 1;
  }
  if (once) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const troupe::Shape shape, troupe::Shape::Create(out_dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  // Every dimension becomes two: the repetitions, for which the source stands still, and the
  // elements.
  const DimVector in_strides = RowMajorStrides(input.shape().dims());
  const DimVector out_strides = RowMajorStrides(out_dims);
  DimVector dims, dst, src;
  for (int d = 0; d < rank; ++d) {
    dims.push_back(times[d]);
    dst.push_back(out_strides[d] * input.dim(d));
    src.push_back(0);
    dims.push_back(input.dim(d));
    dst.push_back(out_strides[d]);
    src.push_back(in_strides[d]);
  }
  StridedCopy(ctx, input.type(), dims, out->mutable_raw_data(), dst, input.raw_data(), src);
  return absl::OkStatus();
}

absl::Status BroadcastTo(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const troupe::Shape shape, ReadShapeVector(ctx.input(1), "shape"));
  const int skipped = shape.rank() - input.rank();
  if (skipped < 0) {
    return InvalidArgument("the input's rank, ", input.rank(), ", must not be larger than that ",
                           "of the shape asked for, ", shape.rank());
  }
  const DimVector in_strides = RowMajorStrides(input.shape().dims());
  DimVector strides(shape.rank(), 0);
  for (int d = 0; d < input.rank(); ++d) {
    if (input.dim(d) == shape.dim(d + skipped)) {
      strides[d + skipped] = in_strides[d];
    } else if (input.dim(d) != 1) {
      return InvalidArgument("shape ", input.shape().ToString(), " cannot be broadcast to ",
                             shape.ToString());
    }
  }
  if (shape.num_elements() == input.num_elements()) {
    ctx.PassThrough(0, 0);
    ctx.output(0).set_shape(shape);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  StridedCopy(ctx, input.type(), shape.dims(), out->mutable_raw_data(),
              RowMajorStrides(shape.dims()), input.raw_data(), strides);
  return absl::OkStatus();
}

}  // namespace troupe::layout
