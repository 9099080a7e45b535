// Examples, text and bytes to tensors.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

// --- examples ------------------------------------------------------------------------------------

/// Gives outputs their shapes one after another.
class NextOutputs {
 public:
  explicit NextOutputs(InferenceContext* c) : c_(c) {}

  void Put(int64_t count, const PartialShape& shape) {
    for (int64_t i = 0; i < count; ++i) c_->set_output(next_++, shape);
  }
  void Put(const std::vector<PartialShape>& shapes, const PartialShape& before) {
    for (const PartialShape& shape : shapes) c_->set_output(next_++, before.Concatenate(shape));
  }
  /// Indices, values and shapes of so many sparse tensors, which have `more` dimensions than
  /// `batch`.
  void PutSparse(int64_t count, const PartialShape& batch, int more) {
    const int64_t rank = batch.unknown_rank() ? -1 : batch.rank() + more;
    Put(count, PartialShape({-1, rank}));
    Put(count, InferenceContext::VectorOf(-1));
    Put(count, InferenceContext::VectorOf(rank));
  }
  /// Values, row splits of examples and, where the values are of lists, those within examples.
  void PutRagged(int64_t count, const PartialShape& batch, bool lists) {
    const bool known = !batch.unknown_rank() && batch.rank() == 1 && batch.dim(0) >= 0;
    Put(count, InferenceContext::VectorOf(-1));
    Put(count, InferenceContext::VectorOf(known ? batch.dim(0) + 1 : -1));
    if (lists) Put(count, InferenceContext::VectorOf(-1));
  }

 private:
  InferenceContext* const c_;
  int next_ = 0;
};

/// How many there are of an attribute that is a list, or its value if it is a number.
template <typename T>
absl::StatusOr<int64_t> CountOf(InferenceContext* c, const char* attr) {
  T value{};
  TROUPE_RETURN_IF_ERROR(c->GetAttr(attr, &value));
  if constexpr (std::is_same_v<T, int64_t>) {
    return value;
  } else {
    return static_cast<int64_t>(value.size());
  }
}
using Types = std::vector<ElementType>;
using Shapes = std::vector<PartialShape>;
using Names = std::vector<std::string>;

/// The counts must agree; that count.
absl::StatusOr<int64_t> SameCount(
    std::initializer_list<std::pair<const char*, absl::StatusOr<int64_t>>> counts) {
  int64_t count = -1;
  for (const auto& [name, one] : counts) {
    TROUPE_RETURN_IF_ERROR(one.status());
    if (count >= 0 && *one != count) {
      return InvalidArgument(counts.begin()->first, " is for ", count, " features, but ", name,
                             " for ", *one);
    }
    count = *one;
  }
  return count;
}

/// Shapes of dense features: known, but for the first dimension.
absl::StatusOr<Shapes> DenseShapes(InferenceContext* c, const char* attr, bool varying) {
  Shapes shapes;
  TROUPE_RETURN_IF_ERROR(c->GetAttr(attr, &shapes));
  for (size_t i = 0; i < shapes.size(); ++i) {
    bool known = !shapes[i].unknown_rank();
    for (int d = varying ? 1 : 0; known && d < shapes[i].rank(); ++d) known = shapes[i].dim(d) >= 0;
    if (known) continue;
    return InvalidArgument(attr, "[", i, "] is ", shapes[i].ToString(), ": only the first size ",
                           "of a dense feature may be unknown");
  }
  return shapes;
}

absl::StatusOr<PartialShape> BatchShape(InferenceContext* c, int min_rank) {
  if (min_rank == 1) {
    TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(1), 1).status());
    return InferenceContext::WithRank(c->input(0), 1);
  }
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRankAtMost(c->input(1), 1).status());
  return InferenceContext::WithRankAtMost(c->input(0), 1);
}

absl::Status MustHaveRank(InferenceContext* c, int begin, int end, int rank) {
  for (int i = begin; i < end; ++i) {
    TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(i), rank).status());
  }
  return absl::OkStatus();
}

absl::Status ParseExampleShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, BatchShape(c, 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t sparse,
                          SameCount({{"Nsparse", CountOf<int64_t>(c, "Nsparse")},
                                     {"sparse_types", CountOf<Types>(c, "sparse_types")}}));
  TROUPE_RETURN_IF_ERROR(SameCount({{"Ndense", CountOf<int64_t>(c, "Ndense")},
                                    {"Tdense", CountOf<Types>(c, "Tdense")},
                                    {"dense_shapes", CountOf<Shapes>(c, "dense_shapes")}})
                             .status());
  TROUPE_ASSIGN_OR_RETURN(const Shapes dense, DenseShapes(c, "dense_shapes", true));
  NextOutputs outputs(c);
  outputs.PutSparse(sparse, batch, 1);
  outputs.Put(dense, batch);
  return absl::OkStatus();
}

absl::Status ParseExampleV2Shape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, BatchShape(c, 0));
  TROUPE_RETURN_IF_ERROR(MustHaveRank(c, 2, 5, 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t sparse,
                          SameCount({{"num_sparse", CountOf<int64_t>(c, "num_sparse")},
                                     {"sparse_types", CountOf<Types>(c, "sparse_types")}}));
  TROUPE_RETURN_IF_ERROR(SameCount({{"Tdense", CountOf<Types>(c, "Tdense")},
                                    {"dense_shapes", CountOf<Shapes>(c, "dense_shapes")}})
                             .status());
  TROUPE_ASSIGN_OR_RETURN(
      const int64_t ragged,
      SameCount({{"ragged_value_types", CountOf<Types>(c, "ragged_value_types")},
                 {"ragged_split_types", CountOf<Types>(c, "ragged_split_types")}}));
  TROUPE_ASSIGN_OR_RETURN(const Shapes dense, DenseShapes(c, "dense_shapes", true));
  NextOutputs outputs(c);
  outputs.PutSparse(sparse, batch, 1);
  outputs.Put(dense, batch);
  outputs.PutRagged(ragged, batch, false);
  return absl::OkStatus();
}

absl::Status ParseSingleExampleShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(MustHaveRank(c, 0, 1, 0));
  TROUPE_ASSIGN_OR_RETURN(const int64_t sparse,
                          SameCount({{"num_sparse", CountOf<int64_t>(c, "num_sparse")},
                                     {"sparse_keys", CountOf<Names>(c, "sparse_keys")},
                                     {"sparse_types", CountOf<Types>(c, "sparse_types")}}));
  TROUPE_RETURN_IF_ERROR(SameCount({{"dense_keys", CountOf<Names>(c, "dense_keys")},
                                    {"Tdense", CountOf<Types>(c, "Tdense")},
                                    {"dense_shapes", CountOf<Shapes>(c, "dense_shapes")}})
                             .status());
  TROUPE_ASSIGN_OR_RETURN(const Shapes dense, DenseShapes(c, "dense_shapes", true));
  NextOutputs outputs(c);
  outputs.PutSparse(sparse, InferenceContext::Scalar(), 1);
  outputs.Put(dense, InferenceContext::Scalar());
  return absl::OkStatus();
}

/// The outputs of ops on SequenceExamples. `batch`: the shape of `serialized`; `lengths`: there are
/// outputs with the lengths of dense lists; `ragged`: there are ragged ones.
absl::Status SequenceShapes(InferenceContext* c, const PartialShape& batch, bool lengths,
                            bool ragged) {
  TROUPE_ASSIGN_OR_RETURN(
      const int64_t context_sparse,
      SameCount({{"Ncontext_sparse", CountOf<int64_t>(c, "Ncontext_sparse")},
                 {"context_sparse_types", CountOf<Types>(c, "context_sparse_types")}}));
  TROUPE_RETURN_IF_ERROR(
      SameCount({{"Tcontext_dense", CountOf<Types>(c, "Tcontext_dense")},
                 {"context_dense_shapes", CountOf<Shapes>(c, "context_dense_shapes")}})
          .status());
  TROUPE_ASSIGN_OR_RETURN(
      const int64_t list_sparse,
      SameCount({{"Nfeature_list_sparse", CountOf<int64_t>(c, "Nfeature_list_sparse")},
                 {"feature_list_sparse_types", CountOf<Types>(c, "feature_list_sparse_types")}}));
  TROUPE_ASSIGN_OR_RETURN(
      const int64_t list_dense,
      SameCount({{"Nfeature_list_dense", CountOf<int64_t>(c, "Nfeature_list_dense")},
                 {"feature_list_dense_types", CountOf<Types>(c, "feature_list_dense_types")},
                 {"feature_list_dense_shapes", CountOf<Shapes>(c, "feature_list_dense_shapes")}}));
  TROUPE_ASSIGN_OR_RETURN(const Shapes context_dense,
                          DenseShapes(c, "context_dense_shapes", false));
  TROUPE_ASSIGN_OR_RETURN(const Shapes list_dense_shapes,
                          DenseShapes(c, "feature_list_dense_shapes", false));
  NextOutputs outputs(c);
  outputs.PutSparse(context_sparse, batch, 1);
  outputs.Put(context_dense, batch);
  if (ragged) {
    TROUPE_ASSIGN_OR_RETURN(
        const int64_t count,
        SameCount(
            {{"context_ragged_value_types", CountOf<Types>(c, "context_ragged_value_types")},
             {"context_ragged_split_types", CountOf<Types>(c, "context_ragged_split_types")}}));
    outputs.PutRagged(count, batch, false);
  }
  outputs.PutSparse(list_sparse, batch, 2);
  outputs.Put(list_dense_shapes, batch.Concatenate(InferenceContext::VectorOf(-1)));
  if (lengths) outputs.Put(list_dense, batch);
  if (ragged) {
    TROUPE_ASSIGN_OR_RETURN(const int64_t count,
                            SameCount({{"feature_list_ragged_value_types",
                                        CountOf<Types>(c, "feature_list_ragged_value_types")},
                                       {"feature_list_ragged_split_types",
                                        CountOf<Types>(c, "feature_list_ragged_split_types")}}));
    outputs.PutRagged(count, batch, true);
  }
  return absl::OkStatus();
}

absl::Status ParseSequenceExampleShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, BatchShape(c, 0));
  return SequenceShapes(c, batch, true, false);
}
absl::Status ParseSequenceExampleV2Shape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, BatchShape(c, 0));
  TROUPE_RETURN_IF_ERROR(MustHaveRank(c, 2, 9, 1));
  return SequenceShapes(c, batch, true, true);
}
absl::Status ParseSingleSequenceExampleShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(MustHaveRank(c, 0, 1, 0));
  TROUPE_RETURN_IF_ERROR(MustHaveRank(c, 1, 2, 1));
  return SequenceShapes(c, InferenceContext::Scalar(), false, false);
}

constexpr char kTdense[] = "Tdense: list({float, int64, string}) >= 0";
constexpr char kSparseTypes[] = "sparse_types: list({float, int64, string}) >= 0";
constexpr char kDenseShapes[] = "dense_shapes: list(shape) >= 0";

REGISTER_OP("ParseExample")
    .Signature(
        "serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * "
        "string, dense_defaults: Tdense -> sparse_indices: Nsparse * int64, sparse_values: "
        "sparse_types, sparse_shapes: Nsparse * int64, dense_values: Tdense")
    .Attr("Nsparse: int >= 0")
    .Attr("Ndense: int >= 0")
    .Attr(kSparseTypes)
    .Attr(kTdense)
    .Attr(kDenseShapes)
    .SetShapeFn(ParseExampleShape)
    .Doc(
        "Parses a vector of serialized Example messages. A dense feature has the shape that "
        "`dense_shapes` says; its first size may be unknown, when examples are padded with the "
        "default. An empty default makes the feature required. `names` are for error messages, as "
        "many as examples or none.");

REGISTER_OP("ParseExampleV2")
    .Signature(
        "serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: "
        "string, dense_defaults: Tdense -> sparse_indices: num_sparse * int64, sparse_values: "
        "sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense, ragged_values: "
        "ragged_value_types, ragged_row_splits: ragged_split_types")
    .Attr(kTdense)
    .Attr("num_sparse: int >= 0")
    .Attr(kSparseTypes)
    .Attr("ragged_value_types: list({float, int64, string}) >= 0")
    .Attr("ragged_split_types: list({int32, int64}) >= 0")
    .Attr(kDenseShapes)
    .SetShapeFn(ParseExampleV2Shape)
    .Doc(
        "As `ParseExample`, with ragged features, and with keys as vectors. A scalar is one "
        "example: its outputs have no dimension of examples.");

REGISTER_OP("ParseSingleExample")
    .Signature(
        "serialized: string, dense_defaults: Tdense -> sparse_indices: num_sparse * int64, "
        "sparse_values: sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense")
    .Attr("num_sparse: int >= 0")
    .Attr("sparse_keys: list(string) >= 0")
    .Attr("dense_keys: list(string) >= 0")
    .Attr(kSparseTypes)
    .Attr(kTdense)
    .Attr(kDenseShapes)
    .SetShapeFn(ParseSingleExampleShape)
    .Doc("As `ParseExample`, for one example.");

bool EndsWith(std::string_view name, std::string_view end) {
  return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

/// Attributes of ops on SequenceExamples, of which the name says the kind.
void AddSequenceAttrs(std::initializer_list<std::string_view> names, OpDefBuilder* op) {
  for (const std::string_view name : names) {
    const bool count = name[0] == 'N', shapes = EndsWith(name, "_shapes"),
               splits = EndsWith(name, "_split_types");
    op->Attr(StrCat(name, ": ",
                    count    ? "int >= 0 = 0"
                    : shapes ? "list(shape) >= 0 = []"
                    : splits ? "list({int32, int64}) >= 0 = []"
                             : "list({float, int64, string}) >= 0 = []"));
  }
}

/// Those of the first versions.
OpDefBuilder& AddSequenceAttrs(OpDefBuilder& op) {
  AddSequenceAttrs(
      {"Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse", "Nfeature_list_dense",
       "context_sparse_types", "Tcontext_dense", "feature_list_dense_types", "context_dense_shapes",
       "feature_list_sparse_types", "feature_list_dense_shapes"},
      &op);
  return op;
}

OpDefBuilder ParseSequenceExample() {
  OpDefBuilder op("ParseSequenceExample");
  op.Signature(
      "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense -> "
      "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: "
      "context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, "
      "context_dense_values: Tcontext_dense, feature_list_sparse_indices: Nfeature_list_sparse "
      "* int64, feature_list_sparse_values: feature_list_sparse_types, "
      "feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: "
      "feature_list_dense_types, feature_list_dense_lengths: Nfeature_list_dense * int64");
  for (const char* name :
       {"feature_list_dense_missing_assumed_empty", "context_sparse_keys", "context_dense_keys",
        "feature_list_sparse_keys", "feature_list_dense_keys"}) {
    op.Attr(StrCat(name, ": list(string) >= 0"));
  }
  return AddSequenceAttrs(op)
      .SetShapeFn(ParseSequenceExampleShape)
      .Doc(
          "Parses serialized SequenceExample messages: the features of their contexts as "
          "`ParseExample` does, and lists of features. A dense list that is missing is an error "
          "unless it is named in `feature_list_dense_missing_assumed_empty`; examples are padded "
          "to the longest.");
}

OpDefBuilder ParseSequenceExampleV2() {
  OpDefBuilder op("ParseSequenceExampleV2");
  op.Signature(
      "serialized: string, debug_name: string, context_sparse_keys: string, context_dense_keys: "
      "string, context_ragged_keys: string, feature_list_sparse_keys: string, "
      "feature_list_dense_keys: string, feature_list_ragged_keys: string, "
      "feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: Tcontext_dense -> "
      "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: "
      "context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, "
      "context_dense_values: Tcontext_dense, context_ragged_values: context_ragged_value_types, "
      "context_ragged_row_splits: context_ragged_split_types, feature_list_sparse_indices: "
      "Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, "
      "feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: "
      "feature_list_dense_types, feature_list_dense_lengths: Nfeature_list_dense * int64, "
      "feature_list_ragged_values: feature_list_ragged_value_types, "
      "feature_list_ragged_outer_splits: feature_list_ragged_split_types, "
      "feature_list_ragged_inner_splits: feature_list_ragged_split_types");
  AddSequenceAttrs(
      {"Ncontext_sparse", "Tcontext_dense", "context_sparse_types", "context_ragged_value_types",
       "context_ragged_split_types", "context_dense_shapes", "Nfeature_list_sparse",
       "Nfeature_list_dense", "feature_list_dense_types", "feature_list_sparse_types",
       "feature_list_ragged_value_types", "feature_list_ragged_split_types",
       "feature_list_dense_shapes"},
      &op);
  return op.SetShapeFn(ParseSequenceExampleV2Shape)
      .Doc(
          "As `ParseSequenceExample`, with ragged features and lists, and with keys as vectors. A "
          "scalar is one example: its outputs have no dimension of examples.");
}

OpDefBuilder ParseSingleSequenceExample() {
  OpDefBuilder op("ParseSingleSequenceExample");
  op.Signature(
      "serialized: string, feature_list_dense_missing_assumed_empty: string, "
      "context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * "
      "string, feature_list_sparse_keys: Nfeature_list_sparse * string, feature_list_dense_keys: "
      "Nfeature_list_dense * string, context_dense_defaults: Tcontext_dense, debug_name: string "
      "-> context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: "
      "context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, "
      "context_dense_values: Tcontext_dense, feature_list_sparse_indices: Nfeature_list_sparse * "
      "int64, feature_list_sparse_values: feature_list_sparse_types, feature_list_sparse_shapes: "
      "Nfeature_list_sparse * int64, feature_list_dense_values: feature_list_dense_types");
  return AddSequenceAttrs(op)
      .SetShapeFn(ParseSingleSequenceExampleShape)
      .Doc("As `ParseSequenceExample`, for one example.");
}

[[maybe_unused]] const internal::OpRegistrar sequence_ops[] = {
    ParseSequenceExample(), ParseSequenceExampleV2(), ParseSingleSequenceExample()};

// --- other text and bytes ------------------------------------------------------------------------

/// A vector for every string.
absl::Status DecodeRawShape(InferenceContext* c) {
  c->set_output(0, c->input(0).Concatenate(InferenceContext::VectorOf(-1)));
  return absl::OkStatus();
}

absl::Status DecodePaddedRawShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t bytes, c->InputAsDim(1));
  ElementType type = ElementType::kInvalid;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("out_type", &type));
  int64_t elements = -1;
  if (bytes >= 0) {
    TROUPE_ASSIGN_OR_RETURN(elements, DivideDim(bytes, ElementSize(type), true));
  }
  c->set_output(0, c->input(0).Concatenate(InferenceContext::VectorOf(elements)));
  return absl::OkStatus();
}

absl::Status DecodeCsvShape(InferenceContext* c) {
  for (int i = 1; i < c->num_inputs(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape shape,
                            InferenceContext::WithRankAtMost(c->input(i), 1));
    if (!shape.unknown_rank() && shape.rank() == 1 && shape.dim(0) > 1) {
      return InvalidArgument("the default of a column is a scalar or a vector of at most one ",
                             "element, got shape ", shape.ToString());
    }
  }
  return UnchangedShape(c);
}

REGISTER_OP("DecodeRaw")
    .Signature("bytes: string -> output: out_type")
    .Attr(
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, "
        "complex128, bool, bfloat16}")
    .Attr("little_endian: bool = true")
    .SetShapeFn(DecodeRawShape)
    .Doc("Reads the bytes of each string, all of one length, as the elements of a vector.");

REGISTER_OP("DecodePaddedRaw")
    .Signature("input_bytes: string, fixed_length: int32 -> output: out_type")
    .Attr("out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}")
    .Attr("little_endian: bool = true")
    .SetShapeFn(DecodePaddedRawShape)
    .Doc(
        "As `DecodeRaw`, of strings that are cut off or filled up with zeros to `fixed_length` "
        "bytes.");

REGISTER_OP("DecodeCompressed")
    .Signature("bytes: string -> output: string")
    .Attr("compression_type: string = ''")
    .SetShapeFn(UnchangedShape)
    .Doc("Decompresses each string: `compression_type` is '', 'ZLIB' or 'GZIP'.");

REGISTER_OP("DecodeCSV")
    .Signature("records: string, record_defaults: OUT_TYPE -> output: OUT_TYPE")
    .Attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
    .Attr("field_delim: string = ','")
    .Attr("use_quote_delim: bool = true")
    .Attr("na_value: string = ''")
    .Attr("select_cols: list(int) = []")
    .SetShapeFn(DecodeCsvShape)
    .Doc(
        "Splits lines of CSV (RFC 4180) into columns, each of the shape of `records`. An empty "
        "field, or `na_value`, has the column's default; an empty default makes it required. "
        "`select_cols` names the columns that are wanted, in ascending order.");

REGISTER_OP("DecodeJSONExample")
    .Signature("json_examples: string -> binary_examples: string")
    .SetShapeFn(UnchangedShape)
    .Doc("Makes serialized Example messages of their JSON form.");

REGISTER_OP("ParseTensor")
    .Signature("serialized: string -> output: out_type")
    .Attr("out_type: type")
    .SetShapeFn(UnknownShape)
    .Doc("Makes a tensor of a serialized TensorProto message, which must be of type `out_type`.");

REGISTER_OP("SerializeTensor")
    .Signature("tensor: T -> serialized: string")
    .Attr("T: type")
    .SetShapeFn(ScalarShape)
    .Doc("Makes a serialized TensorProto message of a tensor.");

}  // namespace
}  // namespace troupe
