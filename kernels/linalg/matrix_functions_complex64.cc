#include "kernels/linalg/matrix_functions_impl.h"

namespace troupe {

TROUPE_MATRIX_FUNCTIONS(, complex64)
template void MatrixLog<complex64>(int64_t, const complex64*, complex64*);

}  // namespace troupe
