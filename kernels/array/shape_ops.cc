// Ops that tell a tensor's shape or give it another one; no element is touched.
#include "kernels/common/integer_input.h"
#include "kernels/common/quantized_types.h"
#include "kernels/common/registration.h"
#include "kernels/quantization/quantized_range.h"

namespace troupe {
namespace {

absl::Status ShapeN(KernelContext& ctx, ElementType type) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, i, type, ctx.input(i).shape().dims()));
  }
  return absl::OkStatus();
}

absl::Status Size(KernelContext& ctx, ElementType type) {
  TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, 0, type, {ctx.input(0).num_elements()}));
  ctx.output(0).set_shape(Shape());
  return absl::OkStatus();
}

absl::Status Rank(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * rank, ctx.AllocateHostOutput(0, ElementType::kInt32, Shape()));
  *rank->mutable_data<int32_t>() = ctx.input(0).rank();
  return absl::OkStatus();
}

/// Output 0 is input 0 under another shape.
absl::Status PassReshaped(KernelContext& ctx, absl::Span<const int64_t> dims) {
  TROUPE_ASSIGN_OR_RETURN(Shape shape, Shape::Create(dims));
  if (shape.num_elements() != ctx.input(0).num_elements()) {
    return InvalidArgument("a tensor of shape ", ctx.input(0).shape().ToString(), " with ",
                           ctx.input(0).num_elements(), " elements cannot become one of shape ",
                           shape.ToString(), " with ", shape.num_elements());
  }
  ctx.PassThrough(0, 0);
  ctx.output(0).set_shape(std::move(shape));
  return absl::OkStatus();
}

absl::Status Reshape(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  if (ctx.input(1).rank() > 1) {
    return InvalidArgument("the shape asked for must be a vector, got a tensor of shape ",
                           ctx.input(1).shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(DimVector dims, ReadIntegers(ctx.input(1), "shape"));
  int unknown = -1;
  bool has_zero = false;
  int64_t product = 1;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    if (dims[i] == -1) {
      if (unknown >= 0) {
        return InvalidArgument("only one size may be -1, sizes ", unknown, " and ", i, " are");
      }
      unknown = i;
    } else if (dims[i] < 0) {
      return InvalidArgument("size ", i, " must be at least 0, or -1 to be inferred, got ",
                             dims[i]);
    } else if (dims[i] == 0) {
      has_zero = true;
    } else {
      product = MultiplyWithoutOverflow(product, dims[i]);
      if (product < 0) return InvalidArgument("the shape asked for has too many elements");
    }
  }
  if (unknown >= 0) {
    // With a zero among the sizes, the others decide from the input's non-zero dimensions.
    int64_t elements = 1;
    bool skipped_zero = false;
    for (const int64_t dim : input.shape().dims()) {
      if (dim > 0 || !has_zero) {
        elements *= dim;
      } else {
        skipped_zero = true;
      }
    }
    dims[unknown] = elements / product;
    if (!skipped_zero && dims[unknown] * product != elements) {
      return InvalidArgument("a tensor with ", elements, " elements cannot be reshaped: the ",
                             "sizes asked for need a multiple of ", product);
    }
  }
  return PassReshaped(ctx, dims);
}

absl::Status QuantizedReshape(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 2, /*any_rank=*/true));
  TROUPE_RETURN_IF_ERROR(Reshape(ctx));
  return SetRange(ctx, 1, range);
}

absl::Status ExpandDims(KernelContext& ctx) {
  const Shape& shape = ctx.input(0).shape();
  if (ctx.input(1).num_elements() != 1) {
    return InvalidArgument("dim must be a single value, got shape ",
                           ctx.input(1).shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector axis, ReadIntegers(ctx.input(1), "dim"));
  TROUPE_ASSIGN_OR_RETURN(const int at, ResolveAxis(axis[0], shape.rank() + 1, "dim"));
  if (shape.rank() == Shape::kMaxRank) return InvalidArgument("the rank would be too large");
  DimVector dims(shape.dims().begin(), shape.dims().end());
  dims.insert(dims.begin() + at, 1);
  return PassReshaped(ctx, dims);
}

absl::Status Squeeze(KernelContext& ctx, const std::vector<int64_t>& axes) {
  const Shape& shape = ctx.input(0).shape();
  absl::InlinedVector<bool, 8> squeezed(shape.rank(), axes.empty());
  for (const int64_t axis : axes) {
    TROUPE_ASSIGN_OR_RETURN(const int at, ResolveAxis(axis, shape.rank(), "squeeze_dims"));
    if (shape.dim(at) != 1) {
      return InvalidArgument("can not squeeze dimension ", at, " of shape ", shape.ToString(),
                             ": its size is not 1");
    }
    squeezed[at] = true;
  }
  DimVector dims;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!squeezed[i] || shape.dim(i) != 1) dims.push_back(shape.dim(i));
  }
  return PassReshaped(ctx, dims);
}

KernelSpec TellsShape(const char* op) { return Cheap(op).Device("DEFAULT").HostMemory("output"); }
KernelSpec Reshapes(const char* op, const char* host_argument) {
  return Cheap(op).Device("DEFAULT").HostMemory(host_argument);
}

REGISTER_KERNELS(TellsShape("Shape").Types("out_type", IndexTypes()),
                 (MakeAttrKernel<ShapeN, "out_type">), "ShapeN");
REGISTER_KERNEL(TellsShape("Size").Types("out_type", IndexTypes()),
                (MakeAttrKernel<Size, "out_type">));
REGISTER_KERNEL(TellsShape("Rank"), MakeKernel<Rank>);
REGISTER_KERNEL(Reshapes("Reshape", "shape").Types("Tshape", IndexTypes()), MakeKernel<Reshape>);
REGISTER_KERNEL(
    Cheap("QuantizedReshape").Types("T", QuantizedTypes()).Types("Tshape", IndexTypes()),
    MakeKernel<QuantizedReshape>);
REGISTER_KERNEL(Reshapes("ExpandDims", "dim").Types("Tdim", IndexTypes()), MakeKernel<ExpandDims>);
REGISTER_KERNEL(Cheap("Squeeze").Device("DEFAULT"), (MakeAttrKernel<Squeeze, "squeeze_dims">));

}  // namespace
}  // namespace troupe
