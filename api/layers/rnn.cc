#include "api/layers/rnn.h"

#include <utility>

#include "api/control_flow.h"
#include "api/expr.h"
#include "api/internal/layer_parts.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

using layers::Weights;

/// [x, h] times a kernel, plus a bias: [batch, units].
Output Linear(const Scope& scope, const Output& input, const Output& h, int64_t h_size,
              int64_t units, double bias, const char* prefix = "") {
  if (!scope.ok()) return Output();
  const PartialShape& shape = input.shape();
  if (shape.unknown_rank() || shape.rank() != 2 || shape.dim(1) < 1) {
    scope.UpdateStatus(InvalidArgument("a recurrent cell's input has the shape ", shape.ToString(),
                                       ", not [batch, depth] with a known depth"));
    return Output();
  }
  const Output kernel = Weights(scope, StrCat(prefix, "kernel"), {shape.dim(1) + h_size, units},
                                {.type = input.type()});
  const Output biases = Weights(scope, StrCat(prefix, "bias"), {units},
                                {.initializer = ConstantInitializer(bias), .type = input.type()});
  if (!scope.ok()) return Output();
  const Output both = ops::ConcatV2(scope, {input, h}, 1);
  return ops::BiasAdd(scope, ops::MatMul(scope, both, kernel), biases);
}

/// `state` has what the cell needs.
void CheckState(const Scope& scope, const RnnCell& cell, const std::vector<Output>& state) {
  const size_t wanted = cell.state_sizes().size();
  if (state.size() == wanted) return;
  scope.UpdateStatus(
      InvalidArgument(cell.name(), " has ", wanted, " states, and is given ", state.size()));
}

/// The scope itself, with the variables that are there.
Scope Sharing(const Scope& scope) {
  auto settings = std::make_shared<VariableSettings>(*scope.variables());
  settings->reuse = Reuse::kYes;
  settings->opened = std::make_shared<std::set<std::string>>();
  return scope.WithVariables(std::move(settings));
}

/// The states given, or zeros. InvalidArgument, in the scope, for another number than the cell has.
std::vector<Output> InitialState(const Scope& scope, const RnnCell& cell, const Output& batch,
                                 ElementType type, const RnnOptions& options) {
  std::vector<Output> state = options.initial_state;
  if (state.empty()) state = cell.ZeroState(scope, batch, type);
  if (const size_t wanted = cell.state_sizes().size(); state.size() != wanted) {
    scope.UpdateStatus(InvalidArgument("a recurrent network of ", cell.name(), " has ", wanted,
                                       " states, and is given ", state.size()));
  }
  return state;
}

/// The sequences' lengths as an int32 column, to choose rows by; invalid: there are none.
Output Lengths(const Scope& scope, const RnnOptions& options) {
  if (!options.sequence_length) return Output();
  return ops::ExpandDims(scope, ops::Cast(scope, *options.sequence_length, ElementType::kInt32), 1);
}

/// Where a sequence does not go on (a column), the output is zero and the state stays.
void Stop(const Scope& scope, const Output& goes_on, const std::vector<Output>& before,
          RnnStep* step) {
  step->output = ops::SelectV2(scope, goes_on, step->output, ops::ZerosLike(scope, step->output));
  for (size_t i = 0; i < before.size(); ++i) {
    step->state[i] = ops::SelectV2(scope, goes_on, step->state[i], before[i]);
  }
}

}  // namespace

std::vector<Output> RnnCell::ZeroState(const Scope& scope, const Input& batch,
                                       ElementType type) const {
  std::vector<Output> zeros;
  for (const int64_t size : state_sizes()) {
    const Output dims = ops::Pack(scope, {batch, static_cast<int32_t>(size)});
    zeros.push_back(ops::Fill(scope, dims, ops::Cast(scope, Const(scope, 0.0f), type)));
  }
  return zeros;
}

RnnStep BasicRnnCell::Call(const Scope& scope, const Output& input,
                           const std::vector<Output>& state) const {
  CheckState(scope, *this, state);
  const Scope own = CallScope(scope, name());
  if (!own.ok()) return {};
  const Output h = activation_(own, Linear(own, input, state[0], units_, units_, 0.0));
  return {h, {h}};
}

RnnStep LstmCell::Call(const Scope& scope, const Output& input,
                       const std::vector<Output>& state) const {
  CheckState(scope, *this, state);
  const Scope own = CallScope(scope, name());
  if (!own.ok()) return {};
  const Output all = Linear(own, input, state[1], output_size(), 4 * units_, 0.0);
  const OutputList gates = ops::Split(own, 1, all, 4);  // Input, news, forget, output.
  if (!own.ok()) return {};
  const Expr c(own, state[0]);
  const auto peephole = [&](const char* name, const Output& of) -> Expr {
    return Expr(own, of) * Weights(own, name, {units_}, {.type = input.type()});
  };
  Expr in(own, gates[0]), forget = Expr(own, gates[2]) + options_.forget_bias, out(own, gates[3]);
  if (options_.use_peepholes) {
    forget = forget + peephole("w_f_diag", c);
    in = in + peephole("w_i_diag", c);
  }
  const Expr news(own, options_.activation(own, gates[1]));
  Expr new_c = Expr(own, ops::Sigmoid(own, forget.output())) * c +
               Expr(own, ops::Sigmoid(own, in.output())) * news;
  if (options_.cell_clip > 0 && own.ok()) {
    const Output limit = ops::Cast(own, Const(own, options_.cell_clip), input.type());
    new_c = Expr(own, ops::ClipByValue(own, new_c.output(), ops::Neg(own, limit), limit));
  }
  if (options_.use_peepholes) out = out + peephole("w_o_diag", new_c);
  Output h = Expr(own, ops::Sigmoid(own, out.output())) * options_.activation(own, new_c.output());
  if (options_.projection > 0) {
    h = ops::MatMul(
        own, h,
        Weights(own, "projection/kernel", {units_, options_.projection}, {.type = input.type()}));
  }
  if (!own.ok()) return {};
  return {h, {new_c.output(), h}};
}

RnnStep GruCell::Call(const Scope& scope, const Output& input,
                      const std::vector<Output>& state) const {
  CheckState(scope, *this, state);
  const Scope own = CallScope(scope, name());
  if (!own.ok()) return {};
  const Expr h(own, state[0]);
  const Output gates =
      ops::Sigmoid(own, Linear(own, input, state[0], units_, 2 * units_, 1.0, "gates/"));
  const OutputList parts = ops::Split(own, 1, gates, 2);  // Reset, update.
  if (!own.ok()) return {};
  const Expr update(own, parts[1]);
  const Output news =
      activation_(own, Linear(own, input, h * parts[0], units_, units_, 0.0, "candidate/"));
  const Output result = update * h + (1 - update) * news;
  return {result, {result}};
}

std::vector<int64_t> StackedCell::state_sizes() const {
  std::vector<int64_t> sizes;
  for (const RnnCellPtr& cell : cells_) {
    for (const int64_t size : cell->state_sizes()) sizes.push_back(size);
  }
  return sizes;
}

std::vector<bool> StackedCell::droppable_states() const {
  std::vector<bool> droppable;
  for (const RnnCellPtr& cell : cells_) {
    const std::vector<bool> more = cell->droppable_states();
    droppable.insert(droppable.end(), more.begin(), more.end());
  }
  return droppable;
}

RnnStep StackedCell::Call(const Scope& scope, const Output& input,
                          const std::vector<Output>& state) const {
  CheckState(scope, *this, state);
  const Scope own = CallScope(scope, name());
  RnnStep result{input, {}};
  auto next = state.begin();
  for (size_t i = 0; i < cells_.size() && own.ok(); ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(cells_[i]->state_sizes().size());
    const RnnStep step =
        cells_[i]->Call(VariableScope(own, StrCat("cell_", i)), result.output, {next, end});
    result.output = step.output;
    result.state.insert(result.state.end(), step.state.begin(), step.state.end());
    next = end;
  }
  return result;
}

RnnStep DropoutCell::Call(const Scope& scope, const Output& input,
                          const std::vector<Output>& state) const {
  RnnStep step =
      cell_->Call(scope, layers::DropoutLayer(scope, input, input_rate_, training_), state);
  const std::vector<bool> droppable = cell_->droppable_states();
  for (size_t i = 0; i < step.state.size() && i < droppable.size(); ++i) {
    if (!droppable[i]) continue;
    step.state[i] = layers::DropoutLayer(scope, step.state[i], state_rate_, training_);
  }
  step.output = layers::DropoutLayer(scope, step.output, output_rate_, training_);
  return step;
}

RnnStep ResidualCell::Call(const Scope& scope, const Output& input,
                           const std::vector<Output>& state) const {
  RnnStep step = cell_->Call(scope, input, state);
  if (scope.ok()) step.output = ops::Add(scope, step.output, input);
  return step;
}

RnnResult DynamicRnn(const Scope& scope, const RnnCell& cell, const Output& inputs,
                     const RnnOptions& options) {
  const Scope own = VariableScope(scope, options.name, {.reuse = options.reuse});
  if (!own.ok() || !inputs.valid()) return {};
  const PartialShape& shape = inputs.shape();
  if (shape.unknown_rank() || shape.rank() != 3 || shape.dim(2) < 1) {
    own.UpdateStatus(InvalidArgument("DynamicRnn: the inputs' shape ", shape.ToString(),
                                     " must have 3 axes, the last of a known size"));
    return {};
  }
  const Output turned = options.time_major ? inputs : ops::Transpose(own, inputs, {1, 0, 2});
  const Expr sizes(own, ops::Shape(own, turned));
  const Output time = sizes.Slice({0}), batch = sizes.Slice({1});
  const int64_t known_batch = shape.dim(options.time_major ? 1 : 0);
  std::vector<Output> state = InitialState(own, cell, batch, inputs.type(), options);
  if (!own.ok()) return {};
  const std::vector<int64_t> state_sizes = cell.state_sizes();
  const Output lengths = Lengths(own, options);
  const TensorArray in = TensorArray(own, time, inputs.type()).Unstack(own, turned);
  const TensorArray out(own, time, inputs.type());
  std::vector<Input> variables = {0, out.flow()};
  WhileOptions loop;
  loop.parallel_iterations = options.parallel_iterations;
  loop.shape_invariants = {PartialShape({}), PartialShape()};
  for (size_t i = 0; i < state.size(); ++i) {
    variables.push_back(state[i]);
    loop.shape_invariants.push_back(PartialShape({known_batch, state_sizes[i]}));
  }
  const OutputList end = WhileLoop(
      own, variables,
      [&](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], time); },
      [&](const Scope& s, absl::Span<const Output> v) {
        const std::vector<Output> old(v.begin() + 2, v.end());
        const Output x =
            ops::EnsureShape(s, in.Read(s, v[0]), PartialShape({known_batch, shape.dim(2)}));
        RnnStep step = cell.Call(s, x, old);
        if (!s.ok()) return std::vector<Output>();
        if (lengths.valid()) Stop(s, ops::Less(s, v[0], lengths), old, &step);
        std::vector<Output> next = {ops::Add(s, v[0], 1),
                                    out.WithFlow(v[1]).Write(s, v[0], step.output).flow()};
        next.insert(next.end(), step.state.begin(), step.state.end());
        return next;
      },
      loop);
  if (!own.ok()) return {};
  const Output stacked = ops::EnsureShape(
      own, out.WithFlow(end[1]).Stack(own),
      PartialShape({shape.dim(options.time_major ? 0 : 1), known_batch, cell.output_size()}));
  return {options.time_major ? stacked : ops::Transpose(own, stacked, {1, 0, 2}),
          {end.begin() + 2, end.end()}};
}

StaticRnnResult StaticRnn(const Scope& scope, const RnnCell& cell,
                          const std::vector<Output>& inputs, const RnnOptions& options) {
  const Scope own = VariableScope(scope, options.name, {.reuse = options.reuse});
  if (inputs.empty()) own.UpdateStatus(InvalidArgument("StaticRnn: there are no inputs"));
  if (!own.ok() || !inputs[0].valid()) return {};
  const Output batch = Expr(own, ops::Shape(own, inputs[0])).Slice({0});
  StaticRnnResult result;
  result.state = InitialState(own, cell, batch, inputs[0].type(), options);
  const Output lengths = Lengths(own, options);
  for (size_t t = 0; t < inputs.size() && own.ok(); ++t) {
    const Scope here = t == 0 ? own : Sharing(own);
    RnnStep step = cell.Call(here, inputs[t], result.state);
    if (!own.ok()) break;
    if (lengths.valid()) {
      Stop(own, ops::Less(own, static_cast<int32_t>(t), lengths), result.state, &step);
    }
    result.outputs.push_back(step.output);
    result.state = step.state;
  }
  return own.ok() ? result : StaticRnnResult();
}

}  // namespace troupe
