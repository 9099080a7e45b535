#include "kernels/linalg/factorizations_impl.h"

namespace troupe {

TROUPE_FACTORIZATIONS(, complex128)
template bool GeneralEigen<complex128>(int64_t, const complex128*, complex128*, complex128*);

}  // namespace troupe
