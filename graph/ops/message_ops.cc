// Protocol buffer messages to tensors, and back.
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status DecodeProtoShape(InferenceContext* c) {
  const PartialShape& messages = c->input(0);
  std::vector<ElementType> types;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("output_types", &types));
  const auto fields = static_cast<int64_t>(types.size());
  c->set_output(0, messages.Concatenate(InferenceContext::VectorOf(fields)));
  for (int i = 1; i <= static_cast<int>(fields); ++i) {
    c->set_output(i, messages.Concatenate(InferenceContext::VectorOf(-1)));
  }
  return absl::OkStatus();
}

absl::Status EncodeProtoShape(InferenceContext* c) {
  PartialShape batch;
  for (int i = 1; i < c->num_inputs(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape values,
                            InferenceContext::WithRankAtLeast(c->input(i), 2));
    TROUPE_ASSIGN_OR_RETURN(const PartialShape inner, InferenceContext::Subshape(values, 0, -1));
    TROUPE_ASSIGN_OR_RETURN(batch, InferenceContext::Merge(inner, batch));
  }
  c->set_output(0, batch);
  return absl::OkStatus();
}

REGISTER_OP("DecodeProtoV2")
    .Signature("bytes: string -> sizes: int32, values: output_types")
    .Attr("message_type: string")
    .Attr("field_names: list(string)")
    .Attr("output_types: list(type) >= 0")
    .Attr("descriptor_source: string = 'local://'")
    .Attr("message_format: string = 'binary'")
    .Attr("sanitize: bool = false")
    .SetShapeFn(DecodeProtoShape)
    .Doc(
        "Reads fields of protocol buffer messages, one message a string. `sizes` has one dimension "
        "more than `bytes`: how many values each field has. So has each element of `values`, as "
        "long as the most values of a message, one at least; the rest are the field's default. "
        "`message_type` is the full name of the messages' type, `descriptor_source` what describes "
        "it: 'local://' (what is linked into the program), the path of a file that holds a "
        "serialized FileDescriptorSet, or 'bytes://' and such a set itself. Numbers of 32 bits may "
        "be put out in 64, a float as a double, enumerations as int32, messages and groups as "
        "strings. `message_format` is 'binary' or 'text'. `sanitize` parses whole messages first.");

REGISTER_OP("EncodeProto")
    .Signature("sizes: int32, values: Tinput_types -> bytes: string")
    .Attr("field_names: list(string)")
    .Attr("message_type: string")
    .Attr("descriptor_source: string = 'local://'")
    .Attr("Tinput_types: list(type) >= 1")
    .SetShapeFn(EncodeProtoShape)
    .Doc(
        "Makes serialized protocol buffer messages, the inverse of `DecodeProtoV2`: of each row of "
        "an element of `values` as many values of the field as `sizes` says, a vector of one size "
        "a field for each message.");

}  // namespace
}  // namespace troupe
