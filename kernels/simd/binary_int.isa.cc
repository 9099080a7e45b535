// Binary functions of int32 and int64.
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {

void FillBinaryInt(Table* table) {
  FillIntegerBinary<int32_t>(table->binary[kI32]);
  FillIntegerBinary<int64_t>(table->binary[kI64]);
}

}  // namespace troupe::simd::TROUPE_ISA
