#include "kernels/linalg/decompositions_impl.h"

namespace troupe {

TROUPE_DECOMPOSITIONS(, complex64)

}  // namespace troupe
