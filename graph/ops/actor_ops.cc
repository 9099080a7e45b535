// Ops that ask actors of the application.
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"

namespace troupe {
namespace {

absl::Status AskShape(InferenceContext* c) { return ShapesOfAttr(c, "shapes"); }

REGISTER_OP("AskActor")
    .Signature("inputs: Tin -> outputs: Tout")
    .Attr("actor: string")
    .Attr("timeout_ms: int = -1")
    .Attr("gradient: string = ''")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("shapes: list(shape) >= 0 = []")
    .SetIsStateful()
    .SetShapeFn(AskShape)
    .Doc(
        "Asks the actor that is published as `actor`: it receives (ask_atom, inputs) and answers "
        "the outputs. Its error is the node's; so is its end, an answer of other types or shapes, "
        "and none within `timeout_ms` (-1: it may take as long as the step). `gradient` names an "
        "actor that is asked with the inputs and the gradients of the outputs, and answers the "
        "gradients of the inputs that have one, in their order.");

REGISTER_OP("TellActor")
    .Signature("inputs: Tin ->")
    .Attr("actor: string")
    .Attr("Tin: list(type) >= 0")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(
        "Tells the actor that is published as `actor`: it receives (tell_atom, inputs). Does not "
        "wait; ResourceExhausted if the actor does not keep up.");

}  // namespace
}  // namespace troupe
