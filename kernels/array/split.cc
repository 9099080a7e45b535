// Taking tensors apart: Split, SplitV, Unpack.
#include "absl/container/inlined_vector.h"
#include "kernels/array/layout_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/array/shared_slice.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {
namespace {

/// Cuts `input` along `axis` into outputs of the given sizes, which sum up to its size there. With
/// `drop` the axis, then of size 1 in every output, is left out of the outputs' shapes.
absl::Status Cut(KernelContext& ctx, const Tensor& input, int axis, absl::Span<const int64_t> sizes,
                 bool drop) {
  const Shape& shape = input.shape();
  int64_t rows = 1, run = 1;
  for (int d = 0; d < axis; ++d) rows *= shape.dim(d);
  for (int d = axis + 1; d < shape.rank(); ++d) run *= shape.dim(d);
  const int64_t in_run = run * shape.dim(axis);
  absl::InlinedVector<Columns<void>, 8> parts;
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Shape out_shape = shape;
    if (drop) {
      out_shape.RemoveDim(axis);
    } else {
      out_shape.set_dim(axis, sizes[i]);
    }
    if (axis == 0 && WorthSharing(input, sizes[i] * run)) {
      Tensor slice = input.Slice(begin, begin + sizes[i]);
      slice.set_shape(std::move(out_shape));
      ctx.set_output(static_cast<int>(i), std::move(slice));
    } else {
      TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                              ctx.AllocateOutput(static_cast<int>(i), input.type(), out_shape));
      if (out->num_elements() > 0) {
        parts.push_back({out->mutable_raw_data(), begin * run, sizes[i] * run});
      }
    }
    begin += sizes[i];
  }
  CutColumns(ctx, input.type(), rows, in_run, input.raw_data(), parts);
  return absl::OkStatus();
}

}  // namespace

absl::Status Split(KernelContext& ctx) {
  const Tensor& input = ctx.input(1);
  const int n = ctx.num_outputs();
  TROUPE_ASSIGN_OR_RETURN(const int64_t dim, ReadIntegerScalar(ctx.input(0), "split_dim"));
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, input.rank(), "split_dim"));
  if (n == 1) {
    ctx.PassThrough(1, 0);
    return absl::OkStatus();
  }
  if (input.dim(axis) % n != 0) {
    return InvalidArgument("dimension ", axis, " of the input of shape ", input.shape().ToString(),
                           " cannot be split into ", n, " equal pieces");
  }
  return Cut(ctx, input, axis, DimVector(n, input.dim(axis) / n), false);
}

absl::Status SplitV(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int n = ctx.num_outputs();
  TROUPE_ASSIGN_OR_RETURN(const int64_t dim, ReadOneInteger(ctx.input(2), "split_dim"));
  TROUPE_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegerVector(ctx.input(1), "size_splits"));
  if (static_cast<int>(sizes.size()) != n) {
    return InvalidArgument("size_splits must hold one size for each of ", n, " outputs, got ",
                           sizes.size());
  }
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, input.rank(), "split_dim"));
  const int64_t size = input.dim(axis);
  if (n == 1) {
    if (sizes[0] != size) {
      return InvalidArgument("a single output must have the size of the input, ", size, ", got ",
                             sizes[0]);
    }
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  int inferred = -1;
  int64_t sum = 0;
  for (int i = 0; i < n; ++i) {
    if (sizes[i] == -1) {
      if (inferred >= 0) return InvalidArgument("only one of size_splits may be -1");
      inferred = i;
    } else if (sizes[i] < 0 || sizes[i] > size) {
      return InvalidArgument("size_splits[", i, "] must be in [0, ", size, "], got ", sizes[i]);
    } else {
      sum += sizes[i];
    }
  }
  if (inferred >= 0 ? sum > size : sum != size) {
    return InvalidArgument("size_splits sum up to ", sum, ", dimension ", axis,
                           " of the input of shape ", input.shape().ToString(), " has ", size);
  }
  if (inferred >= 0) sizes[inferred] = size - sum;
  return Cut(ctx, input, axis, sizes, false);
}

absl::Status Unpack(KernelContext& ctx, int64_t dim) {
  const Tensor& input = ctx.input(0);
  const int n = ctx.num_outputs();
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, input.rank(), "axis"));
  if (input.dim(axis) != n) {
    return InvalidArgument("dimension ", axis, " of the input of shape ", input.shape().ToString(),
                           " has ", input.dim(axis), " elements, the node has ", n, " outputs");
  }
  return Cut(ctx, input, axis, DimVector(n, 1), true);
}

}  // namespace troupe::layout
