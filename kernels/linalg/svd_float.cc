#include "kernels/linalg/svd_impl.h"

namespace troupe {

TROUPE_SVD(, float)

}  // namespace troupe
