/// A recurrent network whose loop says what each step gets, as `tf.nn.raw_rnn`: for decoders,
/// attention, networks that read their own output.
///
///     RawRnnResult r = RawRnn(s, cell, [&](const Scope& s, const RawRnnState& now) {
///       RawRnnStep next;
///       next.finished = ops::GreaterEqual(s, now.time, lengths);  // [batch]
///       next.input = ops::GatherV2(s, words, ops::Minimum(s, now.time, last), 1);
///       next.state = now.output.valid() ? now.state : cell.ZeroState(s, batch, type);
///       if (now.output.valid()) next.emit = {now.output};
///       return next;
///     });
///     Output outputs = r.emit[0].Stack(s);  // [time, batch, output_size]
#ifndef TROUPE_API_LAYERS_RAW_RNN_H_
#define TROUPE_API_LAYERS_RAW_RNN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/control_flow.h"
#include "api/layers/rnn.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What the loop function is told. It is called twice while the graph is built: before the loop,
/// where `output`, `state` and `loop_state` are invalid and empty, and in its body.
struct RawRnnState {
  Output time;                     ///< A scalar int32: how many steps have been made.
  Output output;                   ///< [batch, output_size], of the last step.
  std::vector<Output> state;       ///< The cell's, after it.
  std::vector<Output> loop_state;  ///< What the function gave last.
};

/// What it gives.
struct RawRnnStep {
  Output finished;            ///< bool [batch]; who has finished once has for ever.
  Output input;               ///< [batch, depth], of a known depth, for the next step.
  std::vector<Output> state;  ///< The cell's for the next step.
  /// What is kept of the last step, each [batch, ...]: zeros for those that had finished before it.
  /// Of the first call only the number and the types matter; empty there: one, of the input's type.
  std::vector<Output> emit;
  /// Anything that the next call wants, such as the flow of a TensorArray; its shape does not
  /// change.
  std::vector<Output> loop_state;
};
using RawRnnFunction = std::function<RawRnnStep(const Scope& scope, const RawRnnState& now)>;

struct RawRnnOptions {
  int64_t parallel_iterations = 32;
  std::string name = "rnn";                   ///< The variable scope.
  std::optional<Reuse> reuse = std::nullopt;  ///< What it reuses.
};

struct RawRnnResult {
  std::vector<TensorArray> emit;  ///< An element for each step made.
  std::vector<Output> state;      ///< After each sequence's last step.
  std::vector<Output> loop_state;
};

/// Runs the cell until all of the batch has finished. Differentiable. InvalidArgument, in the
/// scope, if the function gives other numbers of tensors than before, or than the cell has states.
RawRnnResult RawRnn(const Scope& scope, const RnnCell& cell, const RawRnnFunction& function,
                    const RawRnnOptions& options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_RAW_RNN_H_
