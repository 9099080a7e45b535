#include "api/layers/decoder.h"

#include <utility>

#include "api/control_flow.h"
#include "api/expr.h"
#include "api/nn.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

bool IsScalar(const Output& x) { return !x.shape().unknown_rank() && x.shape().rank() == 0; }

/// `old` in the rows that have finished.
Output Kept(const Scope& scope, const Output& finished, const Output& old, const Output& now) {
  return IsScalar(old) ? now : ops::Select(scope, finished, old, now);
}

/// [time, batch, ...] as [batch, time, ...].
Output Turned(const Scope& scope, const Output& x) {
  if (!scope.ok()) return Output();
  if (!x.shape().unknown_rank()) {
    std::vector<int32_t> axes = {1, 0};
    for (int32_t i = 2; i < x.shape().rank(); ++i) axes.push_back(i);
    return ops::Transpose(scope, x, Tensor::Vector<int32_t>(axes));
  }
  const Output rest = ops::Range(scope, 2, ops::Rank(scope, x), 1);
  return ops::Transpose(scope, x, ops::ConcatV2(scope, {Tensor::Vector<int32_t>({1, 0}), rest}, 0));
}

absl::Status CheckCounts(const DecoderStep& step, size_t outputs, size_t states) {
  if (step.outputs.size() == outputs && step.state.size() == states && step.inputs.valid() &&
      step.finished.valid()) {
    return absl::OkStatus();
  }
  return InvalidArgument("a decoder's step gives ", step.outputs.size(), " outputs and ",
                         step.state.size(), " states, not ", outputs, " and ", states,
                         ", or no inputs, or does not say who has finished");
}

Output Largest(const Scope& scope, const Output& outputs) {
  return ops::ArgMax(scope, outputs, -1, {.output_type = ElementType::kInt32});
}

/// A sampler whose inputs are embeddings of what it has chosen.
Sampler OfEmbeddings(EmbeddingFunction embedding, const Output& start_tokens, int32_t end_token,
                     std::function<Output(const Scope&, const Output&)> sample) {
  Sampler sampler;
  sampler.begin = [embedding, start_tokens](const Scope& s) {
    const Output none = ops::Fill(s, ops::Shape(s, start_tokens), Const(s, false));
    return Sampler::Next{embedding(s, start_tokens), none};
  };
  sampler.sample = std::move(sample);
  sampler.next = [embedding, end_token](const Scope& s, const Output&, const Output& samples) {
    return Sampler::Next{embedding(s, samples), ops::Equal(s, samples, end_token)};
  };
  return sampler;
}

}  // namespace

std::vector<Output> Decoder::Finish(const Scope&, std::vector<Output> outputs,
                                    const std::vector<Output>&) const {
  return outputs;
}

DecodeResult DynamicDecode(const Scope& scope, const Decoder& decoder,
                           const DecodeOptions& options) {
  const Scope own = VariableScope(scope, options.name, {.reuse = options.reuse});
  const std::vector<ElementType> types = decoder.output_types();
  if (!own.ok()) return {};
  DecoderStep first = decoder.Begin(own);
  if (own.ok()) own.UpdateStatus(CheckCounts(first, 0, first.state.size()));
  Output limit;
  if (options.maximum_iterations) {
    limit = options.maximum_iterations->ToOutput(own, ElementType::kInt32);
    first.finished = ops::LogicalOr(own, first.finished, ops::LessEqual(own, limit, 0));
  }
  if (!own.ok()) return {};

  // Time, who has finished, lengths, inputs, states, outputs.
  const Output lengths = ops::Fill(own, ops::Shape(own, first.finished), Const(own, 0));
  std::vector<Input> variables = {Const(own, 0), first.finished, lengths, first.inputs};
  const PartialShape& batch = first.finished.shape();
  WhileOptions loop;
  loop.parallel_iterations = options.parallel_iterations;
  loop.shape_invariants = {PartialShape({}), batch, batch, first.inputs.shape()};
  for (const Output& state : first.state) {
    variables.push_back(state);
    loop.shape_invariants.push_back(state.shape());
  }
  std::vector<TensorArray> arrays;
  for (const ElementType type : types) {
    arrays.emplace_back(own, 0, type, TensorArray::Options{.dynamic_size = true});
    variables.push_back(arrays.back().flow());
    loop.shape_invariants.push_back(PartialShape());
  }
  const size_t states = first.state.size();

  const auto condition = [](const Scope& s, absl::Span<const Output> v) {
    return ops::LogicalNot(s, ReduceAll(s, v[1]));
  };
  const auto body = [&](const Scope& s, absl::Span<const Output> v) {
    const Output time = v[0], finished = v[1], next_time = ops::Add(s, time, 1);
    const std::vector<Output> state(v.begin() + 4, v.begin() + 4 + static_cast<int64_t>(states));
    const DecoderStep step = decoder.Step(s, time, v[3], state);
    if (s.ok()) s.UpdateStatus(CheckCounts(step, types.size(), states));
    if (!s.ok()) return std::vector<Output>();
    Output now = step.finished;
    if (!decoder.tracks_own_finished()) now = ops::LogicalOr(s, now, finished);
    if (limit.valid()) now = ops::LogicalOr(s, now, ops::GreaterEqual(s, next_time, limit));
    const Output counted = ops::SelectV2(s, finished, v[2], next_time);
    std::vector<Output> next = {next_time, ops::EnsureShape(s, now, batch),
                                ops::EnsureShape(s, counted, batch),
                                ops::EnsureShape(s, step.inputs, first.inputs.shape())};
    for (size_t i = 0; i < states; ++i) {
      const Output kept =
          options.impute_finished ? Kept(s, finished, state[i], step.state[i]) : step.state[i];
      next.push_back(ops::EnsureShape(s, kept, first.state[i].shape()));
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const Output& made = step.outputs[i];
      const Output kept =
          options.impute_finished ? Kept(s, finished, ops::ZerosLike(s, made), made) : made;
      next.push_back(arrays[i].WithFlow(v[4 + states + i]).Write(s, time, kept).flow());
    }
    return next;
  };
  const OutputList end = WhileLoop(own, variables, condition, body, loop);
  if (!own.ok()) return {};
  DecodeResult result;
  result.lengths = end[2];
  for (size_t i = 0; i < states; ++i) result.state.push_back(end[4 + i]);
  std::vector<Output> stacked;
  for (size_t i = 0; i < types.size(); ++i) {
    stacked.push_back(arrays[i].WithFlow(end[4 + states + i]).Stack(own));
  }
  result.outputs = decoder.Finish(own, std::move(stacked), result.state);
  if (!options.time_major) {
    for (Output& output : result.outputs) output = Turned(own, output);
  }
  return own.ok() ? result : DecodeResult();
}

Sampler TrainingSampler(const Output& inputs, const Output& lengths) {
  const auto at = [inputs, lengths](const Scope& s, const Output& time) {
    const Output last = ops::Sub(s, Expr(s, ops::Shape(s, inputs)).Slice({1}).output(), 1);
    const Output here = ops::GatherV2(s, inputs, ops::Minimum(s, time, last), 1);
    const Output limits = ops::Cast(s, lengths, ElementType::kInt32);
    return Sampler::Next{here, ops::GreaterEqual(s, time, limits)};
  };
  Sampler sampler;
  sampler.begin = [at](const Scope& s) { return at(s, Const(s, 0)); };
  sampler.sample = Largest;
  sampler.next = [at](const Scope& s, const Output& time, const Output&) {
    return at(s, ops::Add(s, time, 1));
  };
  return sampler;
}

Sampler GreedySampler(EmbeddingFunction embedding, const Output& start_tokens, int32_t end_token) {
  return OfEmbeddings(std::move(embedding), start_tokens, end_token, Largest);
}

Sampler RandomSampler(EmbeddingFunction embedding, const Output& start_tokens, int32_t end_token,
                      double temperature, std::optional<int64_t> seed) {
  return OfEmbeddings(
      std::move(embedding), start_tokens, end_token,
      [temperature, seed](const Scope& s, const Output& outputs) {
        if (!(temperature > 0)) {
          s.UpdateStatus(InvalidArgument("RandomSampler: the temperature must be positive, not ",
                                         temperature));
        }
        if (!s.ok()) return Output();
        const OpSeed seeds = OpSeed::For(s, seed);
        const Output one = ops::Multinomial(
            s, ops::RealDiv(s, outputs, temperature), 1,
            {.seed = seeds.seed, .seed2 = seeds.seed2, .output_dtype = ElementType::kInt32});
        return ops::Squeeze(s, one, {.squeeze_dims = {1}});
      });
}

BasicDecoder::BasicDecoder(RnnCellPtr cell, Sampler sampler, std::vector<Output> initial_state,
                           layers::Activation output_layer)
    : cell_(std::move(cell)),
      sampler_(std::move(sampler)),
      initial_state_(std::move(initial_state)),
      output_layer_(std::move(output_layer)) {}

std::vector<ElementType> BasicDecoder::output_types() const {
  const ElementType type = initial_state_.empty() ? ElementType::kFloat : initial_state_[0].type();
  return {type, ElementType::kInt32};
}

DecoderStep BasicDecoder::Begin(const Scope& scope) const {
  const Sampler::Next first = sampler_.begin(scope);
  return {{}, initial_state_, first.inputs, first.finished};
}

DecoderStep BasicDecoder::Step(const Scope& scope, const Output& time, const Output& inputs,
                               const std::vector<Output>& state) const {
  RnnStep step = cell_->Call(scope, inputs, state);
  if (output_layer_ != nullptr && scope.ok()) step.output = output_layer_(scope, step.output);
  if (!scope.ok()) return {};
  const Output samples = sampler_.sample(scope, step.output);
  const Sampler::Next next = sampler_.next(scope, time, samples);
  return {{step.output, samples}, step.state, next.inputs, next.finished};
}

}  // namespace troupe
