/// The bytes of the widest registers of the instruction set that a file is compiled for.
#ifndef TROUPE_KERNELS_SIMD_VECTOR_BYTES_H_
#define TROUPE_KERNELS_SIMD_VECTOR_BYTES_H_

namespace troupe::TROUPE_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

}  // namespace troupe::TROUPE_ISA

#endif  // TROUPE_KERNELS_SIMD_VECTOR_BYTES_H_
