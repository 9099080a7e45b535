#include "kernels/linalg/factorizations_impl.h"

namespace troupe {

TROUPE_FACTORIZATIONS(, complex64)
template bool GeneralEigen<complex64>(int64_t, const complex64*, complex64*, complex64*);

}  // namespace troupe
