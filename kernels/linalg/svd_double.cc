#include "kernels/linalg/svd_impl.h"

namespace troupe {

TROUPE_SVD(, double)

}  // namespace troupe
