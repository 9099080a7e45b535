#include "api/layers/bidirectional_rnn.h"

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// Each sequence from its last step to its first one; what follows them stays.
Output Reversed(const Scope& scope, const Output& x, const BidirectionalRnnOptions& options) {
  const int time = options.time_major ? 0 : 1;
  if (!options.sequence_length) return ops::ReverseV2(scope, x, {time});
  return ops::ReverseSequence(scope, x, *options.sequence_length, time, {.batch_dim = 1 - time});
}

}  // namespace

BidirectionalRnnResult BidirectionalDynamicRnn(const Scope& scope, const RnnCell& forward,
                                               const RnnCell& backward, const Output& inputs,
                                               const BidirectionalRnnOptions& options) {
  const Scope own = VariableScope(scope, options.name, {.reuse = options.reuse});
  if (!own.ok() || !inputs.valid()) return {};
  RnnOptions way = {.sequence_length = options.sequence_length,
                    .initial_state = options.initial_forward_state,
                    .time_major = options.time_major,
                    .parallel_iterations = options.parallel_iterations,
                    .name = "fw"};
  BidirectionalRnnResult result;
  result.forward = DynamicRnn(own, forward, inputs, way);
  way.initial_state = options.initial_backward_state;
  way.name = "bw";
  if (!own.ok()) return {};
  result.backward = DynamicRnn(own, backward, Reversed(own, inputs, options), way);
  if (!own.ok()) return {};
  result.backward.outputs = Reversed(own, result.backward.outputs, options);
  return result;
}

StackedBidirectionalRnnResult StackedBidirectionalDynamicRnn(
    const Scope& scope, const std::vector<RnnCellPtr>& forward,
    const std::vector<RnnCellPtr>& backward, const Output& inputs,
    const BidirectionalRnnOptions& options) {
  const Scope own = VariableScope(scope, options.name, {.reuse = options.reuse});
  if (forward.empty() || forward.size() != backward.size() ||
      !options.initial_forward_state.empty() || !options.initial_backward_state.empty()) {
    own.UpdateStatus(InvalidArgument(
        "a stacked bidirectional network needs as many cells forward, ", forward.size(),
        ", as backward, ", backward.size(), ", at least one, and takes no initial states"));
  }
  StackedBidirectionalRnnResult result{inputs, {}, {}};
  BidirectionalRnnOptions each = options;
  each.name = "bidirectional_rnn";
  each.reuse = std::nullopt;
  for (size_t i = 0; i < forward.size() && own.ok(); ++i) {
    const BidirectionalRnnResult both = BidirectionalDynamicRnn(
        VariableScope(own, StrCat("cell_", i)), *forward[i], *backward[i], result.outputs, each);
    if (!own.ok()) break;
    result.outputs = ops::ConcatV2(own, {both.forward.outputs, both.backward.outputs}, 2);
    result.forward_states.push_back(both.forward.state);
    result.backward_states.push_back(both.backward.state);
  }
  return own.ok() ? result : StackedBidirectionalRnnResult();
}

}  // namespace troupe
