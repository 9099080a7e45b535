/// Beam search: the likeliest sequences of a network that makes them token by token, as
/// `tf.contrib.seq2seq.BeamSearchDecoder`.
///
///     std::vector<Output> state;
///     for (const Output& x : encoded.state) state.push_back(TileBatch(s, x, 4));
///     BeamSearchDecoder decoder(cell, embed, start_tokens, end_token, state,
///                               {.beam_width = 4, .output_layer = project});
///     BeamSearchResult r = BeamSearch(s, decoder, {.maximum_iterations = 20});
///     Output best = Expr(s, r.tokens).Slice({All(), All(), 0});
#ifndef TROUPE_API_LAYERS_BEAM_SEARCH_H_
#define TROUPE_API_LAYERS_BEAM_SEARCH_H_

#include <cstdint>
#include <vector>

#include "api/layers/decoder.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

struct BeamSearchOptions {
  int64_t beam_width = 4;
  /// Beams are ordered by log P(sequence) / ((5 + length) / 6)^length_penalty, where a length does
  /// not count an end token of the last step; 0: by log P. (Wu et al. 2016.)
  double length_penalty = 0.0;
  layers::Activation output_layer = nullptr;  ///< From the cell's output to logits.
};

/// At each step, of all continuations of a row's beams the `beam_width` best. A beam that has
/// `end_token` is finished: it stays as it is, among the others by its score. Outputs of a step,
/// all [batch, beam]: scores (of the type of the states), and int32 tokens and beams that they
/// continue. (Graves 2012; Sutskever et al. 2014.)
class BeamSearchDecoder final : public Decoder {
 public:
  /// `start_tokens`: int32 [batch]. `initial_state`: each [batch * beam_width, size], as
  /// `TileBatch` gives it.
  BeamSearchDecoder(RnnCellPtr cell, EmbeddingFunction embedding, const Output& start_tokens,
                    int32_t end_token, std::vector<Output> initial_state,
                    BeamSearchOptions options = {});
  std::vector<ElementType> output_types() const override;
  DecoderStep Begin(const Scope& scope) const override;
  DecoderStep Step(const Scope& scope, const Output& time, const Output& inputs,
                   const std::vector<Output>& state) const override;
  /// Scores, and the beams' tokens from first to last.
  std::vector<Output> Finish(const Scope& scope, std::vector<Output> outputs,
                             const std::vector<Output>& state) const override;
  bool tracks_own_finished() const override { return true; }

 private:
  RnnCellPtr cell_;
  EmbeddingFunction embedding_;
  Output start_tokens_;
  int32_t end_token_;
  std::vector<Output> initial_state_;
  BeamSearchOptions options_;
};

struct BeamSearchResult {
  /// int32 [batch, time, beam], or as `time_major` says; the best beam first, `end_token` after its
  /// end.
  Output tokens;
  Output scores;             ///< [batch, beam]: what they are ordered by.
  Output log_probabilities;  ///< [batch, beam]: log P(sequence).
  Output lengths;            ///< int64 [batch, beam], with the end token.
};

/// `DynamicDecode` of a beam search. Without `maximum_iterations` it ends when all beams have.
/// InvalidArgument, in the scope, for a beam width below 1, with `impute_finished`, or unless the
/// number of logits is known.
BeamSearchResult BeamSearch(const Scope& scope, const BeamSearchDecoder& decoder,
                            const DecodeOptions& options = {});

/// Each row of x [batch, ...] `multiplier` times: [batch * multiplier, ...].
Output TileBatch(const Scope& scope, const Output& x, int64_t multiplier);

/// Follows beams back from their ends: of `tokens` and the `parents` that they continue, both int32
/// [time, batch, beam], the tokens of each beam from first to last. Row b has `lengths[b]` steps
/// (int32 [batch]); after these, and after the first `end_token` of a beam, all is `end_token`.
Output GatherTree(const Scope& scope, const Output& tokens, const Output& parents,
                  const Output& lengths, int32_t end_token);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_BEAM_SEARCH_H_
