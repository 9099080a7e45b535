// Ops that draw elements from datasets of the application.
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"

namespace troupe {
namespace {

absl::Status NextShape(InferenceContext* c) { return ShapesOfAttr(c, "output_shapes"); }

REGISTER_OP("DatasetIterator")
    .Signature("-> handle: resource")
    .Attr("dataset: string")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc(
        "Makes an iterator of the dataset that is published as `dataset` in the process where it "
        "runs, or finds it.");

REGISTER_OP("DatasetIteratorInitialize")
    .Signature("iterator: resource ->")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(
        "Begins anew. Who waits for an element gets Cancelled. An iterator that is not initialized "
        "begins when it is first used.");

REGISTER_OP("DatasetIteratorNext")
    .Signature("iterator: resource -> components: output_types")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 0 = []")
    .SetIsStateful()
    .SetShapeFn(NextShape)
    .Doc(
        "The components of the next element, each as it was announced; OutOfRange if there is "
        "none.");

REGISTER_OP("DatasetIteratorSave")
    .Signature("iterator: resource -> position: string")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("The position, which DatasetIteratorRestore takes.");

REGISTER_OP("DatasetIteratorRestore")
    .Signature("iterator: resource, position: string ->")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc("Begins anew, at a position that was saved: the next element is the one that came then.");

}  // namespace
}  // namespace troupe
