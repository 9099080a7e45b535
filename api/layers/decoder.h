/// Decoders: sequences that a network makes step by step, as `tf.contrib.seq2seq`.
///
///     BasicDecoder decoder(cell, GreedySampler(embed, start_tokens, end_token), state, project);
///     DecodeResult r = DynamicDecode(s, decoder, {.maximum_iterations = 20});
///     Output tokens = r.outputs[1];  // [batch, time]
#ifndef TROUPE_API_LAYERS_DECODER_H_
#define TROUPE_API_LAYERS_DECODER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/layers/rnn.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What a step of a decoder gives. Before the first step `outputs` is empty.
struct DecoderStep {
  std::vector<Output> outputs;  ///< Each [batch, ...], and stacked along time.
  std::vector<Output> state;    ///< For the next step; shapes do not change.
  Output inputs;                ///< The same.
  Output finished;              ///< bool [batch, ...].
};

/// One step at a time. Thread-safe once it is made.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Of each of a step's outputs.
  virtual std::vector<ElementType> output_types() const = 0;
  /// The first inputs and state.
  virtual DecoderStep Begin(const Scope& scope) const = 0;
  /// Step number `time` (a scalar int32).
  virtual DecoderStep Step(const Scope& scope, const Output& time, const Output& inputs,
                           const std::vector<Output>& state) const = 0;
  /// The results, from the outputs [time, batch, ...] of all steps: also [time, batch, ...].
  virtual std::vector<Output> Finish(const Scope& scope, std::vector<Output> outputs,
                                     const std::vector<Output>& state) const;
  /// True: a step's `finished` is all there is to say; a sequence may even take the place of
  /// another one. False: what has finished once has for ever.
  virtual bool tracks_own_finished() const { return false; }
};

struct DecodeOptions {
  std::optional<Input> maximum_iterations = std::nullopt;  ///< A scalar int32; absent: no limit.
  /// Of who has finished: outputs are zeros, and states stay. (States of a scalar's shape, such as
  /// the flow of a TensorArray, go on.)
  bool impute_finished = false;
  bool time_major = false;  ///< Results are [time, batch, ...] in place of [batch, time, ...].
  int64_t parallel_iterations = 32;
  std::string name = "decoder";               ///< The variable scope.
  std::optional<Reuse> reuse = std::nullopt;  ///< What it reuses.
};

struct DecodeResult {
  std::vector<Output> outputs;  ///< As `Decoder::Finish` gives them.
  std::vector<Output> state;    ///< After the last step.
  Output lengths;  ///< int32, of the shape of `finished`: steps up to the one that finished.
};

/// Makes steps in a loop of the graph until all have finished. Differentiable, if the decoder is.
/// InvalidArgument, in the scope, if steps give other numbers of tensors than before.
DecodeResult DynamicDecode(const Scope& scope, const Decoder& decoder,
                           const DecodeOptions& options = {});

/// Chooses what comes next. Made by the functions below. A value.
struct Sampler {
  struct Next {
    Output inputs, finished;
  };
  /// The first inputs [batch, depth], and who has finished before the first step: bool [batch].
  std::function<Next(const Scope& scope)> begin;
  /// int32 [batch], from a step's `outputs` [batch, size].
  std::function<Output(const Scope& scope, const Output& outputs)> sample;
  /// Of the step that follows step `time`.
  std::function<Next(const Scope& scope, const Output& time, const Output& samples)> next;
};

/// Rows [..., depth] of int32 tokens [...].
using EmbeddingFunction = std::function<Output(const Scope& scope, const Output& tokens)>;

/// The inputs that are there, `inputs` [batch, time, depth] of one step at least, for so many steps
/// as int32 or int64 `lengths` [batch] say: for training. Samples are the largest of the outputs.
Sampler TrainingSampler(const Output& inputs, const Output& lengths);
/// The embedding of the largest of the outputs, until that is `end_token`. `start_tokens`: int32
/// [batch].
Sampler GreedySampler(EmbeddingFunction embedding, const Output& start_tokens, int32_t end_token);
/// The same of a random token; outputs over `temperature` are the logarithms of their
/// probabilities, not normalized.
Sampler RandomSampler(EmbeddingFunction embedding, const Output& start_tokens, int32_t end_token,
                      double temperature = 1.0, std::optional<int64_t> seed = std::nullopt);

/// A cell, what follows it (null: nothing), and a sampler. Outputs: those [batch, time, size], of
/// the cell's input's type, and the samples, int32 [batch, time].
class BasicDecoder final : public Decoder {
 public:
  BasicDecoder(RnnCellPtr cell, Sampler sampler, std::vector<Output> initial_state,
               layers::Activation output_layer = nullptr);
  std::vector<ElementType> output_types() const override;
  DecoderStep Begin(const Scope& scope) const override;
  DecoderStep Step(const Scope& scope, const Output& time, const Output& inputs,
                   const std::vector<Output>& state) const override;

 private:
  RnnCellPtr cell_;
  Sampler sampler_;
  std::vector<Output> initial_state_;
  layers::Activation output_layer_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_DECODER_H_
