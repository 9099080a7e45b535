#include "kernels/linalg/matrix_functions_impl.h"

namespace troupe {

TROUPE_MATRIX_FUNCTIONS(, float)
TROUPE_MATRIX_SQRT(, float)

}  // namespace troupe
