// Shapes of constants, placeholders, identities and reshaping ops.
#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "devices/status_macros.h"
#include "graph/ops/shape_functions.h"
#include "graph/ops/shape_helpers.h"
#include "graph/protos/graph.pb.h"
#include "graph/shape_inference.h"

namespace troupe {

using C = InferenceContext;

absl::Status BroadcastArgsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRank(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape y, C::WithRank(c->input(1), 1));
  const bool known = x.dim(0) != -1 && y.dim(0) != -1;
  c->set_output(0, C::VectorOf(known ? std::max(x.dim(0), y.dim(0)) : -1));
  return absl::OkStatus();
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
  c->set_output(0, output);
  return absl::OkStatus();
}

absl::Status ConstShape(InferenceContext* c) {
  // The shape only: the elements may be many.
  const AttrValue* value = c->attrs().Find("value");
  if (value == nullptr || !value->has_tensor()) {
    return InvalidArgument("A Const needs an attribute `value` that holds a tensor");
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::FromProto(value->tensor().tensor_shape()));
  c->set_output(0, shape);
  return absl::OkStatus();
}

absl::Status EnsureShapeShape(InferenceContext* c) {
  PartialShape shape;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  // TensorFlow takes an unknown shape for one that no known rank fits.
  if (shape.unknown_rank() && !c->input(0).unknown_rank()) {
    return InvalidArgument("The attribute `shape` has an unknown rank, the input the shape ",
                           c->input(0).ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(shape, C::Merge(c->input(0), shape));
  c->set_output(0, shape);
  return absl::OkStatus();
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
  c->set_output(0, PartialShape(sizes));
  return absl::OkStatus();
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
  int32_t axis;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("axis", &axis));
  if (axis < -1) return InvalidArgument("The axis must be at least -1 but is ", axis);
  TROUPE_ASSIGN_OR_RETURN(const int64_t depth, c->InputAsDim(1));
  const PartialShape& indices = c->input(0);
  if (indices.unknown_rank()) return UnknownShape(c);
  // As in TensorFlow, an axis that is too large is refused only by the kernel.
  const int at = axis == -1 ? indices.rank() : axis % (indices.rank() + 1);
  std::vector<int64_t> sizes(indices.dims().begin(), indices.dims().end());
  sizes.insert(sizes.begin() + at, depth);
  c->set_output(0, PartialShape(sizes));
  return absl::OkStatus();
}

absl::Status ShapeAttrShape(InferenceContext* c) {
  PartialShape shape;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  c->set_output(0, shape);
  return absl::OkStatus();
}

absl::Status PlaceholderShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(ShapeAttrShape(c));
  // Old graphs wrote the shape of a scalar where nothing was known.
  if (c->graph_version() <= 21 && c->output(0).rank() == 0) return UnknownShape(c);
  return absl::OkStatus();
}

absl::Status PlaceholderWithDefaultShape(InferenceContext* c) {
  PartialShape shape;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  TROUPE_RETURN_IF_ERROR(C::Merge(c->input(0), shape).status());
  // Something else than the input may be fed, so that only the attribute counts.
  c->set_output(0, shape);
  return absl::OkStatus();
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
  c->set_output(0, output);
  return absl::OkStatus();
}

absl::Status ShapeShape(InferenceContext* c) {
  c->set_output(0, C::VectorOf(c->input(0).rank()));
  return absl::OkStatus();
}

absl::Status ShapeNShape(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, C::VectorOf(c->input(i).rank()));
  return absl::OkStatus();
}

absl::Status SqueezeShape(InferenceContext* c) {
  std::vector<int64_t> axes;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("squeeze_dims", &axes));
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
  c->set_output(0, PartialShape(sizes));
  return absl::OkStatus();
}

absl::Status WhereShape(InferenceContext* c) {
  c->set_output(0, PartialShape({-1, c->input(0).rank()}));
  return absl::OkStatus();
}

}  // namespace troupe
