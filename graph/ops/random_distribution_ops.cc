// Random numbers of distributions that have parameters. The generator is Philox 4x32-10.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/random_shapes.h"
#include "graph/ops/shape_helpers.h"

namespace troupe {
namespace {

using C = InferenceContext;

constexpr char kAnew[] =
    " `seed` and `seed2` choose the stream of numbers; if both are 0 it is drawn at random.";
constexpr char kSeed[] =
    " `seed` is a vector of two integers: the same seed gives the same numbers, in any process.";
constexpr char kThenParameters[] =
    " `shape` are the sizes of a sample for each of them: `output` has the shape `shape`, then "
    "theirs.";
constexpr char kEndsWith[] = " `output` has the shape `shape`, the last sizes of which are theirs.";

constexpr char kGamma[] =
    "Draws numbers of scale 1 from gamma distributions with the shape parameters `alpha`, by the "
    "method of Marsaglia and Tsang.";
constexpr char kPoisson[] = "Draws numbers from Poisson distributions with the means";
constexpr char kTruncated[] =
    "Draws numbers from normal distributions with the means `means` and the standard deviations";
constexpr char kBounds[] = ", again and again while they are not between `minvals` and `maxvals`.";

absl::Status ParameterVectorsShape(InferenceContext* c) {
  for (int i = 1; i <= 4; ++i) {
    TROUPE_RETURN_IF_ERROR(C::WithRankAtMost(c->input(i), 1).status());
  }
  return FirstInputAsShape(c);
}

}  // namespace

REGISTER_OP("ParameterizedTruncatedNormal")
    .Signature(
        "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("T: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ParameterVectorsShape)
    .Doc(StrCat(kTruncated, " `stdevs`", kBounds,
                " Each of the four is a scalar, or a vector of shape[0] numbers, one for each "
                "row. `output` has the shape `shape`.",
                kAnew));

REGISTER_OP("StatelessParameterizedTruncatedNormal")
    .Signature(
        "shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: dtype, maxvals: dtype -> "
        "output: dtype")
    .Attr("S: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Attr("dtype: {half, float, double}")
    .SetShapeFn(SeededShape)
    .Doc(StrCat(kTruncated, " `stddevs`", kBounds, " The four are broadcast to one shape.",
                kEndsWith, kSeed));

REGISTER_OP("RandomGamma")
    .Signature("shape: S, alpha: T -> output: T")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("S: {int32, int64}")
    .Attr("T: {half, float, double}")
    .SetIsStateful()
    .SetShapeFn(ShapeThenParametersShape)
    .Doc(StrCat(kGamma, kThenParameters, kAnew));

REGISTER_OP("StatelessRandomGammaV2")
    .Signature("shape: T, seed: Tseed, alpha: dtype -> output: dtype")
    .Attr("dtype: {half, float, double}")
    .Attr("T: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .SetShapeFn(SeededShape)
    .Doc(StrCat(kGamma, kEndsWith, kSeed));

REGISTER_OP("StatelessRandomGammaV3")
    .Signature(
        "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype -> output: "
        "dtype")
    .Attr("dtype: {half, float, double}")
    .Attr("shape_dtype: {int32, int64} = DT_INT32")
    .SetShapeFn(KeyedShape)
    .Doc(StrCat(kGamma, kEndsWith,
                " `key` [1] and `counter` [2] say where in the streams of the generator `alg` (1: "
                "Philox, 3: the device's, the same) they begin."));

REGISTER_OP("RandomGammaGrad")
    .Signature("alpha: T, sample: T -> output: T")
    .Attr("T: {float, double}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Derivatives of numbers `sample`, which were drawn from gamma distributions, for the shape "
        "parameters `alpha`, by implicit differentiation. The two are broadcast to the shape of "
        "`output`.");

REGISTER_OP("RandomPoisson")
    .Signature("shape: S, rate: dtype -> output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("S: {int32, int64}")
    .Attr("dtype: {half, float, double}")
    .Deprecated(25, "Replaced by RandomPoissonV2")
    .SetIsStateful()
    .SetShapeFn(ShapeThenParametersShape)
    .Doc(StrCat(kPoisson, " `rate`.", kThenParameters, kAnew));

REGISTER_OP("RandomPoissonV2")
    .Signature("shape: S, rate: R -> output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("S: {int32, int64}")
    .Attr("R: {half, float, double, int32, int64} = DT_DOUBLE")
    .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
    .SetIsStateful()
    .SetShapeFn(ShapeThenParametersShape)
    .Doc(StrCat(kPoisson, " `rate`.", kThenParameters, " It is of type `dtype`.", kAnew));

REGISTER_OP("StatelessRandomPoisson")
    .Signature("shape: T, seed: Tseed, lam: Rtype -> output: dtype")
    .Attr("Rtype: {half, float, double, int32, int64}")
    .Attr("dtype: {half, float, double, int32, int64}")
    .Attr("T: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .SetShapeFn(SeededShape)
    .Doc(StrCat(kPoisson, " `lam`.", kEndsWith, " It is of type `dtype`.", kSeed));

REGISTER_OP("StatelessRandomBinomial")
    .Signature("shape: S, seed: Tseed, counts: T, probs: T -> output: dtype")
    .Attr("S: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
    .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
    .SetShapeFn(SeededShape)
    .Doc(StrCat(
        "Draws how many of `counts` trials succeed, each with probability `probs`. The two are "
        "broadcast to one shape.",
        kEndsWith, " It is of type `dtype`.", kSeed));

}  // namespace troupe
