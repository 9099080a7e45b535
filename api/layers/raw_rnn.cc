#include "api/layers/raw_rnn.h"

#include "api/nn.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// The function has given as much as in the first call, all of it valid.
absl::Status Check(const RnnCell& cell, const RawRnnStep& step, size_t emit, size_t loop_state) {
  if (!step.finished.valid() || !step.input.valid()) {
    return InvalidArgument("RawRnn: the loop function must say who has finished, and the input");
  }
  const size_t states = cell.state_sizes().size();
  if (step.state.size() != states || step.emit.size() != emit ||
      step.loop_state.size() != loop_state) {
    return InvalidArgument("RawRnn: the loop function gives ", step.state.size(), " states, ",
                           step.emit.size(), " tensors to emit and ", step.loop_state.size(),
                           " of its own, not ", states, ", ", emit, " and ", loop_state);
  }
  return absl::OkStatus();
}

/// Loop variables that follow one another.
std::vector<Output> Take(absl::Span<const Output>* variables, size_t count) {
  const absl::Span<const Output> taken = variables->subspan(0, count);
  variables->remove_prefix(count);
  return {taken.begin(), taken.end()};
}

}  // namespace

RawRnnResult RawRnn(const Scope& scope, const RnnCell& cell, const RawRnnFunction& function,
                    const RawRnnOptions& options) {
  const Scope own = VariableScope(scope, options.name, {.reuse = options.reuse});
  if (!own.ok()) return {};
  const Output begin = Const(own, 0);
  RawRnnStep first = function(own, {begin, Output(), {}, {}});
  if (!own.ok()) return {};
  if (first.emit.empty()) first.emit = {first.input};
  const size_t emit_count = first.emit.size(), loop_count = first.loop_state.size();
  own.UpdateStatus(Check(cell, first, emit_count, loop_count));
  if (!own.ok()) return {};

  // Time, finished, input, states, what is emitted, the function's own.
  std::vector<Input> variables = {begin, first.finished, first.input};
  WhileOptions loop;
  loop.parallel_iterations = options.parallel_iterations;
  loop.shape_invariants = {PartialShape({}), first.finished.shape(), first.input.shape()};
  for (const Output& state : first.state) {
    variables.push_back(state);
    loop.shape_invariants.push_back(state.shape());
  }
  RawRnnResult result;
  for (const Output& emit : first.emit) {
    result.emit.emplace_back(own, 0, emit.type(), TensorArray::Options{.dynamic_size = true});
    variables.push_back(result.emit.back().flow());
    loop.shape_invariants.push_back(PartialShape());
  }
  for (const Output& state : first.loop_state) {
    variables.push_back(state);
    loop.shape_invariants.push_back(state.shape());
  }

  const auto condition = [](const Scope& s, absl::Span<const Output> v) {
    return ops::LogicalNot(s, ReduceAll(s, v[1]));
  };
  const auto body = [&](const Scope& s, absl::Span<const Output> v) {
    const Output time = v[0], finished = v[1], input = v[2];
    v.remove_prefix(3);
    const std::vector<Output> state = Take(&v, first.state.size()), flows = Take(&v, emit_count);
    const Output next_time = ops::Add(s, time, 1);
    const RnnStep made = cell.Call(s, input, state);
    if (!s.ok()) return std::vector<Output>();
    const RawRnnStep next = function(s, {next_time, made.output, made.state, {v.begin(), v.end()}});
    if (s.ok()) s.UpdateStatus(Check(cell, next, emit_count, loop_count));
    if (!s.ok()) return std::vector<Output>();
    std::vector<Output> results = {next_time, ops::LogicalOr(s, finished, next.finished),
                                   ops::EnsureShape(s, next.input, first.input.shape())};
    for (size_t i = 0; i < state.size(); ++i) {
      const Output kept = ops::Select(s, finished, state[i], next.state[i]);
      results.push_back(ops::EnsureShape(s, kept, first.state[i].shape()));
    }
    for (size_t i = 0; i < emit_count; ++i) {
      const Output kept = ops::Select(s, finished, ops::ZerosLike(s, next.emit[i]), next.emit[i]);
      results.push_back(result.emit[i].WithFlow(flows[i]).Write(s, time, kept).flow());
    }
    results.insert(results.end(), next.loop_state.begin(), next.loop_state.end());
    return results;
  };
  const OutputList end = WhileLoop(own, variables, condition, body, loop);
  if (!own.ok()) return {};
  absl::Span<const Output> left = absl::MakeConstSpan(end).subspan(3);
  result.state = Take(&left, first.state.size());
  for (TensorArray& emit : result.emit) emit = emit.WithFlow(Take(&left, 1)[0]);
  result.loop_state = {left.begin(), left.end()};
  return result;
}

}  // namespace troupe
