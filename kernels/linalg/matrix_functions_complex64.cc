#include "kernels/linalg/matrix_functions_impl.h"

namespace troupe {

TROUPE_MATRIX_FUNCTIONS(, complex64)

}  // namespace troupe
