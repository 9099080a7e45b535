// Strings to numbers of buckets, by hashes of other kinds than StringToHashBucketFast's.
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

REGISTER_OP("StringToHashBucket")
    .Signature("string_tensor: string -> output: int64")
    .Attr("num_buckets: int >= 1")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "The bucket of each string, its MurmurHash64A modulo `num_buckets`. Same shape. For old "
        "graphs: `StringToHashBucketFast` is quicker, `StringToHashBucketStrong` safer.");

REGISTER_OP("StringToHashBucketStrong")
    .Signature("input: string -> output: int64")
    .Attr("num_buckets: int >= 1")
    .Attr("key: list(int)")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "The bucket of each string, its SipHash under the two numbers of `key` modulo "
        "`num_buckets`. Same shape. Who does not know the key cannot find strings that share a "
        "bucket.");

}  // namespace
}  // namespace troupe
