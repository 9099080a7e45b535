// Classes drawn at random with frequencies that are given, or learned from the true ones.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/random_shapes.h"

namespace troupe {
namespace {

constexpr char kSignature[] =
    "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
    "sampled_expected_count: float";
constexpr char kOutputsDoc[] =
    " Gives them and how often they and `true_classes` [batch, num_true] are expected among such a "
    "sample. `seed` and `seed2` choose the stream of numbers; if both are 0 it is drawn at random.";

OpDefBuilder LearnedSampler(const char* name) {
  OpDefBuilder op(name);
  op.Signature(kSignature)
      .Attr("num_true: int >= 1")
      .Attr("num_sampled: int >= 1")
      .Attr("unique: bool")
      .Attr("range_max: int >= 1")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .SetIsStateful()
      .SetShapeFn(CandidateSamplerShape)
      .Doc(StrCat("Draws `num_sampled` classes from [0, range_max), all different if `unique`, "
                  "each as likely as it was often among the true classes of earlier runs, and "
                  "once more.",
                  kOutputsDoc));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kLearnedSamplers[] = {
    LearnedSampler("LearnedUnigramCandidateSampler"),
    LearnedSampler("ThreadUnsafeUnigramCandidateSampler"),
};

}  // namespace

REGISTER_OP("AllCandidateSampler")
    .Signature(kSignature)
    .Attr("num_true: int >= 1")
    .Attr("num_sampled: int >= 1")
    .Attr("unique: bool")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .SetIsStateful()
    .SetShapeFn(CandidateSamplerShape)
    .Doc(
        "Gives all classes of [0, num_sampled), in order: each is expected once, as is each of "
        "`true_classes` [batch, num_true]. `unique`, `seed` and `seed2` change nothing.");

REGISTER_OP("FixedUnigramCandidateSampler")
    .Signature(kSignature)
    .Attr("num_true: int >= 1")
    .Attr("num_sampled: int >= 1")
    .Attr("unique: bool")
    .Attr("range_max: int >= 1")
    .Attr("vocab_file: string = ''")
    .Attr("distortion: float = 1.0")
    .Attr("num_reserved_ids: int = 0")
    .Attr("num_shards: int >= 1 = 1")
    .Attr("shard: int >= 0 = 0")
    .Attr("unigrams: list(float) = []")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .SetIsStateful()
    .SetShapeFn(CandidateSamplerShape)
    .Doc(StrCat(
        "Draws `num_sampled` classes from [0, range_max), all different if `unique`, with "
        "given frequencies: those of `unigrams`, or the last columns of the lines of the CSV file "
        "`vocab_file`, to the power of `distortion`. `num_reserved_ids` classes before them are "
        "never drawn. Of all of these only those are counted and drawn the number of which is "
        "`shard` modulo `num_shards`; `range_max` is their number.",
        kOutputsDoc));

}  // namespace troupe
