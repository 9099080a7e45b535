// Lookup tables.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/handle_ops.h"
#include "graph/ops/op_versions.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

/// The handle is a scalar, or in the first version a vector of 2.
absl::Status CheckHandle(InferenceContext* c, bool second) {
  if (second) return InferenceContext::WithRank(c->input(0), 0).status();
  TROUPE_ASSIGN_OR_RETURN(const PartialShape handle, InferenceContext::WithRank(c->input(0), 1));
  return InferenceContext::MergeDim(handle.dim(0), 2).status();
}

template <bool second>
absl::Status HandleOnly(InferenceContext* c) {
  return CheckHandle(c, second);
}

template <bool second>
absl::Status SizeShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c, second));
  return ScalarShape(c);
}

/// What is known of the table: the shapes of one key and one value, or nothing. InvalidArgument if
/// its types are not those of the node.
absl::StatusOr<bool> TableOf(InferenceContext* c, const char* key_attr, const char* value_attr,
                             PartialShape* key, PartialShape* value) {
  const HandleShapes& table = c->input_handle(0);
  if (table.size() != 2) return false;
  const auto check = [&](const char* attr, ElementType expected) {
    ElementType type;
    TROUPE_RETURN_IF_ERROR(c->GetAttr(attr, &type));
    if (type == expected) return absl::OkStatus();
    return InvalidArgument("the table is of type ", ElementTypeName(expected), ", but ", attr,
                           " is ", ElementTypeName(type));
  };
  TROUPE_RETURN_IF_ERROR(check(key_attr, table[0].first));
  TROUPE_RETURN_IF_ERROR(check(value_attr, table[1].first));
  *key = table[0].second;
  *value = table[1].second;
  return true;
}

absl::Status FindShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c, false));
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRankAtMost(c->input(2), 1).status());
  return UnknownShape(c);
}

/// The shape of the keys, with that of a value in place of that of a key.
absl::Status FindShapeV2(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c, true));
  PartialShape key, value;
  TROUPE_ASSIGN_OR_RETURN(const bool known, TableOf(c, "Tin", "Tout", &key, &value));
  const PartialShape& keys = c->input(1);
  c->set_output(0, PartialShape());
  if (!known || key.unknown_rank() || keys.unknown_rank()) return absl::OkStatus();
  if (keys.rank() < key.rank()) {
    return InvalidArgument("expected keys whose shape ends with ", key.ToString(), ", got ",
                           keys.ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch,
                          InferenceContext::Subshape(keys, 0, keys.rank() - key.rank()));
  c->set_output(0, batch.Concatenate(value));
  return absl::OkStatus();
}

absl::Status ExportShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c, false));
  c->set_output(0, InferenceContext::VectorOf(-1));
  c->set_output(1, PartialShape());
  return absl::OkStatus();
}

absl::Status ExportShapeV2(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c, true));
  PartialShape key, value;
  TROUPE_RETURN_IF_ERROR(TableOf(c, "Tkeys", "Tvalues", &key, &value).status());
  return UnknownShape(c);
}

/// As many keys, a vector, as values.
absl::Status KeysAndValues(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape keys, InferenceContext::WithRank(c->input(1), 1));
  if (c->input(2).unknown_rank()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const PartialShape values,
                          InferenceContext::WithRankAtLeast(c->input(2), 1));
  return InferenceContext::MergeDim(keys.dim(0), values.dim(0)).status();
}

absl::Status ImportShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c, true));
  return KeysAndValues(c);
}

template <bool second>
absl::Status InitializeShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c, second));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape keys, InferenceContext::WithRank(c->input(1), 1));
  return InferenceContext::Merge(keys, c->input(2)).status();
}

template <bool second>
absl::Status InitializeFromFileShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c, second));
  return InferenceContext::WithRank(c->input(1), 0).status();
}

/// A scalar handle to a table from `key` to `value`.
absl::Status TableShape(InferenceContext* c, PartialShape key, PartialShape value) {
  ElementType key_type, value_type;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("key_dtype", &key_type));
  TROUPE_RETURN_IF_ERROR(c->GetAttr("value_dtype", &value_type));
  c->set_output(0, InferenceContext::Scalar());
  c->set_output_handle(0, {{key_type, std::move(key)}, {value_type, std::move(value)}});
  return absl::OkStatus();
}

absl::Status ScalarTableShape(InferenceContext* c) {
  return TableShape(c, InferenceContext::Scalar(), InferenceContext::Scalar());
}

absl::Status TensorTableShape(InferenceContext* c) {
  PartialShape value;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("value_shape", &value));
  return TableShape(c, InferenceContext::Scalar(), std::move(value));
}

absl::Status DenseTableShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape key, InferenceContext::WithRankAtMost(c->input(0), 1));
  PartialShape value;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("value_shape", &value));
  return TableShape(c, std::move(key), std::move(value));
}

/// The first versions of the ops, or the second ones, which have resources as handles.
template <bool second>
void Register() {
  auto maker = [&](OpVersions names, const char* inputs, ShapeFn shape_fn, const char* doc) {
    OpDefBuilder op(names.Name(second));
    op.Signature(
          StrCat(inputs, second ? "-> table_handle: resource" : "-> table_handle: Ref(string)"))
        .Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Attr("use_node_name_sharing: bool = false")
        .Attr("key_dtype: type")
        .Attr("value_dtype: type")
        .SetIsStateful()
        .SetShapeFn(second ? shape_fn : HandlePairShape)
        .Doc(doc);
    return op;
  };
  auto on_table = [&](OpVersions names, const char* rest) {
    OpDefBuilder op(names.Name(second));
    op.Signature(StrCat(second ? "table_handle: resource" : "table_handle: Ref(string)", rest));
    if (second) op.SetIsStateful();
    return op;
  };
  [[maybe_unused]] const internal::OpRegistrar ops[] = {
      maker({"HashTable", "HashTableV2"}, "", ScalarShape,
            "Makes a table that is initialised once and read from then on."),
      maker({"MutableHashTable", "MutableHashTableV2"}, "", ScalarTableShape,
            "Makes a table of scalars."),
      maker({"MutableHashTableOfTensors", "MutableHashTableOfTensorsV2"}, "", TensorTableShape,
            "Makes a table whose values are vectors of shape `value_shape`.")
          .Attr("value_shape: shape = {}"),
      maker(
          {"MutableDenseHashTable", "MutableDenseHashTableV2"},
          second ? "empty_key: key_dtype, deleted_key: key_dtype " : "empty_key: key_dtype ",
          DenseTableShape,
          "Makes a table that keeps keys and values in tensors. `empty_key` marks buckets without "
          "a key; it, and the key that marks removed ones, cannot be keys.")
          .Attr("value_shape: shape = {}")
          .Attr("initial_num_buckets: int = 131072")
          .Attr("max_load_factor: float = 0.8"),
      on_table({"InitializeTable", "InitializeTableV2"}, ", keys: Tkey, values: Tval")
          .Attr("Tkey: type")
          .Attr("Tval: type")
          .SetShapeFn(InitializeShape<second>)
          .Doc("Initialises a table with two vectors. Once more with the same contents does no "
               "harm."),
      on_table({"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"},
               ", filename: string")
          .Attr("key_index: int >= -2")
          .Attr("value_index: int >= -2")
          .Attr("vocab_size: int >= -1 = -1")
          .Attr("delimiter: string = '\\t'")
          .Attr("offset: int = 0")
          .SetShapeFn(InitializeFromFileShape<second>)
          .Doc("Initialises a table from the lines of a text file. An index is a column's, -1 for "
               "the line's number plus `offset`, -2 for the whole line."),
      on_table({"LookupTableFind", "LookupTableFindV2"},
               ", keys: Tin, default_value: Tout -> values: Tout")
          .Attr("Tin: type")
          .Attr("Tout: type")
          .SetShapeFn(second ? FindShapeV2 : FindShape)
          .Doc("Looks keys up; gives `default_value` for those that are not there."),
      on_table({"LookupTableInsert", "LookupTableInsertV2"}, ", keys: Tin, values: Tout")
          .Attr("Tin: type")
          .Attr("Tout: type")
          .SetShapeFn(HandleOnly<second>)
          .Doc("Puts keys into a table, or gives them other values."),
      on_table({"LookupTableImport", "LookupTableImportV2"}, ", keys: Tin, values: Tout")
          .Attr("Tin: type")
          .Attr("Tout: type")
          .SetShapeFn(second ? ImportShape : HandleOnly<false>)
          .Doc("Replaces what a table holds."),
      on_table({"LookupTableExport", "LookupTableExportV2"}, " -> keys: Tkeys, values: Tvalues")
          .Attr("Tkeys: type")
          .Attr("Tvalues: type")
          .SetShapeFn(second ? ExportShapeV2 : ExportShape)
          .Doc("All keys of a table and their values, in any order."),
      on_table({"LookupTableSize", "LookupTableSizeV2"}, " -> size: int64")
          .SetShapeFn(SizeShape<second>)
          .Doc("Number of keys in a table."),
  };
}

[[maybe_unused]] const bool kRegistered = (Register<false>(), Register<true>(), true);

[[maybe_unused]] const internal::OpRegistrar kOps[] = {
    OpDefBuilder("LookupTableRemoveV2")
        .Signature("table_handle: resource, keys: Tin")
        .Attr("Tin: type")
        .SetIsStateful()
        .SetShapeFn(HandleOnly<true>)
        .Doc("Removes keys from a table; those that are not there do no harm."),
    OpDefBuilder("AnonymousHashTable")
        .Signature("-> table_handle: resource")
        .Attr("key_dtype: type")
        .Attr("value_dtype: type")
        .SetIsStateful()
        .SetShapeFn(ScalarShape)
        .Doc("Makes a table at each step that only its handle knows; otherwise as HashTableV2."),
};

}  // namespace
}  // namespace troupe
