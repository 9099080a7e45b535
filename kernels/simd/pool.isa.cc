#include "kernels/simd/pool.h"

#include "kernels/simd/pool_loops.h"

namespace troupe::TROUPE_ISA {

PoolFunctions PoolTable() {
  return {MaxPoolRows<float>, MaxPoolGradImages<float, int32_t>, AvgPoolRows<float>,
          AvgPoolGradImage<float>};
}

}  // namespace troupe::TROUPE_ISA
