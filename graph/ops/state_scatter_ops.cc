// Scattered updates of variables and slices taken from them.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/scatter_shape.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// The shape of the variable that is input 0, a reference or (where there is no output) a handle.
PartialShape VariableShapeOf(InferenceContext* c) {
  return c->num_outputs() == 0 ? HandleShape(c, 0) : c->input(0);
}

absl::Status ScatterRowsShape(InferenceContext* c) {
  PartialShape variable = VariableShapeOf(c);
  if (c->num_outputs() == 0) {
    TROUPE_ASSIGN_OR_RETURN(variable, CheckedHandleShape(c));
  } else {
    c->set_output(0, variable);
  }
  const PartialShape &indices = c->input(1), &updates = c->input(2);
  // A scalar update is for all.
  if (variable.unknown_rank() || indices.unknown_rank() || updates.rank() == 0) {
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const PartialShape row, C::Subshape(variable, 1));
  const PartialShape wanted = indices.Concatenate(row);
  if (!C::Merge(updates, wanted).ok()) {
    return InvalidArgument("The updates must have the shape of the indices, then that of a row of ",
                           "the variable, ", wanted.ToString(), ", or be a scalar; their shape is ",
                           updates.ToString());
  }
  return absl::OkStatus();
}

absl::Status ScatterNdVariableShape(InferenceContext* c) {
  const PartialShape variable = VariableShapeOf(c);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRankAtLeast(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape updates, C::WithRankAtLeast(c->input(2), 1));
  TROUPE_RETURN_IF_ERROR(CheckScatterNdShapes(variable, indices, updates));
  if (c->num_outputs() > 0) c->set_output(0, variable);
  return absl::OkStatus();
}

absl::Status ResourceGatherShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch_dims, c->attrs().Get<int64_t>("batch_dims"));
  if (batch_dims < 0 || batch_dims >= Shape::kMaxRank) {
    return InvalidArgument("batch_dims is ", batch_dims,
                           ": it must not be negative, nor larger than a rank can be");
  }
  const int dims = static_cast<int>(batch_dims);
  TROUPE_ASSIGN_OR_RETURN(PartialShape params, CheckedHandleShape(c));
  TROUPE_ASSIGN_OR_RETURN(params, C::WithRankAtLeast(params, dims + 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRankAtLeast(c->input(1), dims));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, C::Subshape(params, 0, dims));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape picked, C::Subshape(indices, dims));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape row, C::Subshape(params, dims + 1));
  return SetShape(c, batch.Concatenate(picked).Concatenate(row));
}

absl::Status ResourceGatherNdShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape params, CheckedHandleShape(c));
  return SetShape(c, GatherNdOutputShape(params, c->input(1)));
}

/// What an update does to the rows or slices that are named.
struct Update {
  const char* ops[4];      ///< Of rows, then of slices; of references, then of resources.
  const char* ref_types;   ///< Of rows updated by reference; by handle they may be any numbers.
  const char* rows_doc;    ///< `%` stands for the variable.
  const char* slices_doc;  ///< Empty: there is one for rows only.
};

constexpr char kNumbers[] = "numbertype";
constexpr char kOrdered[] = "{half, bfloat16, float, double, int32, int64}";
constexpr char kAnyType[] = "type";

constexpr Update kUpdates[] = {
    {{"ScatterAdd", "ResourceScatterAdd", "ScatterNdAdd", "ResourceScatterNdAdd"},
     kNumbers,
     "Adds `updates` to the rows of the variable `%` that `indices` names.",
     "Adds the slices of `updates` to those of the variable `%` at the coordinates in the last "
     "dimension of `indices`."},
    {{"ScatterSub", "ResourceScatterSub", "ScatterNdSub", "ResourceScatterNdSub"},
     kNumbers,
     "Subtracts `updates` from the rows of the variable `%` that `indices` names.",
     "Subtracts the slices of `updates` from those of the variable `%` at the coordinates in the "
     "last dimension of `indices`."},
    {{"ScatterUpdate", "ResourceScatterUpdate", "ScatterNdUpdate", "ResourceScatterNdUpdate"},
     kAnyType,
     "Replaces the rows of the variable `%` that `indices` names by `updates`. The last of several "
     "for one row counts.",
     "Replaces those of the variable `%` at the coordinates in the last dimension of `indices` by "
     "the slices of `updates`. The last of several for one place counts."},
    {{"ScatterMul", "ResourceScatterMul"},
     kNumbers,
     "Multiplies the rows of the variable `%` that `indices` names by `updates`.",
     ""},
    {{"ScatterDiv", "ResourceScatterDiv"},
     kNumbers,
     "Divides the rows of the variable `%` that `indices` names by `updates`.",
     ""},
    {{"ScatterMax", "ResourceScatterMax", "ScatterNdMax", "ResourceScatterNdMax"},
     kOrdered,
     "Replaces the rows of the variable `%` that `indices` names by `updates` where that is "
     "larger.",
     "Replaces those of the variable `%` at the coordinates in the last dimension of `indices` by "
     "the slices of `updates` where these are larger."},
    {{"ScatterMin", "ResourceScatterMin", "ScatterNdMin", "ResourceScatterNdMin"},
     kOrdered,
     "Replaces the rows of the variable `%` that `indices` names by `updates` where that is "
     "smaller.",
     "Replaces those of the variable `%` at the coordinates in the last dimension of `indices` by "
     "the slices of `updates` where these are smaller."},
};

OpDefBuilder Define(const Update& update, bool slices, bool resource) {
  const bool replaces = update.ref_types == kAnyType;
  // By handle, rows have the type `dtype`, slices `T`.
  const std::string variable = resource && !slices ? "resource" : "ref";
  const std::string type = resource && !slices ? "dtype" : "T";
  const char* types = replaces || (resource && slices) ? kAnyType
                      : resource || slices             ? kNumbers
                                                       : update.ref_types;

  OpDefBuilder op(update.ops[2 * static_cast<int>(slices) + static_cast<int>(resource)]);
  op.Input(StrCat(variable, resource ? ": resource" : ": Ref(T)"));
  op.Input("indices: Tindices");
  op.Input(StrCat("updates: ", type));
  if (!resource) op.Output("output_ref: Ref(T)");
  op.Attr(StrCat(type, ": ", types));
  op.Attr("Tindices: {int32, int64}");
  if (!resource || slices) {
    op.Attr(resource || replaces ? "use_locking: bool = true" : "use_locking: bool = false");
  }
  if (slices) op.Attr("bad_indices_policy: string = ''");
  if (resource) op.SetIsStateful();
  op.SetShapeFn(slices ? ScatterNdVariableShape : ScatterRowsShape);
  std::string doc = slices ? update.slices_doc : update.rows_doc;
  doc.replace(doc.find('%'), 1, variable);
  if (!slices) doc += " `updates` has a row for each index, or is a scalar for all.";
  if (!resource) doc += " Gives the variable.";
  op.Doc(doc);
  return op;
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const Update& update : kUpdates) {
    for (const bool slices : {false, true}) {
      if (slices && update.ops[2] == nullptr) continue;
      for (const bool resource : {false, true}) {
        OpRegistry::Global()->Register(Define(update, slices, resource));
      }
    }
  }
  return true;
}();

}  // namespace

REGISTER_OP("ResourceGather")
    .Signature("resource: resource, indices: Tindices -> output: dtype")
    .Attr("batch_dims: int = 0")
    .Attr("validate_indices: bool = true")
    .Attr("dtype: type")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ResourceGatherShape)
    .Doc(
        "Takes the rows of the variable `resource` that `indices` names, after `batch_dims` "
        "common dimensions. Gives indices.shape + variable.shape[batch_dims + 1:].");

REGISTER_OP("ResourceGatherNd")
    .Signature("resource: resource, indices: Tindices -> output: dtype")
    .Attr("dtype: type")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ResourceGatherNdShape)
    .Doc(
        "Takes the slices of the variable `resource` at the coordinates in the last dimension of "
        "`indices`. Gives indices.shape[:-1] + variable.shape[indices.shape[-1]:].");

}  // namespace troupe
