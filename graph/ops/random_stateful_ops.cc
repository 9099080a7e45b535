// Random numbers from a generator of which a variable holds the state. The generator is Philox
// 4x32-10.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/random_shapes.h"

namespace troupe {
namespace {

using C = InferenceContext;

constexpr char kStateDoc[] =
    " `resource` is a variable of int64 [3]: the counter, low half first, and the key of the "
    "generator `algorithm`, a scalar: 1 is Philox, 3 whatever suits the device, which is Philox, "
    "too. A run moves the counter on.";
constexpr char kShapeDoc[] = " `output`, of type `dtype`, has the shape `shape`.";

absl::Status StatefulShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  return InputAsShapeShape(c, 2);
}

absl::Status StatefulRangeShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(3), 0).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(4), 0).status());
  return StatefulShape(c);
}

absl::Status StatefulBinomialShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRankAtMost(c->input(3), 1).status());
  TROUPE_RETURN_IF_ERROR(C::WithRankAtMost(c->input(4), 1).status());
  return InputAsShapeShape(c, 2);
}

OpDefBuilder Stateful(const char* name, const char* type, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype")
      .Attr(StrCat("dtype: type = ", type))
      .Attr("shape_dtype: type = DT_INT64")
      .SetIsStateful()
      .SetShapeFn(StatefulShape)
      .Doc(StrCat(doc, kShapeDoc, kStateDoc));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kStateful[] = {
    Stateful("StatefulUniform", "DT_FLOAT",
             "Draws numbers from the uniform distribution on [0, 1)."),
    Stateful("StatefulUniformFullInt", "DT_UINT64",
             "Draws any integers of the type `dtype`, all equally likely."),
    Stateful("StatefulStandardNormalV2", "DT_FLOAT",
             "Draws numbers of mean 0 and standard deviation 1 from the normal distribution."),
    Stateful("StatefulTruncatedNormal", "DT_FLOAT",
             "Draws numbers from the standard normal distribution, again and again while they are "
             "further than 2 from 0."),
};

}  // namespace

REGISTER_OP("StatefulUniformInt")
    .Signature(
        "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype "
        "-> output: dtype")
    .Attr("dtype: type = DT_INT64")
    .Attr("shape_dtype: type = DT_INT64")
    .SetIsStateful()
    .SetShapeFn(StatefulRangeShape)
    .Doc(StrCat("Draws integers from the uniform distribution on [minval, maxval), two scalars.",
                kShapeDoc, kStateDoc));

REGISTER_OP("StatefulStandardNormal")
    .Signature("resource: resource, shape: shape_dtype -> output: dtype")
    .Attr("dtype: type = DT_FLOAT")
    .Attr("shape_dtype: type = DT_INT64")
    .Deprecated(29, "Use StatefulStandardNormalV2 instead")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return InputAsShapeShape(c, 1); })
    .Doc(StrCat("Draws numbers of mean 0 and standard deviation 1 from the normal distribution.",
                kShapeDoc,
                " `resource` is a variable of int64 [4]: the number of the generator (1, Philox), "
                "its counter, low half first, and its key."));

REGISTER_OP("StatefulRandomBinomial")
    .Signature(
        "resource: resource, algorithm: int64, shape: S, counts: T, probs: T -> output: dtype")
    .Attr("S: {int32, int64}")
    .Attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
    .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
    .SetIsStateful()
    .SetShapeFn(StatefulBinomialShape)
    .Doc(StrCat("Draws how many of `counts` trials succeed, each with probability `probs`. The two "
                "are broadcast to one shape, with which `shape` ends.",
                kShapeDoc, kStateDoc));

REGISTER_OP("NonDeterministicInts")
    .Signature("shape: shape_dtype -> output: dtype")
    .Attr("dtype: type = DT_INT64")
    .Attr("shape_dtype: type = DT_INT64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return InputAsShapeShape(c, 0); })
    .Doc(StrCat("Draws any integers of the type `dtype`, from a seed drawn at random, which is "
                "kept nowhere.",
                kShapeDoc));

}  // namespace troupe
