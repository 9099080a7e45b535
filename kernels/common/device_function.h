/// Functions that processors and cards share. Plain types only, for all compilers.
#ifndef TROUPE_KERNELS_COMMON_DEVICE_FUNCTION_H_
#define TROUPE_KERNELS_COMMON_DEVICE_FUNCTION_H_

/// Before a function that kernels of CUDA call.
#ifdef __CUDACC__
#define TROUPE_DEVICE_FUNCTION __device__
#else
#define TROUPE_DEVICE_FUNCTION
#endif

#endif  // TROUPE_KERNELS_COMMON_DEVICE_FUNCTION_H_
