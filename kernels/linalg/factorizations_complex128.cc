#include "kernels/linalg/factorizations_impl.h"

namespace troupe {

TROUPE_FACTORIZATIONS(, complex128)

}  // namespace troupe
