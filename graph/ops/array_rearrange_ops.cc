// Diagonals, reversals, rotations and other ways to arrange elements anew.
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status DiagShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape diagonal, C::WithRankAtLeast(c->input(0), 1));
  if (diagonal.rank() > Shape::kMaxRank / 2) {
    return InvalidArgument("A diagonal of shape ", diagonal.ToString(), " has too many dimensions");
  }
  return SetShape(c, diagonal.Concatenate(diagonal));
}

absl::Status DiagPartShape(InferenceContext* c) {
  const PartialShape& input = c->input(0);
  if (input.unknown_rank()) return UnknownShape(c);
  if (input.rank() == 0 || input.rank() % 2 != 0) {
    return InvalidArgument("The input must have an even number of dimensions, not the shape ",
                           input.ToString());
  }
  const int half = input.rank() / 2;
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rows, C::Subshape(input, 0, half));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape columns, C::Subshape(input, half));
  return SetShape(c, C::Merge(rows, columns));
}

absl::Status ParallelConcatShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, c->attrs().Get<PartialShape>("shape"));
  if (!shape.fully_known()) {
    return InvalidArgument("The attribute `shape` must be known, but is ", shape.ToString());
  }
  PartialShape merged;
  for (int i = 0; i < c->num_inputs(); ++i) {
    const PartialShape& input = c->input(i);
    if (!input.fully_known() || input.rank() == 0 || input.dim(0) != 1) {
      return InvalidArgument("The shapes of all inputs must be known and begin with 1, not ",
                             input.ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(merged, C::Merge(merged, input));
  }
  return SetShape(c, shape);
}

absl::Status ReverseShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape dims, C::WithRank(c->input(1), 1));
  PartialShape input = c->input(0);
  if (dims.dim(0) > 8 || input.rank() > 8) {
    return InvalidArgument("A tensor to be reversed has at most 8 dimensions");
  }
  if (dims.dim(0) != -1) {
    TROUPE_ASSIGN_OR_RETURN(input, C::WithRank(input, static_cast<int>(dims.dim(0))));
  }
  return SetShape(c, input);
}

absl::Status ReverseSequenceShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape lengths, C::WithRank(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch_dim, c->attrs().Get<int64_t>("batch_dim"));
  TROUPE_ASSIGN_OR_RETURN(const int64_t seq_dim, c->attrs().Get<int64_t>("seq_dim"));
  const PartialShape& input = c->input(0);
  if (input.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(const int batch, CanonicalAxis(batch_dim, input.rank(), "batch_dim"));
  TROUPE_RETURN_IF_ERROR(CanonicalAxis(seq_dim, input.rank(), "seq_dim").status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, C::MergeDim(input.dim(batch), lengths.dim(0)));
  return SetShape(c, C::ReplaceDim(input, batch, size));
}

absl::Status RollShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRankAtLeast(c->input(0), 1).status());
  TROUPE_RETURN_IF_ERROR(C::WithRankAtMost(c->input(1), 1).status());
  TROUPE_RETURN_IF_ERROR(C::WithRankAtMost(c->input(2), 1).status());
  return UnchangedShape(c);
}

}  // namespace

REGISTER_OP("Diag")
    .Signature("diagonal: T -> output: T")
    .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
    .SetShapeFn(DiagShape)
    .Doc(
        "Gives a tensor of the shape of `diagonal` twice, with its elements where both halves of "
        "the coordinates are equal, and zeros elsewhere.");

REGISTER_OP("DiagPart")
    .Signature("input: T -> diagonal: T")
    .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
    .SetShapeFn(DiagPartShape)
    .Doc(
        "Gives the elements of `input`, whose shape must be the same one twice, where both halves "
        "of the coordinates are equal: a tensor of half as many dimensions.");

REGISTER_OP("ImmutableConst")
    .Signature("-> tensor: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Attr("memory_region_name: string")
    .SetShapeFn(ShapeAttrShape)
    .Doc(
        "Gives a constant of type `dtype` and shape `shape`, whose bytes are the first ones of the "
        "file `memory_region_name`.");

REGISTER_OP("ParallelConcat")
    .Signature("values: N * T -> output: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("shape: shape")
    .SetShapeFn(ParallelConcatShape)
    .Doc(
        "Joins `values`, which all have the same shape, with 1 as its first size, along the first "
        "dimension. `shape` is the result's.");

REGISTER_OP("Reverse")
    .Signature("tensor: T, dims: bool -> output: T")
    .Attr(
        "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, "
        "float, double, complex64, complex128, string}")
    .SetShapeFn(ReverseShape)
    .Doc(
        "Reverses the order of the elements along the dimensions of `tensor` for which the vector "
        "`dims` is true.");

REGISTER_OP("ReverseSequence")
    .Signature("input: T, seq_lengths: Tlen -> output: T")
    .Attr("seq_dim: int")
    .Attr("batch_dim: int = 0")
    .Attr("T: type")
    .Attr("Tlen: {int32, int64} = DT_INT64")
    .SetShapeFn(ReverseSequenceShape)
    .Doc(
        "Reverses the order of the first elements along the dimension `seq_dim` of `input`: for "
        "slice i along the dimension `batch_dim` of the first seq_lengths[i].");

REGISTER_OP("Roll")
    .Signature("input: T, shift: Tshift, axis: Taxis -> output: T")
    .Attr("T: type")
    .Attr("Tshift: {int32, int64}")
    .Attr("Taxis: {int32, int64}")
    .SetShapeFn(RollShape)
    .Doc(
        "Moves the elements of `input` by shift[i] places along the dimension axis[i], for each i; "
        "those that leave it at one end come in at the other. `shift` and `axis` are scalars or "
        "vectors; a dimension that is named repeatedly is moved by the sum.");

REGISTER_OP("TileGrad")
    .Signature("input: T, multiples: int32 -> output: T")
    .Attr("T: type")
    .Deprecated(3, "TileGrad has been replaced with reduce_sum")
    .SetShapeFn(UnknownShape)
    .Doc("Gradient of `Tile`: adds up the multiples[d] parts of `input` along each dimension d.");

}  // namespace troupe
