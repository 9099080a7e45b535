#include "kernels/linalg/matrix_functions_impl.h"

namespace troupe {

TROUPE_MATRIX_FUNCTIONS(, complex128)
template void MatrixLog<complex128>(int64_t, const complex128*, complex128*);

}  // namespace troupe
