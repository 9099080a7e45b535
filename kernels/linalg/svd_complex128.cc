#include "kernels/linalg/svd_impl.h"

namespace troupe {

TROUPE_SVD(, complex128)

}  // namespace troupe
