/// Recurrent networks that read sequences both ways, as `tf.nn.bidirectional_dynamic_rnn`.
///
///     LstmCell forward(128), backward(128);
///     BidirectionalRnnResult r = BidirectionalDynamicRnn(s, forward, backward, words,
///                                                        {.sequence_length = lengths});
///     Output both = ops::ConcatV2(s, {r.forward.outputs, r.backward.outputs}, 2);
#ifndef TROUPE_API_LAYERS_BIDIRECTIONAL_RNN_H_
#define TROUPE_API_LAYERS_BIDIRECTIONAL_RNN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/layers/rnn.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// As `RnnOptions`. A value.
struct BidirectionalRnnOptions {
  std::optional<Output> sequence_length = std::nullopt;
  std::vector<Output> initial_forward_state = {};  ///< Empty: zeros.
  std::vector<Output> initial_backward_state = {};
  bool time_major = false;
  int64_t parallel_iterations = 32;
  std::string name = "bidirectional_rnn";     ///< The variable scope.
  std::optional<Reuse> reuse = std::nullopt;  ///< What it reuses.
};

struct BidirectionalRnnResult {
  RnnResult forward;
  /// Outputs stand where their inputs do; the state is the one after each sequence's first step.
  RnnResult backward;
};

/// Runs one cell from the first to the last step of `inputs` [batch, time, depth], or as
/// `time_major` says, and another one from each sequence's last step to the first. Their variables
/// are under "fw" and "bw" of the variable scope; one cell both ways has one set, under "fw".
/// (Schuster and Paliwal 1997.) Errors: as `DynamicRnn`.
BidirectionalRnnResult BidirectionalDynamicRnn(const Scope& scope, const RnnCell& forward,
                                               const RnnCell& backward, const Output& inputs,
                                               const BidirectionalRnnOptions& options = {});

struct StackedBidirectionalRnnResult {
  Output outputs;  ///< Of the last layer, both ways side by side.
  std::vector<std::vector<Output>> forward_states, backward_states;  ///< Of each layer.
};

/// Layers one on top of another, each of which reads both ways what the one before gives both ways;
/// variables under "cell_0/bidirectional_rnn/fw" and so on. InvalidArgument, in the scope, unless
/// there are as many cells for both ways, one at least, and no initial states.
StackedBidirectionalRnnResult StackedBidirectionalDynamicRnn(
    const Scope& scope, const std::vector<RnnCellPtr>& forward,
    const std::vector<RnnCellPtr>& backward, const Output& inputs,
    const BidirectionalRnnOptions& options = {.name = "stack_bidirectional_rnn"});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_BIDIRECTIONAL_RNN_H_
