// Strings one by one: to and from numbers, base 64, letters, substrings, templates.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status SubstrShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape position, C::Merge(c->input(1), c->input(2)));
  return SetShape(c, C::Broadcast(c->input(0), position));
}

/// One placeholder for each input.
absl::Status StringFormatShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, c->attrs().Get<std::string>("template"));
  TROUPE_ASSIGN_OR_RETURN(const std::string placeholder,
                          c->attrs().Get<std::string>("placeholder"));
  if (placeholder.empty()) return InvalidArgument("`placeholder` is empty");
  int places = 0;
  for (size_t at = text.find(placeholder); at != std::string::npos;
       at = text.find(placeholder, at + placeholder.size())) {
    ++places;
  }
  if (places != c->num_inputs()) {
    return InvalidArgument("the template has ", places, " placeholders, but there are ",
                           c->num_inputs(), " inputs");
  }
  return ScalarShape(c);
}

REGISTER_OP("AsString")
    .Signature("input: T -> output: string")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64, complex64, complex128, bool, variant, string}")
    .Attr("precision: int = -1")
    .Attr("scientific: bool = false")
    .Attr("shortest: bool = false")
    .Attr("width: int = -1")
    .Attr("fill: string = ''")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Writes each element as text, numbers as C's printf does. Same shape as `input`. "
        "`precision`: digits after the point; -1: six. `scientific` writes an exponent, `shortest` "
        "one where it makes the text shorter; both and `precision` are for floating and complex "
        "types. `width`: least number of characters; -1: none. `fill`: one of printf's flags ' ', "
        "'+', '-', '0', '#', or nothing. A complex number is (real,imaginary). Strings stay as "
        "they are.");

REGISTER_OP("StringToNumber")
    .Signature("string_tensor: string -> output: out_type")
    .Attr("out_type: {float, double, int32, int64, uint32, uint64} = float")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "The number that each string is, of `out_type`; same shape. Space around it is ignored. "
        "Anything else that is no number, and an integer that does not fit, are errors; a floating "
        "number that is too large is infinite.");

REGISTER_OP("EncodeBase64")
    .Signature("input: string -> output: string")
    .Attr("pad: bool = false")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Encodes bytes in base 64 with the alphabet for web addresses ('-' and '_'). Same shape. "
        "`pad`: '=' make lengths multiples of four.");

REGISTER_OP("DecodeBase64")
    .Signature("input: string -> output: string")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Decodes base 64 in the alphabet for web addresses ('-' and '_'), padded or not. Same "
        "shape. Other characters, white space too, are errors.");

REGISTER_OP("StringLength")
    .Signature("input: string -> output: int32")
    .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "The length of each string in bytes, or, if `unit` says so, in characters of UTF-8. Same "
        "shape.");

REGISTER_OP("StringLower")
    .Signature("input: string -> output: string")
    .Attr("encoding: string = ''")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Small letters for capital ones. Same shape. `encoding`: '' knows ASCII's letters only; "
        "'utf-8' knows Unicode's, ends a string at its first zero byte and replaces what is no "
        "UTF-8 by U+FFFD.");

REGISTER_OP("StringUpper")
    .Signature("input: string -> output: string")
    .Attr("encoding: string = ''")
    .SetShapeFn(UnchangedShape)
    .Doc("Capital letters for small ones; `encoding` is as for `StringLower`. Same shape.");

REGISTER_OP("StringStrip")
    .Signature("input: string -> output: string")
    .SetShapeFn(UnchangedShape)
    .Doc("Removes ASCII's white space from both ends of each string. Same shape.");

REGISTER_OP("Substr")
    .Signature("input: string, pos: T, len: T -> output: string")
    .Attr("T: {int32, int64}")
    .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
    .SetShapeFn(SubstrShape)
    .Doc(
        "At most `len` bytes, or characters of UTF-8 if `unit` says so, from position `pos` on of "
        "each string. A negative position counts from the end; one beyond the string is an error. "
        "`pos` and `len` have one shape; `input` and it are broadcast against each other.");

REGISTER_OP("StringFormat")
    .Signature("inputs: T -> output: string")
    .Attr("T: list(type) >= 0")
    .Attr("template: string = '%s'")
    .Attr("placeholder: string = '%s'")
    .Attr("summarize: int = 3")
    .SetShapeFn(StringFormatShape)
    .Doc(
        "`template` with each `placeholder` in it replaced by the text of one of the inputs, in "
        "order, of which there are as many. A scalar. `summarize`: how many elements are written "
        "at both ends of each dimension; -1: all.");

}  // namespace
}  // namespace troupe
