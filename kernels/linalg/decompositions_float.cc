#include "kernels/linalg/decompositions_impl.h"

namespace troupe {

TROUPE_DECOMPOSITIONS(, float)

}  // namespace troupe
