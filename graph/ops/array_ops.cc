// Constants, placeholders, identities, shapes and reshaping.
#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/protos/graph.pb.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status BroadcastArgsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRank(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape y, C::WithRank(c->input(1), 1));
  const bool known = x.dim(0) != -1 && y.dim(0) != -1;
  return SetShape(c, C::VectorOf(known ? std::max(x.dim(0), y.dim(0)) : -1));
}

absl::Status BroadcastGradientArgsShape(InferenceContext* c) {
  for (int i = 0; i < 2; ++i) {
    TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 1).status());
    c->set_output(i, C::VectorOf(-1));
  }
  return absl::OkStatus();
}

absl::Status BroadcastToShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 1).status());
  TROUPE_ASSIGN_OR_RETURN(PartialShape output, c->InputAsShape(1));
  if (!output.unknown_rank() && !c->input(0).unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape input,
                            C::WithRankAtMost(c->input(0), output.rank()));
    const int offset = output.rank() - input.rank();
    for (int i = 0; i < input.rank(); ++i) {
      if (input.dim(i) <= 1) continue;
      TROUPE_ASSIGN_OR_RETURN(const int64_t size,
                              C::MergeDim(input.dim(i), output.dim(offset + i)));
      output = C::ReplaceDim(output, offset + i, size);
    }
  }
  return SetShape(c, output);
}

absl::Status ConstShape(InferenceContext* c) {
  // The shape only: the elements may be many.
  const AttrValue* value = c->attrs().Find("value");
  if (value == nullptr || !value->has_tensor()) {
    return InvalidArgument("A Const needs an attribute `value` that holds a tensor");
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::FromProto(value->tensor().tensor_shape()));
  return SetShape(c, shape);
}

absl::Status EnsureShapeShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, c->attrs().Get<PartialShape>("shape"));
  // TensorFlow takes an unknown shape for one that no known rank fits.
  if (shape.unknown_rank() && !c->input(0).unknown_rank()) {
    return InvalidArgument("The attribute `shape` has an unknown rank, the input the shape ",
                           c->input(0).ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(shape, C::Merge(c->input(0), shape));
  return SetShape(c, shape);
}

absl::Status ExpandDimsShape(InferenceContext* c) {
  const PartialShape& input = c->input(0);
  const Tensor& axis_value = c->input_tensor(1);
  if (axis_value.valid() && axis_value.num_elements() != 1) {
    return InvalidArgument("The axis must be a single number, but its shape is ",
                           axis_value.shape().ToString());
  }
  if (!axis_value.valid() || input.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(
      const int axis, CanonicalAxis(IntegerValues(axis_value)[0], input.rank() + 1, "The axis"));
  std::vector<int64_t> sizes(input.dims().begin(), input.dims().end());
  sizes.insert(sizes.begin() + axis, 1);
  return SetShape(c, PartialShape(sizes));
}

absl::Status FillShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 1).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  const Tensor& dims = c->input_tensor(0);
  if (dims.valid()) {
    for (const int64_t size : IntegerValues(dims)) {
      if (size < 0) return InvalidArgument("The sizes in `dims` must not be negative: ", size);
    }
  }
  return FirstInputAsShape(c);
}

absl::Status IdentityNShape(InferenceContext* c) {
  for (int i = 0; i < c->num_inputs() && i < c->num_outputs(); ++i) {
    c->set_output(i, c->input(i));
    if (!c->input_handle(i).empty()) c->set_output_handle(i, c->input_handle(i));
  }
  return absl::OkStatus();
}

absl::Status OneHotShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const int32_t axis, c->attrs().Get<int32_t>("axis"));
  if (axis < -1) return InvalidArgument("The axis must be at least -1 but is ", axis);
  TROUPE_ASSIGN_OR_RETURN(const int64_t depth, c->InputAsDim(1));
  const PartialShape& indices = c->input(0);
  if (indices.unknown_rank()) return UnknownShape(c);
  // As in TensorFlow, an axis that is too large is refused only by the kernel.
  const int at = axis == -1 ? indices.rank() : axis % (indices.rank() + 1);
  std::vector<int64_t> sizes(indices.dims().begin(), indices.dims().end());
  sizes.insert(sizes.begin() + at, depth);
  return SetShape(c, PartialShape(sizes));
}

absl::Status PlaceholderShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(ShapeAttrShape(c));
  // Old graphs wrote the shape of a scalar where nothing was known.
  if (c->graph_version() <= 21 && c->output(0).rank() == 0) return UnknownShape(c);
  return absl::OkStatus();
}

absl::Status PlaceholderWithDefaultShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, c->attrs().Get<PartialShape>("shape"));
  TROUPE_RETURN_IF_ERROR(C::Merge(c->input(0), shape).status());
  // Something else than the input may be fed, so that only the attribute counts.
  return SetShape(c, shape);
}

absl::Status ReshapeShape(InferenceContext* c) {
  const PartialShape& input = c->input(0);
  TROUPE_ASSIGN_OR_RETURN(PartialShape output, c->InputAsShape(1));
  if (!output.unknown_rank() && !input.unknown_rank()) {
    int input_unknown, output_unknown;
    TROUPE_ASSIGN_OR_RETURN(const int64_t have, KnownElements(input, &input_unknown));
    TROUPE_ASSIGN_OR_RETURN(const int64_t want, KnownElements(output, &output_unknown));
    if (input_unknown == -1 && output_unknown == -1) {
      if (have != want) {
        return InvalidArgument("A tensor of shape ", input.ToString(), " (", have,
                               " elements) cannot be given the shape ", output.ToString(), " (",
                               want, " elements)");
      }
    } else if (input_unknown == -1 && output_unknown >= 0) {
      if (want > 0) {
        TROUPE_ASSIGN_OR_RETURN(const int64_t size, DivideDim(have, want, true));
        output = C::ReplaceDim(output, output_unknown, size);
      }
    } else if (input_unknown >= 0 && output_unknown == -1 && have != 0) {
      TROUPE_RETURN_IF_ERROR(DivideDim(want, have, true).status());
    }
  }
  return SetShape(c, output);
}

absl::Status ShapeShape(InferenceContext* c) {
  return SetShape(c, C::VectorOf(c->input(0).rank()));
}

absl::Status ShapeNShape(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, C::VectorOf(c->input(i).rank()));
  return absl::OkStatus();
}

absl::Status SqueezeShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                          c->attrs().Get<std::vector<int64_t>>("squeeze_dims"));
  const PartialShape& input = c->input(0);
  if (input.unknown_rank()) return UnknownShape(c);
  std::vector<bool> squeeze(input.rank(), axes.empty());
  for (const int64_t axis : axes) {
    TROUPE_ASSIGN_OR_RETURN(const int at, CanonicalAxis(axis, input.rank(), "squeeze_dims: axis"));
    squeeze[at] = true;
  }
  // Without a list of axes an unknown size leaves it open whether the dimension stays.
  if (axes.empty() && absl::c_linear_search(input.dims(), -1)) return UnknownShape(c);
  std::vector<int64_t> sizes;
  for (int i = 0; i < input.rank(); ++i) {
    const int64_t size = input.dim(i);
    if (squeeze[i] && (size == 1 || size == -1)) continue;
    if (squeeze[i] && !axes.empty()) {
      return InvalidArgument("Dimension ", i, " of ", input.ToString(),
                             " cannot be dropped: its size is not 1");
    }
    sizes.push_back(size);
  }
  return SetShape(c, PartialShape(sizes));
}

absl::Status WhereShape(InferenceContext* c) {
  return SetShape(c, PartialShape({-1, c->input(0).rank()}));
}

}  // namespace

REGISTER_OP("BroadcastArgs")
    .Signature("s0: T, s1: T -> r0: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .SetShapeFn(BroadcastArgsShape)
    .Doc("Gives the shape of two shapes broadcast against each other; all are vectors of sizes.");

REGISTER_OP("BroadcastGradientArgs")
    .Signature("s0: T, s1: T -> r0: T, r1: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .SetShapeFn(BroadcastGradientArgsShape)
    .Doc(
        "Gives the axes over which the gradient of a broadcast operation on shapes `s0` and "
        "`s1` is summed, for either operand.");

REGISTER_OP("BroadcastTo")
    .Signature("input: T, shape: Tidx -> output: T")
    .Attr("T: type")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(BroadcastToShape)
    .Doc(
        "Repeats `input` along dimensions of size 1 and new leading ones until it has the shape "
        "`shape`.");

REGISTER_OP("Const")
    .Signature("-> output: dtype")
    .Attr("value: tensor")
    .Attr("dtype: type")
    .SetShapeFn(ConstShape)
    .Doc("Gives the constant `value`, of type `dtype`.");

REGISTER_OP("EnsureShape")
    .Signature("input: T -> output: T")
    .Attr("shape: shape")
    .Attr("T: type")
    .SetShapeFn(EnsureShapeShape)
    .Doc(
        "Passes `input` through if its shape fits `shape`, whose sizes may be unknown; fails "
        "otherwise.");

REGISTER_OP("ExpandDims")
    .Signature("input: T, dim: Tdim -> output: T")
    .Attr("T: type")
    .Attr("Tdim: {int32, int64} = DT_INT32")
    .SetShapeFn(ExpandDimsShape)
    .Doc("Inserts a dimension of size 1 before axis `dim` (negative: from the end) of `input`.");

REGISTER_OP("Fill")
    .Signature("dims: index_type, value: T -> output: T")
    .Attr("T: type")
    .Attr("index_type: {int32, int64} = DT_INT32")
    .SetShapeFn(FillShape)
    .Doc("Gives a tensor of shape `dims` filled with the scalar `value`.");

REGISTER_OP("Identity")
    .Signature("input: T -> output: T")
    .Attr("T: type")
    .SetShapeFn(UnchangedShape)
    .Doc("Passes `input` through.");

REGISTER_OP("IdentityN")
    .Signature("input: T -> output: T")
    .Attr("T: list(type) >= 1")
    .SetShapeFn(IdentityNShape)
    .Doc("Passes each tensor of the list `input` through.");

REGISTER_OP("OneHot")
    .Signature("indices: TI, depth: int32, on_value: T, off_value: T -> output: T")
    .Attr("axis: int = -1")
    .Attr("T: type")
    .Attr("TI: {uint8, int8, int32, int64} = DT_INT64")
    .SetShapeFn(OneHotShape)
    .Doc(
        "Inserts at `axis` (-1: the last) a dimension of size `depth` that is `on_value` at the "
        "position given by `indices` and `off_value` elsewhere.");

REGISTER_OP("Placeholder")
    .Signature("-> output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape = { unknown_rank: true }")
    .SetShapeFn(PlaceholderShape)
    .Doc(
        "A tensor of type `dtype` and a shape that fits `shape`, to be fed when the graph is "
        "run.");

REGISTER_OP("PlaceholderV2")
    .Signature("-> output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Deprecated(23, "Placeholder now behaves the same as PlaceholderV2.")
    .SetShapeFn(ShapeAttrShape)
    .Doc(
        "A tensor of type `dtype` and a shape that fits `shape`, to be fed when the graph is "
        "run.");

REGISTER_OP("PlaceholderWithDefault")
    .Signature("input: dtype -> output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .SetShapeFn(PlaceholderWithDefaultShape)
    .Doc("Passes `input` through if nothing else is fed; its shape fits `shape`.");

REGISTER_OP("PreventGradient")
    .Signature("input: T -> output: T")
    .Attr("T: type")
    .Attr("message: string = ''")
    .SetShapeFn(UnchangedShape)
    .Doc("Passes `input` through; asking for a gradient through it fails with `message`.");

REGISTER_OP("Rank")
    .Signature("input: T -> output: int32")
    .Attr("T: type")
    .SetShapeFn(ScalarShape)
    .Doc("Gives the number of dimensions of `input`, a scalar.");

REGISTER_OP("Reshape")
    .Signature("tensor: T, shape: Tshape -> output: T")
    .Attr("T: type")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .SetShapeFn(ReshapeShape)
    .Doc(
        "Gives the elements of `tensor`, in the same order, the shape `shape`; one size may be "
        "-1 and follows from the others.");

REGISTER_OP("Shape")
    .Signature("input: T -> output: out_type")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .SetShapeFn(ShapeShape)
    .Doc("Gives the sizes of the dimensions of `input`, a vector.");

REGISTER_OP("ShapeN")
    .Signature("input: N * T -> output: N * out_type")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .SetShapeFn(ShapeNShape)
    .Doc("Gives the sizes of the dimensions of each tensor of `input`, a vector each.");

REGISTER_OP("Size")
    .Signature("input: T -> output: out_type")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .SetShapeFn(ScalarShape)
    .Doc("Gives the number of elements of `input`, a scalar.");

REGISTER_OP("Snapshot")
    .Signature("input: T -> output: T")
    .Attr("T: type")
    .SetShapeFn(UnchangedShape)
    .Doc("Gives a copy of `input`.");

REGISTER_OP("Squeeze")
    .Signature("input: T -> output: T")
    .Attr("T: type")
    .Attr("squeeze_dims: list(int) >= 0 = []")
    .SetShapeFn(SqueezeShape)
    .Doc(
        "Drops the dimensions `squeeze_dims` of `input`, which must have size 1; if none are "
        "named, all that have.");

REGISTER_OP("StopGradient")
    .Signature("input: T -> output: T")
    .Attr("T: type")
    .SetShapeFn(UnchangedShape)
    .Doc("Passes `input` through; gradients treat it as a constant.");

REGISTER_OP("Where")
    .Signature("input: T -> index: int64")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
        "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = "
        "DT_BOOL")
    .SetShapeFn(WhereShape)
    .Doc(
        "Gives the coordinates of the elements of `input` that are true or not zero: a matrix "
        "with a row for each, in row-major order.");

}  // namespace troupe
