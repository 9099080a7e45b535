// Recurrent cells.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// All outputs [batch of x, cells of the state that is input 1].
absl::Status CellShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape state, C::WithRank(c->input(1), 2));
  for (int i = 0; i < c->num_outputs(); ++i) {
    c->set_output(i, PartialShape({x.dim(0), state.dim(1)}));
  }
  return absl::OkStatus();
}

absl::Status LstmCellGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape state, C::WithRank(c->input(1), 2));
  TROUPE_ASSIGN_OR_RETURN(const int64_t gates, MultiplyDims(state.dim(1), 4));
  c->set_output(0, PartialShape({x.dim(0), state.dim(1)}));
  c->set_output(1, PartialShape({x.dim(0), gates}));
  for (int i = 2; i < 5; ++i) c->set_output(i, C::VectorOf(state.dim(1)));
  return absl::OkStatus();
}

absl::Status BlockLstmShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRank(c->input(1), 3));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape bias, C::WithRank(c->input(8), 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t cells, DivideDim(bias.dim(0), 4, /*exact=*/true));
  for (int i = 0; i < 7; ++i) c->set_output(i, PartialShape({x.dim(0), x.dim(1), cells}));
  return absl::OkStatus();
}

/// The gradients of inputs 1 to 8, each of its input's shape.
absl::Status BlockLstmGradShape(InferenceContext* c) {
  constexpr int kRanks[] = {3, 2, 2, 2, 1, 1, 1, 1};
  for (int i = 0; i < 8; ++i) {
    TROUPE_ASSIGN_OR_RETURN(PartialShape shape, C::WithRank(c->input(1 + i), kRanks[i]));
    c->set_output(i, std::move(shape));
  }
  return absl::OkStatus();
}

absl::Status GruCellGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape state, C::WithRank(c->input(1), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape gates, C::WithRank(c->input(2), 2));
  const PartialShape states({x.dim(0), state.dim(1)});
  c->set_output(0, x);
  c->set_output(1, states);
  c->set_output(2, states);
  c->set_output(3, PartialShape({x.dim(0), gates.dim(1)}));
  return absl::OkStatus();
}

constexpr char kTypes[] = "T: {half, float}";

OpDefBuilder Lstm(const char* name, const std::string& signature, bool has_bias, const char* clip,
                  ShapeFn shape_fn, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature);
  if (has_bias) op.Attr("forget_bias: float = 1.0");
  op.Attr(clip).Attr("use_peephole: bool = false").Attr(kTypes);
  op.SetShapeFn(shape_fn).Doc(doc);
  return op;
}

OpDefBuilder LstmGrad(const char* name, const std::string& signature, ShapeFn shape_fn,
                      const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature).Attr("use_peephole: bool").Attr(kTypes).SetShapeFn(shape_fn).Doc(doc);
  return op;
}

const std::string& CellInputs() {
  static const auto* inputs =
      new std::string("x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T");
  return *inputs;
}
std::string CellSignature(const char* first) {
  return first + CellInputs() + " -> i: T, cs: T, f: T, o: T, ci: T, co: T, h: T";
}
std::string BlockGradSignature() {
  return "seq_len_max: int64, " + CellInputs() +
         ", i: T, cs: T, f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T -> x_grad: T, "
         "cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, "
         "b_grad: T";
}

[[maybe_unused]] const internal::OpRegistrar kOps[] = {
    Lstm(
        "LSTMBlockCell", CellSignature(""), true, "cell_clip: float = 3.0", CellShape,
        "Computes one step of an LSTM cell from `x` [batch, inputs], the last cell state `cs_prev` "
        "and output `h_prev` [batch, cells], the weights `w` [inputs + cells, 4 * cells] and bias "
        "`b` of the gates, in the order input, cell, forget, output. Gives the input gate `i`, the "
        "cell state `cs`, the forget gate `f`, the output gate `o`, the cell's input `ci` and "
        "output `co` and the output `h`. `forget_bias` is added to the forget gate, the cell "
        "state is clipped to `cell_clip` (not if that is 0). With `use_peephole` the gates also "
        "see the cell state, with the weights `wci`, `wcf`, `wco`."),
    Lstm(
        "BlockLSTM", CellSignature("seq_len_max: int64, "), true, "cell_clip: float = 3.0",
        BlockLstmShape,
        "Computes `LSTMBlockCell` for the first `seq_len_max` steps of `x` [steps, batch, inputs]; "
        "outputs [steps, batch, cells] are 0 for the others."),
    Lstm(
        "BlockLSTMV2", CellSignature("seq_len_max: int64, "), false, "cell_clip: float = 0.0",
        BlockLstmShape,
        "Computes `LSTMBlockCell` for the first `seq_len_max` steps of `x` [steps, batch, inputs]; "
        "outputs [steps, batch, cells] are 0 for the others. The gates are in the order input, "
        "forget, cell, output, and there is no forget bias. As in TensorFlow, what is registered "
        "as "
        "its gradient takes the order of `BlockLSTM`, so that it is none: train with that op."),
    LstmGrad("LSTMBlockCellGrad",
             CellInputs() +
                 ", i: T, cs: T, f: T, o: T, ci: T, co: T, cs_grad: T, h_grad: T -> cs_prev_grad: "
                 "T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
             LstmCellGradShape,
             "Gradients of `LSTMBlockCell` with regard to `cs_prev`, the gates before their "
             "non-linearities, `dicfo` [batch, 4 * cells], and the peepholes' weights, from its "
             "inputs and outputs and the gradients of `cs` and `h`."),
    LstmGrad("BlockLSTMGrad", BlockGradSignature(), BlockLstmGradShape,
             "Gradients of `BlockLSTM` with regard to its inputs, from these, its outputs and the "
             "gradients of `cs` and `h`."),
    LstmGrad(
        "BlockLSTMGradV2", BlockGradSignature(), BlockLstmGradShape,
        "Gradients of `BlockLSTMV2` with regard to its inputs, from these, its outputs and the "
        "gradients of `cs` and `h`."),
};

}  // namespace

REGISTER_OP("GRUBlockCell")
    .Signature("x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T -> r: T, u: T, c: T, h: T")
    .Attr("T: {float}")
    .SetShapeFn(CellShape)
    .Doc(
        "Computes one step of a GRU cell from `x` [batch, inputs], the last output `h_prev` "
        "[batch, "
        "cells] and the weights and biases of the reset and update gates (`w_ru` [inputs + cells, "
        "2 * cells], `b_ru`) and of the cell (`w_c` [inputs + cells, cells], `b_c`). Gives the "
        "reset gate `r`, the update gate `u`, the candidate `c` and the output `h` = (1 - u) * c + "
        "u * h_prev.");

REGISTER_OP("GRUBlockCellGrad")
    .Signature(
        "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T -> d_x: T, "
        "d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T")
    .Attr("T: {float}")
    .SetShapeFn(GruCellGradShape)
    .Doc(
        "Gradients of `GRUBlockCell` with regard to `x`, `h_prev` and the candidate and the gates "
        "before their non-linearities, from its inputs and outputs and the gradient `d_h`.");

}  // namespace troupe
