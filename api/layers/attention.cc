#include "api/layers/attention.h"

#include <cmath>
#include <limits>
#include <utility>

#include "api/expr.h"
#include "api/nn.h"
#include "api/ops.h"

namespace troupe {

namespace {

Output Number(const Scope& scope, float value, ElementType type) {
  return ops::Cast(scope, Const(scope, value), type);
}

Output DenseWithoutBias(const Scope& scope, const char* name, const Output& x, int64_t units) {
  return layers::Dense(scope, x, units, {.name = name, .use_bias = false});
}

}  // namespace

AttentionMechanism::AttentionMechanism(const Scope& scope, int64_t units, const Output& memory,
                                       AttentionOptions options, const char* name)
    : units_(units), options_(std::move(options)), values_(memory) {
  if (options_.name.empty()) options_.name = name;
  if (!scope.ok() || !memory.valid()) return;
  const PartialShape& shape = memory.shape();
  if (shape.unknown_rank() || shape.rank() != 3 || shape.dim(2) < 1) {
    scope.UpdateStatus(InvalidArgument("attention: the memory's shape ", shape.ToString(),
                                       " must have 3 axes, the last of a known size"));
    return;
  }
  depth_ = shape.dim(2);
  if (options_.memory_length) {
    const Output lengths = ops::Cast(scope, *options_.memory_length, ElementType::kInt32);
    const Output time = ops::GatherV2(scope, ops::Shape(scope, memory), 1, 0);
    is_there_ = ops::Less(scope, ops::Range(scope, 0, time, 1), ops::ExpandDims(scope, lengths, 1));
    values_ = ops::SelectV2(scope, ops::ExpandDims(scope, is_there_, 2), memory,
                            Number(scope, 0, memory.type()));
  }
  keys_ = DenseWithoutBias(scope, "memory_layer", values_, units);
}

Output AttentionMechanism::Align(const Scope& scope, const Output& query) const {
  const Scope own = CallScope(scope, options_.name);
  if (!own.ok()) return Output();
  Output scores = Score(own, query);
  if (!own.ok()) return Output();
  if (is_there_.valid()) {
    const float nothing = -std::numeric_limits<float>::infinity();
    scores = ops::SelectV2(own, is_there_, scores, Number(own, nothing, scores.type()));
  }
  return ops::Softmax(own, scores);
}

Output AttentionMechanism::Attend(const Scope& scope, const Output& alignments) const {
  return ops::Einsum(scope, {alignments, values_}, "bt,btd->bd");
}

Output BahdanauAttention::Score(const Scope& scope, const Output& query) const {
  const Output asked = DenseWithoutBias(scope, "query_layer", query, units());
  const ModelVariable v = GetVariable(scope, "attention_v", {units()}, {.type = query.type()});
  if (!scope.ok()) return Output();
  Expr weights(scope, v.value());
  Expr sum = Expr(scope, keys()) + ops::ExpandDims(scope, asked, 1);
  if (scale()) {
    const double length = std::sqrt(1.0 / static_cast<double>(units()));
    const ModelVariable g =
        GetVariable(scope, "attention_g", Shape(),
                    {.initializer = ConstantInitializer(length), .type = query.type()});
    const ModelVariable b =
        GetVariable(scope, "attention_b", {units()},
                    {.initializer = ConstantInitializer(0), .type = query.type()});
    if (!scope.ok()) return Output();
    const Output squares = ReduceSum(scope, ops::Square(scope, weights.output()));
    weights = weights * g.value() * ops::Rsqrt(scope, squares);
    sum = sum + b.value();
  }
  return ReduceSum(scope, weights * ops::Tanh(scope, sum.output()), {.axes = {{2}}});
}

Output LuongAttention::Score(const Scope& scope, const Output& query) const {
  const Output scores = ops::Einsum(scope, {query, keys()}, "bu,btu->bt");
  if (!scale() || !scope.ok()) return scores;
  const ModelVariable g = GetVariable(
      scope, "attention_g", Shape(), {.initializer = ConstantInitializer(1), .type = query.type()});
  return scope.ok() ? ops::Mul(scope, scores, g.value()) : Output();
}

std::vector<int64_t> AttentionCell::state_sizes() const {
  std::vector<int64_t> sizes = cell_->state_sizes();
  sizes.push_back(attention_size());
  return sizes;
}

std::vector<bool> AttentionCell::droppable_states() const {
  std::vector<bool> droppable = cell_->droppable_states();
  droppable.push_back(true);
  return droppable;
}

std::vector<Output> AttentionCell::InitialState(const Scope& scope,
                                                std::vector<Output> cell_state) const {
  if (cell_state.empty()) scope.UpdateStatus(InvalidArgument("attention: the cell has no state"));
  if (!scope.ok()) return {};
  const Output batch = ops::GatherV2(scope, ops::Shape(scope, cell_state[0]), 0, 0);
  const Output sizes = ops::Pack(scope, {batch, static_cast<int32_t>(attention_size())});
  const Output zero = Number(scope, 0, cell_state[0].type());
  cell_state.push_back(ops::EnsureShape(
      scope, ops::Fill(scope, sizes, zero),
      PartialShape({cell_state[0].shape().unknown_rank() ? -1 : cell_state[0].shape().dim(0),
                    attention_size()})));
  return cell_state;
}

RnnStep AttentionCell::Call(const Scope& scope, const Output& input,
                            const std::vector<Output>& state) const {
  if (state.size() != state_sizes().size()) {
    scope.UpdateStatus(InvalidArgument(name(), " has ", state_sizes().size(),
                                       " states, and is given ", state.size()));
  }
  const Scope own = CallScope(scope, name());
  if (!own.ok()) return {};
  RnnStep step = cell_->Call(own, ops::ConcatV2(own, {input, state.back()}, 1),
                             {state.begin(), state.end() - 1});
  if (!own.ok()) return {};
  Output attention = mechanism_->Attend(own, mechanism_->Align(own, step.output));
  if (!own.ok()) return {};
  if (options_.size > 0) {
    attention = DenseWithoutBias(own, "attention_layer",
                                 ops::ConcatV2(own, {step.output, attention}, 1), options_.size);
  }
  step.state.push_back(attention);
  if (options_.output_attention) step.output = attention;
  return step;
}

}  // namespace troupe
