/// Element types as kernels of CUDA know them. Plain types only: nvcc reads no header of Troupe's
/// own.
#ifndef TROUPE_KERNELS_CUDA_NUMBER_H_
#define TROUPE_KERNELS_CUDA_NUMBER_H_

#include <cstdint>

namespace troupe::cuda {

enum class Number : uint8_t {
  kHalf,
  kBfloat16,
  kFloat,
  kDouble,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kBool,
  kComplex64,
  kComplex128,
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_NUMBER_H_
