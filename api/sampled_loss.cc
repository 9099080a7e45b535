#include "api/sampled_loss.h"

#include <limits>

#include "api/nn.h"
#include "api/ops.h"
#include "api/training/initializers.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// Logits [batch, num_true + num_sampled] of the right classes, then of the candidates, and the
/// targets: 1 / num_true for each right class, 0 for candidates.
struct Logits {
  Output logits, targets;
};

/// What is to be added to the candidates' logits so that right classes among them count nothing:
/// the lowest float there, else 0.
Output AccidentalHits(const Scope& s, const Output& labels, const CandidateSample& sample,
                      const SampledLossOptions& options, const Output& logits) {
  const OpSeed seed = OpSeed::For(s, options.seed);
  const auto hits = ops::ComputeAccidentalHits(s, labels, sample.candidates, options.num_true,
                                               {.seed = seed.seed, .seed2 = seed.seed2});
  const Output example = ops::Cast(s, hits.indices, ElementType::kInt64);
  const std::vector<Output> columns = {ops::ExpandDims(s, example, 1),
                                       ops::ExpandDims(s, hits.ids, 1)};
  const Output shape = ops::Shape(s, logits, {.out_type = ElementType::kInt64});
  const Output added = ops::ScatterNd(s, ops::ConcatV2(s, columns, 1), hits.weights, shape);
  // An example that has the same label twice hits twice: the sum is infinite.
  return ops::Maximum(s, added, std::numeric_limits<float>::lowest());
}

Logits SampledLogits(const Scope& s, const std::vector<ModelVariable>& weights,
                     const ModelVariable& biases, const Input& labels_input, const Output& inputs,
                     int64_t num_sampled, int64_t num_classes, bool remove_hits,
                     const SampledLossOptions& options) {
  Output labels = labels_input.ToOutput(s);
  if (!s.ok() || !labels.valid() || !inputs.valid() || !biases.valid()) return {};
  if (labels.type() != ElementType::kInt64) labels = ops::Cast(s, labels, ElementType::kInt64);
  CandidateSample sample = options.sample;
  if (!sample.candidates.valid()) {
    sample = LogUniformCandidates(s, labels, options.num_true, num_sampled, num_classes,
                                  {.seed = options.seed});
  }
  if (!s.ok()) return {};
  sample = {ops::StopGradient(s, sample.candidates), ops::StopGradient(s, sample.true_expected),
            ops::StopGradient(s, sample.sampled_expected)};

  // One look-up for the rows of both kinds; then they are taken apart.
  const Output flat = ops::Reshape(s, labels, {-1});
  const std::vector<Output> both = {flat, sample.candidates};
  const Output ids = ops::ConcatV2(s, both, 0);
  const Output all_weights = EmbeddingLookup(s, weights, ids, options.strategy);
  const Output all_biases = EmbeddingLookup(s, biases, ids);
  const Output count = ops::Reshape(s, ops::Size(s, flat), {1});
  const Output zero = Const(s, Tensor::Vector<int32_t>({0}));
  const Output rest = Const(s, Tensor::Vector<int32_t>({-1}));
  const std::vector<Output> row0 = {zero, zero}, rows = {count, rest}, row1 = {count, zero},
                            to_end = {rest, rest};
  const Output true_weights =
      ops::Slice(s, all_weights, ops::ConcatV2(s, row0, 0), ops::ConcatV2(s, rows, 0));
  const Output sampled_weights =
      ops::Slice(s, all_weights, ops::ConcatV2(s, row1, 0), ops::ConcatV2(s, to_end, 0));
  const Output true_biases = ops::Slice(s, all_biases, zero, count);
  const Output sampled_biases = ops::Slice(s, all_biases, count, rest);

  // Each example times its own right classes' rows; all examples times all candidates' rows.
  const int32_t num_true = static_cast<int32_t>(options.num_true);
  const Output width = ops::Slice(s, ops::Shape(s, true_weights), {1}, {1});
  const std::vector<Output> dims = {Const(s, Tensor::Vector<int32_t>({-1, num_true})), width};
  const Output rows_of_example = ops::Reshape(s, true_weights, ops::ConcatV2(s, dims, 0));
  Output true_logits =
      ops::Sum(s, ops::Mul(s, ops::ExpandDims(s, inputs, 1), rows_of_example), {2});
  true_logits = ops::Add(s, true_logits, ops::Reshape(s, true_biases, {-1, num_true}));
  Output sampled_logits = ops::MatMul(s, inputs, sampled_weights, {.transpose_b = true});
  sampled_logits = ops::Add(s, sampled_logits, sampled_biases);
  if (remove_hits) {
    sampled_logits =
        ops::Add(s, sampled_logits, AccidentalHits(s, labels, sample, options, sampled_logits));
  }
  // Classes that are drawn often are punished less each time.
  true_logits = ops::Sub(s, true_logits, ops::Log(s, sample.true_expected));
  sampled_logits = ops::Sub(s, sampled_logits, ops::Log(s, sample.sampled_expected));
  const Output right = ops::RealDiv(s, ops::OnesLike(s, true_logits),
                                    Const(s, static_cast<float>(options.num_true)));
  const std::vector<Output> logits = {true_logits, sampled_logits};
  const std::vector<Output> targets = {right, ops::ZerosLike(s, sampled_logits)};
  return {ops::ConcatV2(s, logits, 1), ops::StopGradient(s, ops::ConcatV2(s, targets, 1))};
}

}  // namespace

CandidateSample LogUniformCandidates(const Scope& scope, const Input& true_classes,
                                     int64_t num_true, int64_t num_sampled, int64_t num_classes,
                                     const SamplerOptions& options) {
  const OpSeed seed = OpSeed::For(scope, options.seed);
  const auto sample =
      ops::LogUniformCandidateSampler(scope, true_classes, num_true, num_sampled, options.unique,
                                      num_classes, {.seed = seed.seed, .seed2 = seed.seed2});
  return {sample.sampled_candidates, sample.true_expected_count, sample.sampled_expected_count};
}

CandidateSample UniformCandidates(const Scope& scope, const Input& true_classes, int64_t num_true,
                                  int64_t num_sampled, int64_t num_classes,
                                  const SamplerOptions& options) {
  const OpSeed seed = OpSeed::For(scope, options.seed);
  const auto sample =
      ops::UniformCandidateSampler(scope, true_classes, num_true, num_sampled, options.unique,
                                   num_classes, {.seed = seed.seed, .seed2 = seed.seed2});
  return {sample.sampled_candidates, sample.true_expected_count, sample.sampled_expected_count};
}

Output SampledSoftmaxLoss(const Scope& scope, const std::vector<ModelVariable>& weights,
                          const ModelVariable& biases, const Input& labels, const Output& inputs,
                          int64_t num_sampled, int64_t num_classes,
                          const SampledLossOptions& options) {
  const Scope s = scope.NewSubScope("sampled_softmax_loss");
  const Logits l = SampledLogits(s, weights, biases, labels, inputs, num_sampled, num_classes,
                                 options.remove_accidental_hits.value_or(true), options);
  if (!s.ok() || !l.logits.valid()) return Output();
  return ops::SoftmaxCrossEntropyWithLogits(s, l.logits, l.targets).loss;
}

Output NceLoss(const Scope& scope, const std::vector<ModelVariable>& weights,
               const ModelVariable& biases, const Input& labels, const Output& inputs,
               int64_t num_sampled, int64_t num_classes, const SampledLossOptions& options) {
  const Scope s = scope.NewSubScope("nce_loss");
  const Logits l = SampledLogits(s, weights, biases, labels, inputs, num_sampled, num_classes,
                                 options.remove_accidental_hits.value_or(false), options);
  if (!s.ok() || !l.logits.valid()) return Output();
  return ops::Sum(s, SigmoidCrossEntropyWithLogits(s, l.targets, l.logits), {1});
}

}  // namespace troupe
