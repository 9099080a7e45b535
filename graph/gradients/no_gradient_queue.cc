// Ops of queues that have no gradient.
#include "graph/gradients/gradient_registry.h"

namespace troupe {
namespace {

REGISTER_NO_GRADIENT("QueueClose");
REGISTER_NO_GRADIENT("QueueDequeue");
REGISTER_NO_GRADIENT("QueueDequeueMany");
REGISTER_NO_GRADIENT("QueueDequeueUpTo");
REGISTER_NO_GRADIENT("QueueEnqueue");
REGISTER_NO_GRADIENT("QueueEnqueueMany");
REGISTER_NO_GRADIENT("QueueSize");

}  // namespace
}  // namespace troupe
