// Strings have no gradients.
#include "graph/gradients/gradient_registry.h"

namespace troupe {
namespace {

REGISTER_NO_GRADIENT("AsString");
REGISTER_NO_GRADIENT("DecodeBase64");
REGISTER_NO_GRADIENT("EncodeBase64");
REGISTER_NO_GRADIENT("ReduceJoin");
REGISTER_NO_GRADIENT("StringSplit");
REGISTER_NO_GRADIENT("StringToHashBucket");
REGISTER_NO_GRADIENT("StringToHashBucketStrong");
REGISTER_NO_GRADIENT("StringToNumber");

}  // namespace
}  // namespace troupe
