// Tensors that a session keeps for later steps.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status OfHandle(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(0), 0).status());
  if (c->num_outputs() > 0) c->set_output(0, PartialShape());
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("DeleteSessionTensor")
    .Signature("handle: string")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc("Forgets the tensor that GetSessionHandle has kept under `handle`.");

REGISTER_OP("GetSessionHandle")
    .Signature("value: T -> handle: string")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc(
        "Keeps `value` until its session ends, or DeleteSessionTensor is given the `handle`, under "
        "which GetSessionTensor gives it to later steps.");

REGISTER_OP("GetSessionHandleV2")
    .Signature("value: T -> handle: resource")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Keeps `value` as GetSessionHandle does. The name of the resource is its handle.");

REGISTER_OP("GetSessionTensor")
    .Signature("handle: string -> value: dtype")
    .Attr("dtype: type")
    .SetIsStateful()
    .SetShapeFn(OfHandle)
    .Doc("The tensor, of type `dtype`, that GetSessionHandle has kept under `handle`.");

}  // namespace troupe
