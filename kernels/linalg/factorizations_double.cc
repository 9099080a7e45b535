#include "kernels/linalg/factorizations_impl.h"

namespace troupe {

TROUPE_FACTORIZATIONS(, double)
TROUPE_REAL_FACTORIZATIONS(, double)

}  // namespace troupe
