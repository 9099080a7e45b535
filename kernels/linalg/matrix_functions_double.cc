#include "kernels/linalg/matrix_functions_impl.h"

namespace troupe {

TROUPE_MATRIX_FUNCTIONS(, double)
TROUPE_MATRIX_SQRT(, double)

}  // namespace troupe
