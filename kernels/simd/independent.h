/// TROUPE_INDEPENDENT before a loop: its iterations do not depend on each other, since an output is
/// an input or does not overlap it. clang checks that at run time instead.
#ifndef TROUPE_KERNELS_SIMD_INDEPENDENT_H_
#define TROUPE_KERNELS_SIMD_INDEPENDENT_H_

#if defined(__clang__)
#define TROUPE_INDEPENDENT
#else
#define TROUPE_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif  // TROUPE_KERNELS_SIMD_INDEPENDENT_H_
