/// Attention: each step of a network weighs what there is to look at, as `tf.contrib.seq2seq`.
///
///     auto attention = std::make_shared<LuongAttention>(s, 128, encoded.outputs, options);
///     auto cell = std::make_shared<AttentionCell>(lstm, attention, AttentionCellOptions{.size =
///     128}); BasicDecoder decoder(cell, sampler, cell->InitialState(s, encoded.state), project);
#ifndef TROUPE_API_LAYERS_ATTENTION_H_
#define TROUPE_API_LAYERS_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/layers/rnn.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

struct AttentionOptions {
  /// int32 or int64 [batch], at least 1: what is behind is not looked at. Absent: all is.
  std::optional<Output> memory_length = std::nullopt;
  /// Bahdanau: the vector of the scores has a length of its own, and there is a bias (Salimans and
  /// Kingma 2016). Luong: scores are multiplied by a variable.
  bool scale = false;
  std::string name;  ///< The variable scope of what scores; empty: TensorFlow's.
};

/// Scores `memory` [batch, time, depth], of a known depth, by a query. Its keys, `memory` times
/// "memory_layer/kernel", are made once, outside of a decoder's loop. For a beam search `memory`
/// and the lengths are those of `TileBatch`, in a scope that finds the same kernel. Calls of
/// `Align` share variables as those of an `RnnCell` do. Thread-safe
/// once it is made.
class AttentionMechanism : public VariableOwner {
 public:
  virtual ~AttentionMechanism() = default;
  /// Probabilities [batch, time], from a query [batch, size].
  Output Align(const Scope& scope, const Output& query) const;
  /// The rows of the memory weighted by them: [batch, depth].
  Output Attend(const Scope& scope, const Output& alignments) const;
  /// The depth of the memory.
  int64_t depth() const { return depth_; }

 protected:
  /// InvalidArgument, in the scope, unless the memory has 3 axes and a known depth.
  AttentionMechanism(const Scope& scope, int64_t units, const Output& memory,
                     AttentionOptions options, const char* name);
  /// [batch, time], in the mechanism's variable scope.
  virtual Output Score(const Scope& scope, const Output& query) const = 0;

  int64_t units() const { return units_; }
  bool scale() const { return options_.scale; }
  const Output& keys() const { return keys_; }  ///< [batch, time, units]

 private:
  int64_t units_, depth_ = 0;
  AttentionOptions options_;
  Output values_, keys_;
  Output is_there_;  ///< bool [batch, time]; invalid: all is.
};

/// v . tanh(keys + query_layer(query)). (Bahdanau, Cho and Bengio 2014.)
class BahdanauAttention final : public AttentionMechanism {
 public:
  BahdanauAttention(const Scope& scope, int64_t units, const Output& memory,
                    AttentionOptions options = {})
      : AttentionMechanism(scope, units, memory, std::move(options), "bahdanau_attention") {}

 private:
  Output Score(const Scope& scope, const Output& query) const override;
};

/// keys . query, which has `units` elements. (Luong, Pham and Manning 2015.)
class LuongAttention final : public AttentionMechanism {
 public:
  LuongAttention(const Scope& scope, int64_t units, const Output& memory,
                 AttentionOptions options = {})
      : AttentionMechanism(scope, units, memory, std::move(options), "luong_attention") {}

 private:
  Output Score(const Scope& scope, const Output& query) const override;
};

struct AttentionCellOptions {
  /// Attention is [the cell's output, what was attended to] times "attention_layer/kernel", of this
  /// size; 0: what was attended to.
  int64_t size = 0;
  bool output_attention = true;  ///< False: the output is the cell's.
};

/// A cell that reads [input, the last step's attention], and whose output is the query. States: the
/// cell's, and the attention [batch, size].
class AttentionCell final : public RnnCell {
 public:
  AttentionCell(RnnCellPtr cell, std::shared_ptr<const AttentionMechanism> mechanism,
                AttentionCellOptions options = {})
      : cell_(std::move(cell)), mechanism_(std::move(mechanism)), options_(options) {}
  std::string name() const override { return "attention_wrapper"; }
  int64_t output_size() const override {
    return options_.output_attention ? attention_size() : cell_->output_size();
  }
  std::vector<int64_t> state_sizes() const override;
  std::vector<bool> droppable_states() const override;
  RnnStep Call(const Scope& scope, const Output& input,
               const std::vector<Output>& state) const override;
  /// The cell's states, such as an encoder's last ones, and an attention of zeros.
  std::vector<Output> InitialState(const Scope& scope, std::vector<Output> cell_state) const;

 private:
  int64_t attention_size() const { return options_.size > 0 ? options_.size : mechanism_->depth(); }

  RnnCellPtr cell_;
  std::shared_ptr<const AttentionMechanism> mechanism_;
  AttentionCellOptions options_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_ATTENTION_H_
