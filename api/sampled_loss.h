/// Losses over many classes that look at a few of them: the right ones and a sample of the others.
#ifndef TROUPE_API_SAMPLED_LOSS_H_
#define TROUPE_API_SAMPLED_LOSS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "api/embedding.h"
#include "api/scope.h"
#include "api/training/variables.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Classes that were drawn, and how often each class is expected to be in such a sample.
struct CandidateSample {
  Output candidates;        ///< int64 [num_sampled].
  Output true_expected;     ///< float [batch, num_true], for the right classes.
  Output sampled_expected;  ///< float [num_sampled], for the candidates.
};

/// How to draw. `unique`: no class twice, drawing again until there are enough (then num_sampled
/// must not be above num_classes). The seed is by TensorFlow's rule.
struct SamplerOptions {
  bool unique = true;
  std::optional<int64_t> seed = std::nullopt;
};

/// num_sampled of num_classes classes, class k with probability
/// (log(k + 2) - log(k + 1)) / log(num_classes + 1): right for classes in falling order of
/// frequency, as words in a dictionary made for it. `true_classes`: int64 [batch, num_true].
CandidateSample LogUniformCandidates(const Scope& scope, const Input& true_classes,
                                     int64_t num_true, int64_t num_sampled, int64_t num_classes,
                                     const SamplerOptions& options = {});
/// All classes with the same probability.
CandidateSample UniformCandidates(const Scope& scope, const Input& true_classes, int64_t num_true,
                                  int64_t num_sampled, int64_t num_classes,
                                  const SamplerOptions& options = {});

/// What the sampled losses have in common.
struct SampledLossOptions {
  int64_t num_true = 1;
  /// The classes; not valid: drawn by `LogUniformCandidates`.
  CandidateSample sample;
  /// Leave out a candidate that is one of the example's right classes. Default: yes for the
  /// softmax, no for NCE.
  std::optional<bool> remove_accidental_hits;
  PartitionStrategy strategy = PartitionStrategy::kMod;
  std::optional<int64_t> seed = std::nullopt;
};

/// Approximates softmax cross entropy over num_classes classes in training (for testing, compute
/// the whole softmax): one value per example, of shape [batch]. `weights` [num_classes, d] (spread
/// over one or more variables), `biases` [num_classes], `labels` int64 [batch, num_true], `inputs`
/// [batch, d]. Only rows of the classes looked at are read and have gradients.
/// (Jean et al. 2014.)
Output SampledSoftmaxLoss(const Scope& scope, const std::vector<ModelVariable>& weights,
                          const ModelVariable& biases, const Input& labels, const Output& inputs,
                          int64_t num_sampled, int64_t num_classes,
                          const SampledLossOptions& options = {});

/// Noise-contrastive estimation: a yes-or-no question per class looked at, whether it is right or
/// drawn from the noise. Shapes as above. (Gutmann and Hyvaerinen 2010.)
Output NceLoss(const Scope& scope, const std::vector<ModelVariable>& weights,
               const ModelVariable& biases, const Input& labels, const Output& inputs,
               int64_t num_sampled, int64_t num_classes, const SampledLossOptions& options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_SAMPLED_LOSS_H_
