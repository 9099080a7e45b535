// Classes drawn at random. The generator is Philox 4x32-10, keyed by `seed` and `seed2`.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/random_shapes.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status ComputeAccidentalHitsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t num_true, c->attrs().Get<int64_t>("num_true"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape true_classes, C::WithRank(c->input(0), 2));
  TROUPE_RETURN_IF_ERROR(WithValue(true_classes.dim(1), num_true).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 1).status());
  for (int i = 0; i < 3; ++i) c->set_output(i, C::VectorOf(-1));
  return absl::OkStatus();
}

absl::Status MultinomialShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape logits, C::WithRank(c->input(0), 2));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t samples, c->InputAsDim(1));
  return SetShape(c, PartialShape({logits.dim(0), samples}));
}

OpDefBuilder CandidateSampler(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(
        "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
        "sampled_expected_count: float")
      .Attr("num_true: int >= 1")
      .Attr("num_sampled: int >= 1")
      .Attr("unique: bool")
      .Attr("range_max: int >= 1")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .SetIsStateful()
      .SetShapeFn(CandidateSamplerShape)
      .Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kSamplers[] = {
    CandidateSampler(
        "LogUniformCandidateSampler",
        "Draws `num_sampled` classes from [0, range_max), all different if `unique`, class k with "
        "probability (log(k + 2) - log(k + 1)) / log(range_max + 1). Gives them and how often they "
        "and `true_classes` [batch, num_true] are expected among such a sample."),
    CandidateSampler("UniformCandidateSampler",
                     "Draws `num_sampled` classes from [0, range_max), all different if `unique`, "
                     "each as likely as the others. Gives them and how often they and "
                     "`true_classes` [batch, num_true] are expected among such a sample."),
};

}  // namespace

REGISTER_OP("ComputeAccidentalHits")
    .Signature(
        "true_classes: int64, sampled_candidates: int64 -> indices: int32, ids: int64, weights: "
        "float")
    .Attr("num_true: int")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .SetShapeFn(ComputeAccidentalHitsShape)
    .Doc(
        "Finds the classes of the matrix `true_classes` [batch, num_true] that are among "
        "`sampled_candidates`: `indices` has their rows, `ids` their positions among the "
        "candidates, `weights` the lowest number for each.");

REGISTER_OP("Multinomial")
    .Signature("logits: T, num_samples: int32 -> output: output_dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("T: realnumbertype")
    .Attr("output_dtype: {int32, int64} = DT_INT64")
    .SetIsStateful()
    .SetShapeFn(MultinomialShape)
    .Doc(
        "Draws `num_samples` classes for each row of `logits` [batch, classes], with probabilities "
        "in proportion to exp(logits). Gives [batch, num_samples].");

}  // namespace troupe
