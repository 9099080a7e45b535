/// For functions that processors and cards share.
#ifndef TROUPE_KERNELS_COMMON_FORMULA_H_
#define TROUPE_KERNELS_COMMON_FORMULA_H_

#ifdef __CUDACC__
#define TROUPE_FORMULA __device__
#else
#define TROUPE_FORMULA
#endif

#endif  // TROUPE_KERNELS_COMMON_FORMULA_H_
