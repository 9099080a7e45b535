// Random numbers that are functions of their inputs. A seed, or a key and a counter, says where in
// the streams of Philox 4x32-10 they begin.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/random_shapes.h"
#include "graph/ops/shape_helpers.h"

namespace troupe {
namespace {

using C = InferenceContext;

constexpr char kSeedDoc[] =
    " `seed` is a vector of two integers: the same seed gives the same numbers, in any process.";
constexpr char kKeyDoc[] =
    " `key` [1] and `counter` [2] say where in the streams of the generator `alg` they begin: 1 is "
    "Philox, 3 whatever suits the device, which is Philox, too.";
constexpr char kShapeDoc[] = " `output`, of type `dtype`, has the shape `shape`.";

absl::Status SeedFirstShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckSeedShape(c, 0));
  c->set_output(0, C::VectorOf(1));
  c->set_output(1, C::VectorOf(2));
  if (c->num_outputs() > 2) c->set_output(2, C::Scalar());
  return absl::OkStatus();
}

absl::Status ScalarsThen(InferenceContext* c, int i, absl::Status (*shape)(InferenceContext*)) {
  for (int end = i + 2; i < end; ++i) {
    TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  }
  return shape(c);
}
absl::Status SeededRangeShape(InferenceContext* c) { return ScalarsThen(c, 2, SeededShape); }
absl::Status KeyedRangeShape(InferenceContext* c) { return ScalarsThen(c, 4, KeyedShape); }

absl::Status StatelessMultinomialShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckSeedShape(c, 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape logits, C::WithRank(c->input(0), 2));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t samples, c->InputAsDim(1));
  return SetShape(c, PartialShape({logits.dim(0), samples}));
}

struct Drawn {
  const char *name, *second_name;
  const char* doc;
};

OpDefBuilder Seeded(const Drawn& drawn) {
  OpDefBuilder op(drawn.name);
  op.Signature("shape: T, seed: Tseed -> output: dtype")
      .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
      .Attr("T: {int32, int64} = DT_INT32")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .SetShapeFn(SeededShape)
      .Doc(StrCat(drawn.doc, kShapeDoc, kSeedDoc));
  return op;
}

OpDefBuilder Keyed(const Drawn& drawn) {
  OpDefBuilder op(drawn.second_name);
  op.Signature("shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype")
      .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .SetShapeFn(KeyedShape)
      .Doc(StrCat(drawn.doc, kShapeDoc, kKeyDoc));
  return op;
}

constexpr Drawn kUniform = {"StatelessRandomUniform", "StatelessRandomUniformV2",
                            "Draws numbers from the uniform distribution on [0, 1)."};
constexpr Drawn kNormal = {
    "StatelessRandomNormal", "StatelessRandomNormalV2",
    "Draws numbers of mean 0 and standard deviation 1 from the normal distribution."};
constexpr Drawn kTruncated = {
    "StatelessTruncatedNormal", "StatelessTruncatedNormalV2",
    "Draws numbers from the standard normal distribution, again and again while they are further "
    "than 2 from 0."};
constexpr char kRangeDoc[] =
    "Draws integers from the uniform distribution on [minval, maxval), two scalars.";
constexpr char kFullDoc[] = "Draws any integers of the type `dtype`, all equally likely.";

[[maybe_unused]] const internal::OpRegistrar kDrawn[] = {
    Seeded(kUniform), Seeded(kNormal), Seeded(kTruncated),
    Keyed(kUniform),  Keyed(kNormal),  Keyed(kTruncated),
};

}  // namespace

REGISTER_OP("StatelessRandomUniformInt")
    .Signature("shape: T, seed: Tseed, minval: dtype, maxval: dtype -> output: dtype")
    .Attr("dtype: {int32, int64}")
    .Attr("T: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .SetShapeFn(SeededRangeShape)
    .Doc(StrCat(kRangeDoc, kShapeDoc, kSeedDoc));

REGISTER_OP("StatelessRandomUniformIntV2")
    .Signature(
        "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype "
        "-> output: dtype")
    .Attr("dtype: {int32, int64, uint32, uint64}")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .SetShapeFn(KeyedRangeShape)
    .Doc(StrCat(kRangeDoc, kShapeDoc, kKeyDoc));

REGISTER_OP("StatelessRandomUniformFullInt")
    .Signature("shape: T, seed: Tseed -> output: dtype")
    .Attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
    .Attr("T: {int32, int64} = DT_INT32")
    .Attr("Tseed: {int32, int64, uint32, uint64} = DT_INT64")
    .SetShapeFn(SeededShape)
    .Doc(StrCat(kFullDoc, kShapeDoc, kSeedDoc));

REGISTER_OP("StatelessRandomUniformFullIntV2")
    .Signature("shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype")
    .Attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .SetShapeFn(KeyedShape)
    .Doc(StrCat(kFullDoc, kShapeDoc, kKeyDoc));

REGISTER_OP("StatelessRandomGetKeyCounter")
    .Signature("seed: Tseed -> key: uint64, counter: uint64")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .SetShapeFn(SeedFirstShape)
    .Doc(
        "Makes of `seed`, a vector of two integers, the `key` [1] and the `counter` [2] of ops "
        "that take these. Seeds that are near one another give streams far apart.");

REGISTER_OP("StatelessRandomGetKeyCounterAlg")
    .Signature("seed: Tseed -> key: uint64, counter: uint64, alg: int32")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .SetShapeFn(SeedFirstShape)
    .Doc(
        "Makes of `seed`, a vector of two integers, the `key` [1], the `counter` [2] and the "
        "scalar `alg`, the device's generator, of ops that take these.");

REGISTER_OP("StatelessRandomGetAlg")
    .Signature("-> alg: int32")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Gives the number of the device's generator, a scalar: 1, Philox.");

REGISTER_OP("StatelessMultinomial")
    .Signature("logits: T, num_samples: int32, seed: Tseed -> output: output_dtype")
    .Attr("T: realnumbertype")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Attr("output_dtype: {int32, int64} = DT_INT64")
    .SetShapeFn(StatelessMultinomialShape)
    .Doc(StrCat("Draws `num_samples` classes for each row of `logits` [batch, classes], with "
                "probabilities in proportion to exp(logits). Gives [batch, num_samples] of type "
                "`output_dtype`.",
                kSeedDoc));

REGISTER_OP("StatelessShuffle")
    .Signature("value: T, key: uint64, counter: uint64, alg: int32 -> output: T")
    .Attr("T: type")
    .SetShapeFn(UnchangedShape)
    .Doc(StrCat("Shuffles the rows of `value`. `output` has its shape.", kKeyDoc));

}  // namespace troupe
