#include "kernels/linalg/decompositions_impl.h"

namespace troupe {

TROUPE_DECOMPOSITIONS(, double)

}  // namespace troupe
