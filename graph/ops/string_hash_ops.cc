// Strings to numbers of buckets.
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

REGISTER_OP("StringToHashBucketFast")
    .Signature("input: string -> output: int64")
    .Attr("num_buckets: int >= 1")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "The bucket of each string, its FarmHash fingerprint modulo `num_buckets`: the same "
        "everywhere and always.");

}  // namespace
}  // namespace troupe
