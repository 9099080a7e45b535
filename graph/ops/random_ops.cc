// Random numbers. The generator is Philox 4x32-10, keyed by `seed` and `seed2`.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status RandomUniformIntShape(InferenceContext* c) {
  for (int i = 1; i < 3; ++i) {
    TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(i), 0).status());
  }
  return FirstInputAsShape(c);
}

OpDefBuilder Distribution(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("shape: T -> output: dtype")

      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("dtype: {half, bfloat16, float, double}")
      .Attr("T: {int32, int64}")
      .SetIsStateful()
      .SetShapeFn(FirstInputAsShape)
      .Doc(StrCat(doc, " `output` has the shape `shape`."));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kDistributions[] = {
    Distribution("RandomStandardNormal",
                 "Draws numbers of mean 0 and standard deviation 1 from the normal distribution."),
    Distribution("RandomUniform", "Draws numbers from the uniform distribution on [0, 1)."),
    Distribution("TruncatedNormal",
                 "Draws numbers from the standard normal distribution, again and again while they "
                 "are further than 2 from 0."),
};

}  // namespace

REGISTER_OP("RandomShuffle")
    .Signature("value: T -> output: T")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(UnchangedShape)
    .Doc("Shuffles the rows of `value` at random. `output` has its shape.");

REGISTER_OP("RandomUniformInt")
    .Signature("shape: T, minval: Tout, maxval: Tout -> output: Tout")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("Tout: {int32, int64}")
    .Attr("T: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(RandomUniformIntShape)
    .Doc(
        "Draws integers from the uniform distribution on [minval, maxval), two scalars. "
        "`output` has the shape `shape`.");

}  // namespace troupe
