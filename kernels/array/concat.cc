// Joining tensors: Concat, ConcatV2, Pack, ParallelConcat.
#include "absl/container/inlined_vector.h"
#include "kernels/array/layout_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {
namespace {

/// Joins inputs [first, first + n) into output 0. Each input is `rows` runs of its part of
/// `out_run` elements.
absl::Status Join(KernelContext& ctx, int first, int n, const Shape& shape, int64_t rows,
                  int64_t out_run) {
  const ElementType type = ctx.input(first).type();
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type, shape));
  if (rows == 0 || out_run == 0) return absl::OkStatus();
  absl::InlinedVector<Columns<const void>, 8> parts;
  int64_t begin = 0;
  for (int i = first; i < first + n; ++i) {
    const Tensor& input = ctx.input(i);
    const int64_t run = input.num_elements() / rows;
    if (run > 0) parts.push_back({input.raw_data(), begin, run});
    begin += run;
  }
  JoinColumns(ctx, type, rows, out_run, out->mutable_raw_data(), parts);
  return absl::OkStatus();
}

absl::Status Concatenate(KernelContext& ctx, int first, int n, const Tensor& axis_input,
                         const char* axis_name) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t dim, ReadOneInteger(axis_input, axis_name));
  const Shape& shape = ctx.input(first).shape();
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, shape.rank(), axis_name));
  int64_t size = shape.dim(axis);
  int filled = -1, num_filled = 0;
  for (int i = first; i < first + n; ++i) {
    const Shape& other = ctx.input(i).shape();
    if (other.num_elements() > 0) {
      filled = i;
      ++num_filled;
    }
    if (i == first) continue;
    bool fits = other.rank() == shape.rank();
    for (int d = 0; fits && d < shape.rank(); ++d) fits = d == axis || other.dim(d) == shape.dim(d);
    if (!fits) {
      return InvalidArgument("the inputs must have the same shape but for dimension ", axis,
                             ": input 0 has ", shape.ToString(), ", input ", i - first, " has ",
                             other.ToString());
    }
    size += other.dim(axis);
  }
  DimVector dims(shape.dims().begin(), shape.dims().end());
  dims[axis] = size;
  TROUPE_ASSIGN_OR_RETURN(const Shape out_shape, Shape::Create(dims));
  if (num_filled == 1) {
    // Everything else is empty.
    ctx.PassThrough(filled, 0);
    return absl::OkStatus();
  }
  int64_t rows = 1, run = 1;
  for (int d = 0; d < axis; ++d) rows *= dims[d];
  for (int d = axis; d < out_shape.rank(); ++d) run *= dims[d];
  return Join(ctx, first, n, out_shape, rows, run);
}

}  // namespace

absl::Status Concat(KernelContext& ctx) {
  return Concatenate(ctx, 1, ctx.num_inputs() - 1, ctx.input(0), "concat_dim");
}

absl::Status ConcatV2(KernelContext& ctx) {
  const int n = ctx.num_inputs() - 1;
  return Concatenate(ctx, 0, n, ctx.input(n), "axis");
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
  return Join(ctx, 0, ctx.num_inputs(), shape, 1, shape.num_elements());
}

absl::Status Pack(KernelContext& ctx, int64_t dim) {
  const int n = ctx.num_inputs();
  const Shape& shape = ctx.input(0).shape();
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, shape.rank() + 1, "axis"));
  for (int i = 1; i < n; ++i) {
    if (!(ctx.input(i).shape() == shape)) {
      return InvalidArgument("the inputs must have the same shape: input 0 has ", shape.ToString(),
                             ", input ", i, " has ", ctx.input(i).shape().ToString());
    }
  }
  DimVector dims(shape.dims().begin(), shape.dims().end());
  dims.insert(dims.begin() + axis, n);
  TROUPE_ASSIGN_OR_RETURN(Shape out_shape, Shape::Create(dims));
  if (n == 1) {
    ctx.PassThrough(0, 0);
    ctx.output(0).set_shape(std::move(out_shape));
    return absl::OkStatus();
  }
  int64_t rows = 1, run = 1;
  for (int d = 0; d < axis; ++d) rows *= dims[d];
  for (int d = axis; d < out_shape.rank(); ++d) run *= dims[d];
  return Join(ctx, 0, n, out_shape, rows, run);
}

}  // namespace troupe::layout
