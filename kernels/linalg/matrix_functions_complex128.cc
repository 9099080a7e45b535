#include "kernels/linalg/matrix_functions_impl.h"

namespace troupe {

TROUPE_MATRIX_FUNCTIONS(, complex128)
TROUPE_MATRIX_SQRT(, complex128)
TROUPE_MATRIX_LOG(, complex128)

}  // namespace troupe
