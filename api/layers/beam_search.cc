#include "api/layers/beam_search.h"

#include <cmath>
#include <limits>
#include <utility>

#include "api/control_flow.h"
#include "api/expr.h"
#include "api/nn.h"
#include "api/ops.h"
#include "api/variable_scope.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// The rows [batch, beam, ...] of which `beams` [batch, beam] are the numbers within the batch.
Output OfBeams(const Scope& scope, const Output& x, const Output& beams) {
  return ops::GatherV2(scope, x, beams, 1, {.batch_dims = 1});
}

/// [batch * beam, size] as [batch, beam, size], and back.
Output Apart(const Scope& scope, const Output& x, int64_t beams) {
  if (!scope.ok() || !x.valid()) return Output();
  if (x.shape().unknown_rank() || x.shape().rank() != 2 || x.shape().dim(1) < 1) {
    scope.UpdateStatus(InvalidArgument("beam search: states and logits must be [batch * beam, ",
                                       "size] of a known size, not ", x.shape().ToString()));
    return Output();
  }
  return ops::Reshape(scope, x,
                      {-1, static_cast<int32_t>(beams), static_cast<int32_t>(x.shape().dim(1))});
}
Output Together(const Scope& scope, const Output& x) {
  if (!scope.ok() || !x.valid()) return Output();
  return ops::Reshape(scope, x, {-1, static_cast<int32_t>(x.shape().dim(2))});
}

/// log P by the penalty of `lengths` (int64, of its shape or one that is broadcast to it).
Output Score(const Scope& scope, const Output& log_p, const Output& lengths, double penalty) {
  if (penalty == 0 || !scope.ok()) return log_p;
  const Output length = ops::Add(scope, ops::Cast(scope, lengths, log_p.type()), 5.0);
  const Output power = ops::Cast(scope, Const(scope, penalty), log_p.type());
  return ops::RealDiv(scope, log_p, ops::Pow(scope, ops::RealDiv(scope, length, 6.0), power));
}

/// The least number of a floating type, which a sum with a log P cannot make larger.
double Lowest(ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return -65504.0;
    case ElementType::kBfloat16:
      return -3.3895313892515355e38;
    case ElementType::kDouble:
      return std::numeric_limits<double>::lowest();
    default:
      return static_cast<double>(std::numeric_limits<float>::lowest());
  }
}

/// The decoder's own states, which follow the cell's.
struct Beams {
  Output scores, log_p, finished, lengths;
};
constexpr size_t kBeamStates = 4;
Beams BeamsOf(const std::vector<Output>& state) {
  const Output* of_beams = &state[state.size() - kBeamStates];
  return {of_beams[0], of_beams[1], of_beams[2], of_beams[3]};
}

}  // namespace

BeamSearchDecoder::BeamSearchDecoder(RnnCellPtr cell, EmbeddingFunction embedding,
                                     const Output& start_tokens, int32_t end_token,
                                     std::vector<Output> initial_state, BeamSearchOptions options)
    : cell_(std::move(cell)),
      embedding_(std::move(embedding)),
      start_tokens_(start_tokens),
      end_token_(end_token),
      initial_state_(std::move(initial_state)),
      options_(std::move(options)) {}

std::vector<ElementType> BeamSearchDecoder::output_types() const {
  const ElementType type = initial_state_.empty() ? ElementType::kFloat : initial_state_[0].type();
  return {type, ElementType::kInt32, ElementType::kInt32};
}

DecoderStep BeamSearchDecoder::Begin(const Scope& scope) const {
  const int64_t width = options_.beam_width;
  if (width < 1 || width > INT32_MAX) {
    scope.UpdateStatus(InvalidArgument("beam search: there cannot be ", width, " beams"));
  }
  if (!scope.ok() || !start_tokens_.valid()) return {};
  DecoderStep first;
  for (const Output& state : initial_state_) first.state.push_back(Apart(scope, state, width));
  // All beams of a row are the same at first, and only one of them may continue.
  const Output batch = Expr(scope, ops::Shape(scope, start_tokens_)).Slice({0});
  const Output one = ops::OneHot(scope, ops::Fill(scope, ops::ExpandDims(scope, batch, 0), 0),
                                 static_cast<int32_t>(width), true, false);
  const ElementType type = output_types()[0];
  const Output zero = ops::Cast(scope, Const(scope, 0.0f), type);
  const Output never = ops::Cast(scope, Const(scope, -INFINITY), type);
  const Output log_p = ops::SelectV2(scope, one, zero, never);
  first.finished = ops::LogicalNot(scope, one);
  first.state.insert(first.state.end(),
                     {log_p, log_p, first.finished,
                      ops::Fill(scope, ops::Shape(scope, one), Const(scope, int64_t{0}))});
  first.inputs = Apart(scope, embedding_(scope, TileBatch(scope, start_tokens_, width)), width);
  return first;
}

DecoderStep BeamSearchDecoder::Step(const Scope& scope, const Output&, const Output& inputs,
                                    const std::vector<Output>& state) const {
  const int64_t width = options_.beam_width;
  std::vector<Output> cell_state;
  for (size_t i = 0; i + kBeamStates < state.size(); ++i) {
    cell_state.push_back(Together(scope, state[i]));
  }
  RnnStep made = cell_->Call(scope, Together(scope, inputs), cell_state);
  if (options_.output_layer != nullptr && scope.ok()) {
    made.output = options_.output_layer(scope, made.output);
  }
  const Output logits = Apart(scope, made.output, width);  // [batch, beam, tokens]
  if (!scope.ok()) return {};
  const int32_t tokens = static_cast<int32_t>(logits.shape().dim(2));
  const Beams beams = BeamsOf(state);

  // A finished beam goes on with the end token only, for certain.
  const ElementType type = logits.type();
  const auto row = [&](double at_end, double elsewhere) {
    return ops::OneHot(scope, end_token_, tokens, ops::Cast(scope, Const(scope, at_end), type),
                       ops::Cast(scope, Const(scope, elsewhere), type));
  };
  const Output is_finished = ops::ExpandDims(scope, beams.finished, 2);
  const Output log_p = ops::Add(
      scope, ops::ExpandDims(scope, beams.log_p, 2),
      ops::SelectV2(scope, is_finished, row(0, Lowest(type)), ops::LogSoftmax(scope, logits)));
  // Lengths are those without the end token.
  const Output longer =
      ops::LogicalAnd(scope, ops::LogicalNot(scope, is_finished), ops::Less(scope, row(1, 0), 0.5));
  const Output lengths = ops::Add(scope, ops::ExpandDims(scope, beams.lengths, 2),
                                  ops::Cast(scope, longer, ElementType::kInt64));
  const auto flat = [&](const Output& x) {
    return ops::Reshape(scope, x, {-1, static_cast<int32_t>(width) * tokens});
  };
  const auto best = ops::TopKV2(scope, flat(Score(scope, log_p, lengths, options_.length_penalty)),
                                static_cast<int32_t>(width));
  const Output token = ops::FloorMod(scope, best.indices, tokens);
  const Output parent = ops::FloorDiv(scope, best.indices, tokens);

  const Output was_finished = OfBeams(scope, beams.finished, parent);
  const Output goes_on =
      ops::Cast(scope, ops::LogicalNot(scope, was_finished), ElementType::kInt64);
  DecoderStep step;
  step.outputs = {best.values, token, parent};
  for (const Output& of_cell : made.state) {
    step.state.push_back(OfBeams(scope, Apart(scope, of_cell, width), parent));
  }
  step.finished = ops::LogicalOr(scope, was_finished, ops::Equal(scope, token, end_token_));
  step.state.insert(step.state.end(),
                    {best.values, OfBeams(scope, flat(log_p), best.indices), step.finished,
                     ops::Add(scope, OfBeams(scope, beams.lengths, parent), goes_on)});
  step.inputs = Apart(scope, embedding_(scope, ops::Reshape(scope, token, {-1})), width);
  return step;
}

std::vector<Output> BeamSearchDecoder::Finish(const Scope& scope, std::vector<Output> outputs,
                                              const std::vector<Output>& state) const {
  if (!scope.ok()) return {};
  const Output longest = ops::Max(scope, BeamsOf(state).lengths, 1);
  return {outputs[0], GatherTree(scope, outputs[1], outputs[2],
                                 ops::Cast(scope, longest, ElementType::kInt32), end_token_)};
}

BeamSearchResult BeamSearch(const Scope& scope, const BeamSearchDecoder& decoder,
                            const DecodeOptions& options) {
  if (options.impute_finished) {
    scope.UpdateStatus(InvalidArgument("beam search: finished beams are needed as they are"));
  }
  const DecodeResult decoded = DynamicDecode(scope, decoder, options);
  if (!scope.ok()) return {};
  const Beams beams = BeamsOf(decoded.state);
  return {decoded.outputs[1], beams.scores, beams.log_p, beams.lengths};
}

Output TileBatch(const Scope& scope, const Output& x, int64_t multiplier) {
  const Scope own = scope.NewSubScope("tile_batch");
  if (!own.ok() || !x.valid()) return Output();
  const PartialShape& shape = x.shape();
  if (shape.unknown_rank() || shape.rank() < 1 || multiplier < 1 || multiplier > INT32_MAX) {
    own.UpdateStatus(InvalidArgument("TileBatch: ", multiplier, " times each row of the shape ",
                                     shape.ToString()));
    return Output();
  }
  std::vector<int32_t> times(static_cast<size_t>(shape.rank()) + 1, 1);
  times[1] = static_cast<int32_t>(multiplier);
  const Output tiled = ops::Tile(own, ops::ExpandDims(own, x, 1), Tensor::Vector<int32_t>(times));
  const Output rest = ops::StridedSlice(own, ops::Shape(own, x), {1}, {0}, {1}, {.end_mask = 1});
  return ops::Reshape(own, tiled, ops::ConcatV2(own, {Tensor::Vector<int32_t>({-1}), rest}, 0));
}

Output GatherTree(const Scope& scope, const Output& tokens, const Output& parents,
                  const Output& lengths, int32_t end_token) {
  const Scope own = scope.NewSubScope("gather_tree");
  if (!own.ok() || !tokens.valid()) return Output();
  const Expr sizes(own, ops::Shape(own, tokens));
  const Output time = sizes.Slice({0}), width = sizes.Slice({2});
  const Output times = ops::Range(own, 0, time, 1);
  const Output column = ops::ExpandDims(own, lengths, 1);
  const Output own_beams = ops::Range(own, 0, width, 1);  // [beam]
  // From the last step to the first: the beam at each step, and that of the step before.
  const OutputList followed = Scan(
      own,
      [&](const Scope& s, absl::Span<const Output> beams, absl::Span<const Output> rows) {
        const Output is_there = ops::Less(s, rows[1], column);  // [batch, 1]
        const Output before = ops::SelectV2(s, is_there, OfBeams(s, rows[0], beams[1]), own_beams);
        return std::vector<Output>{ops::Identity(s, beams[1]), before};
      },
      {parents, times},
      {ops::BroadcastTo(own, own_beams, sizes.Slice({Range(1, std::nullopt)}).output()),
       ops::BroadcastTo(own, own_beams, sizes.Slice({Range(1, std::nullopt)}).output())},
      {.reverse = true});
  const Output found = ops::GatherV2(own, tokens, followed[0], 2, {.batch_dims = 2});
  // [time, 1, 1] against [batch, 1].
  const Output past = ops::GreaterEqual(own, ops::Reshape(own, times, {-1, 1, 1}), column);
  const Output ends = ops::Cast(own, ops::Equal(own, found, end_token), ElementType::kInt32);
  const Output ended = ops::Greater(own, ops::Cumsum(own, ends, 0, {.exclusive = true}), 0);
  return ops::SelectV2(own, ops::LogicalOr(own, past, ended), end_token, found);
}

}  // namespace troupe
