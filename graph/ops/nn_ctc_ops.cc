// Connectionist temporal classification: loss and decoders.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// The batch size of `inputs` [time, batch, classes] and of the lengths of its sequences, input
/// `lengths`.
absl::StatusOr<int64_t> BatchOf(InferenceContext* c, int lengths) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape inputs, C::WithRank(c->input(0), 3));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape vector, C::WithRank(c->input(lengths), 1));
  return C::MergeDim(inputs.dim(1), vector.dim(0));
}

absl::Status CtcLossShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch, BatchOf(c, 3));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape inputs, C::WithRank(c->input(0), 3));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(1), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape values, C::WithRank(c->input(2), 1));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(indices.dim(0), values.dim(0)).status());
  c->set_output(0, C::VectorOf(batch));
  c->set_output(1, C::ReplaceDim(inputs, 1, batch));
  return absl::OkStatus();
}

/// `paths` sparse matrices, then a matrix of a number for each sequence and path.
absl::Status DecodedShape(InferenceContext* c, int paths) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch, BatchOf(c, 1));
  for (int i = 0; i < paths; ++i) {
    c->set_output(i, PartialShape({-1, 2}));
    c->set_output(paths + i, C::VectorOf(-1));
    c->set_output(2 * paths + i, C::VectorOf(2));
  }
  c->set_output(3 * paths, PartialShape({batch, paths}));
  return absl::OkStatus();
}

absl::Status CtcGreedyDecoderShape(InferenceContext* c) { return DecodedShape(c, 1); }

absl::Status CtcBeamSearchDecoderShape(InferenceContext* c) {
  return DecodedShape(c, (c->num_outputs() - 1) / 3);
}

}  // namespace

REGISTER_OP("CTCLoss")
    .Signature(
        "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 -> loss: "
        "T, gradient: T")
    .Attr("preprocess_collapse_repeated: bool = false")
    .Attr("ctc_merge_repeated: bool = true")
    .Attr("ignore_longer_outputs_than_inputs: bool = false")
    .Attr("T: {float, double} = DT_FLOAT")
    .SetShapeFn(CtcLossShape)
    .Doc(
        "Computes how unlikely sequences of labels are, given `inputs` [time, batch, classes], the "
        "logits of the classes, of which the last is the blank one, in each step. The labels are a "
        "sparse matrix [batch, position]: `labels_values` at `labels_indices`, in order; "
        "`sequence_length` has the number of steps of each sequence. Gives `loss` [batch], the "
        "negative logarithm of the probability, and its `gradient` with regard to `inputs`. With "
        "`preprocess_collapse_repeated` equal labels in a row count as one; without "
        "`ctc_merge_repeated` equal classes in a row are not one label. A sequence of more labels "
        "than steps is an error, or has loss 0 if `ignore_longer_outputs_than_inputs`.");

REGISTER_OP("CTCGreedyDecoder")
    .Signature(
        "inputs: T, sequence_length: int32 -> decoded_indices: int64, decoded_values: int64, "
        "decoded_shape: int64, log_probability: T")
    .Attr("merge_repeated: bool = false")
    .Attr("blank_index: int = -1")
    .Attr("T: {float, double} = DT_FLOAT")
    .SetShapeFn(CtcGreedyDecoderShape)
    .Doc(
        "Takes the class with the largest logit in each step of `inputs` [time, batch, classes], "
        "leaves the blank one out (`blank_index`, from the back if negative) and, with "
        "`merge_repeated`, all but the first of equal ones in a row. `sequence_length` has the "
        "number of steps of each sequence. Gives the classes as a sparse matrix [batch, position] "
        "(`decoded_indices`, `decoded_values`, `decoded_shape`) and `log_probability` [batch, 1], "
        "the negative sum of the largest logits.");

REGISTER_OP("CTCBeamSearchDecoder")
    .Signature(
        "inputs: T, sequence_length: int32 -> decoded_indices: top_paths * int64, decoded_values: "
        "top_paths * int64, decoded_shape: top_paths * int64, log_probability: T")
    .Attr("beam_width: int >= 1")
    .Attr("top_paths: int >= 1")
    .Attr("merge_repeated: bool = true")
    .Attr("T: {float, double} = DT_FLOAT")
    .SetShapeFn(CtcBeamSearchDecoderShape)
    .Doc(
        "Finds the `top_paths` likeliest sequences of labels for `inputs` [time, batch, classes], "
        "logits of which the last class is the blank one, keeping `beam_width` candidates after "
        "each step. `sequence_length` has the number of steps of each sequence. Gives for each "
        "path the labels as a sparse matrix [batch, position] (`decoded_indices`, "
        "`decoded_values`, `decoded_shape`), with `merge_repeated` equal ones in a row as one, and "
        "`log_probability` [batch, top_paths].");

}  // namespace troupe
