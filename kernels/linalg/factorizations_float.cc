#include "kernels/linalg/factorizations_impl.h"

namespace troupe {

TROUPE_FACTORIZATIONS(, float)
TROUPE_REAL_FACTORIZATIONS(, float)

}  // namespace troupe
