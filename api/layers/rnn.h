/// Recurrent networks: cells, and running them along time. Names of variables and the order of
/// gates are TensorFlow 1.x's (`tf.nn.rnn_cell`, `tf.nn.dynamic_rnn`).
///
///     LstmCell cell(128);
///     RnnResult r = DynamicRnn(s, cell, words, {.sequence_length = lengths});
///     Output last = r.state[1];  // h after each sequence's last step.
#ifndef TROUPE_API_LAYERS_RNN_H_
#define TROUPE_API_LAYERS_RNN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/layers/layers.h"
#include "api/scope.h"
#include "api/variable_scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What a step gives: its output [batch, output_size] and the states after it.
struct RnnStep {
  Output output;
  std::vector<Output> state;
};

/// One step of a recurrent network. Its variables are under `name()` in the variable scope of its
/// first call; later calls share them, in whatever scopes of one root. Another cell that is called
/// in the same variable scope gets AlreadyExists, in the scope, unless the variable scope reuses
/// variables: `VariableScope(s, "shared", {.reuse = Reuse::kAuto})`. Thread-safe once it is made.
class RnnCell : public VariableOwner {
 public:
  virtual ~RnnCell() = default;
  virtual std::string name() const = 0;
  virtual int64_t output_size() const = 0;
  /// Of each state [batch, size].
  virtual std::vector<int64_t> state_sizes() const = 0;
  /// Of each state whether a `DropoutCell` may drop its elements: all unless the cell says
  /// otherwise.
  virtual std::vector<bool> droppable_states() const {
    return std::vector<bool>(state_sizes().size(), true);
  }
  /// `input` [batch, depth], of a known depth; the states are of its type. Variables are those of
  /// `CallScope(scope, name())`.
  virtual RnnStep Call(const Scope& scope, const Output& input,
                       const std::vector<Output>& state) const = 0;

  /// Zeros for a batch (a scalar int32).
  std::vector<Output> ZeroState(const Scope& scope, const Input& batch, ElementType type) const;
};
using RnnCellPtr = std::shared_ptr<const RnnCell>;

/// activation(W [x, h] + b); tanh unless given. One state: the output.
class BasicRnnCell final : public RnnCell {
 public:
  explicit BasicRnnCell(int64_t units, layers::Activation activation = layers::Tanh)
      : units_(units), activation_(std::move(activation)) {}
  std::string name() const override { return "basic_rnn_cell"; }
  int64_t output_size() const override { return units_; }
  std::vector<int64_t> state_sizes() const override { return {units_}; }
  RnnStep Call(const Scope& scope, const Output& input,
               const std::vector<Output>& state) const override;

 private:
  int64_t units_;
  layers::Activation activation_;
};

struct LstmOptions {
  double forget_bias = 1.0;
  bool use_peepholes = false;  ///< Gates see c. (Gers and Schmidhuber 2000.)
  double cell_clip = 0.0;      ///< c is kept within this and its negative; 0: not.
  int64_t projection = 0;      ///< The output is projected to this size; 0: not. (Sak et al. 2014.)
  layers::Activation activation = layers::Tanh;
  std::string name = "lstm_cell";
};
/// Two states: c and h. (Hochreiter and Schmidhuber 1997.)
class LstmCell final : public RnnCell {
 public:
  explicit LstmCell(int64_t units, LstmOptions options = {})
      : units_(units), options_(std::move(options)) {}
  std::string name() const override { return options_.name; }
  int64_t output_size() const override {
    return options_.projection > 0 ? options_.projection : units_;
  }
  std::vector<int64_t> state_sizes() const override { return {units_, output_size()}; }
  /// h, not the memory c, as in TensorFlow.
  std::vector<bool> droppable_states() const override { return {false, true}; }
  RnnStep Call(const Scope& scope, const Output& input,
               const std::vector<Output>& state) const override;

 private:
  int64_t units_;
  LstmOptions options_;
};

/// One state: the output. (Cho et al. 2014.) The gates' biases are 1 at first.
class GruCell final : public RnnCell {
 public:
  explicit GruCell(int64_t units, layers::Activation activation = layers::Tanh)
      : units_(units), activation_(std::move(activation)) {}
  std::string name() const override { return "gru_cell"; }
  int64_t output_size() const override { return units_; }
  std::vector<int64_t> state_sizes() const override { return {units_}; }
  RnnStep Call(const Scope& scope, const Output& input,
               const std::vector<Output>& state) const override;

 private:
  int64_t units_;
  layers::Activation activation_;
};

/// Cells one on top of another: "multi_rnn_cell/cell_0" and so on.
class StackedCell final : public RnnCell {
 public:
  explicit StackedCell(std::vector<RnnCellPtr> cells) : cells_(std::move(cells)) {}
  std::string name() const override { return "multi_rnn_cell"; }
  int64_t output_size() const override { return cells_.empty() ? 0 : cells_.back()->output_size(); }
  std::vector<int64_t> state_sizes() const override;
  std::vector<bool> droppable_states() const override;
  RnnStep Call(const Scope& scope, const Output& input,
               const std::vector<Output>& state) const override;

 private:
  std::vector<RnnCellPtr> cells_;
};

/// A cell with dropout of its input, its output and its `droppable_states` after each step, when
/// `training` (a scalar bool) holds.
class DropoutCell final : public RnnCell {
 public:
  DropoutCell(RnnCellPtr cell, double input_rate, double output_rate, Input training,
              double state_rate = 0.0)
      : cell_(std::move(cell)),
        input_rate_(input_rate),
        output_rate_(output_rate),
        state_rate_(state_rate),
        training_(std::move(training)) {}
  std::string name() const override { return cell_->name(); }
  int64_t output_size() const override { return cell_->output_size(); }
  std::vector<int64_t> state_sizes() const override { return cell_->state_sizes(); }
  std::vector<bool> droppable_states() const override { return cell_->droppable_states(); }
  RnnStep Call(const Scope& scope, const Output& input,
               const std::vector<Output>& state) const override;

 private:
  RnnCellPtr cell_;
  double input_rate_, output_rate_, state_rate_;
  Input training_;
};

/// A cell whose input, of the output's size, is added to its output.
class ResidualCell final : public RnnCell {
 public:
  explicit ResidualCell(RnnCellPtr cell) : cell_(std::move(cell)) {}
  std::string name() const override { return cell_->name(); }
  int64_t output_size() const override { return cell_->output_size(); }
  std::vector<int64_t> state_sizes() const override { return cell_->state_sizes(); }
  std::vector<bool> droppable_states() const override { return cell_->droppable_states(); }
  RnnStep Call(const Scope& scope, const Output& input,
               const std::vector<Output>& state) const override;

 private:
  RnnCellPtr cell_;
};

struct RnnOptions {
  /// int32 or int64 [batch]: after so many steps outputs are zero and states stay. Absent: all.
  std::optional<Output> sequence_length = std::nullopt;
  std::vector<Output> initial_state = {};  ///< Empty: zeros.
  bool time_major = false;                 ///< [time, batch, ...] in place of [batch, time, ...].
  int64_t parallel_iterations = 32;
  std::string name = "rnn";                   ///< The variable scope.
  std::optional<Reuse> reuse = std::nullopt;  ///< What it reuses.
};

struct RnnResult {
  Output outputs;             ///< [batch, time, output_size], or as `time_major` says.
  std::vector<Output> state;  ///< After each sequence's last step.
};

/// Runs a cell along the time of `inputs` [batch, time, depth] by a loop in the graph: sizes of
/// batch and time may be unknown. Differentiable. Errors are the scope's: InvalidArgument for other
/// shapes or numbers of states; those of `RnnCell`.
RnnResult DynamicRnn(const Scope& scope, const RnnCell& cell, const Output& inputs,
                     const RnnOptions& options = {});

struct StaticRnnResult {
  std::vector<Output> outputs;  ///< One [batch, output_size] for each input.
  std::vector<Output> state;    ///< After each sequence's last step.
};

/// The same without a loop, for few steps: a step of the graph for each of `inputs` [batch, depth],
/// of which there is one at least. `options`: `time_major` and `parallel_iterations` are not used.
StaticRnnResult StaticRnn(const Scope& scope, const RnnCell& cell,
                          const std::vector<Output>& inputs, const RnnOptions& options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_RNN_H_
