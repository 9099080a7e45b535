#include "kernels/linalg/svd_impl.h"

namespace troupe {

TROUPE_SVD(, complex64)

}  // namespace troupe
