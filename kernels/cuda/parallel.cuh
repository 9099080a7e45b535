/// What kernels of CUDA are written with: types, launches, loops over elements. Read by nvcc, and
/// by the host's compiler where kernels are tested without a card (tests/cuda_on_host).
#ifndef TROUPE_KERNELS_CUDA_PARALLEL_CUH_
#define TROUPE_KERNELS_CUDA_PARALLEL_CUH_

#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

inline constexpr int kThreads = 256;

/// What a type is computed in: float for the small floating-point types.
template <typename T>
struct Wide {
  using Type = T;
};
template <>
struct Wide<__half> {
  using Type = float;
};
template <>
struct Wide<__nv_bfloat16> {
  using Type = float;
};
template <typename T>
using WideType = typename Wide<T>::Type;

template <typename T>
inline constexpr bool kIsFloating =
    std::is_floating_point_v<T> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

/// The number of blocks for so many threads' work: enough to fill any card; threads take several
/// pieces each after that.
inline unsigned Blocks(int64_t pieces) {
  return static_cast<unsigned>(std::clamp<int64_t>((pieces + kThreads - 1) / kThreads, 1, 8192));
}

/// Enqueues a kernel (`__global__`), without dynamic shared memory. Arguments are converted to the
/// kernel's own types.
template <typename... Params, typename... Args>
cudaError_t Launch(void (*kernel)(Params...), dim3 blocks, dim3 threads, cudaStream_t stream,
                   Args... args) {
#ifdef __CUDACC__
  kernel<<<blocks, threads, 0, stream>>>(static_cast<Params>(args)...);
  return cudaGetLastError();
#else
  return on_host::Launch(kernel, blocks, threads, stream, static_cast<Params>(args)...);
#endif
}

template <typename Body>
__global__ void __launch_bounds__(kThreads) ForEachIndex(int64_t n, Body body) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) body(i);
}

/// Enqueues body(i) for all i < n, in any order and at once. `body` is copied: a function object,
/// or a lambda `[=] __device__(int64_t i)` within a function that is no lambda itself.
template <typename Body>
cudaError_t ForEach(int64_t n, cudaStream_t stream, Body body) {
  if (n <= 0) return cudaSuccess;
  return Launch(&ForEachIndex<Body>, Blocks(n), kThreads, stream, n, body);
}

template <typename T>
struct TypeTag {
  using Type = T;
};

/// Calls fn(TypeTag<T>()) with the floating-point type that is computed in float;
/// cudaErrorNotSupported for others.
template <typename Fn>
cudaError_t VisitSmallFloating(Number type, Fn fn) {
  switch (type) {
    case Number::kHalf:
      return fn(TypeTag<__half>());
    case Number::kBfloat16:
      return fn(TypeTag<__nv_bfloat16>());
    case Number::kFloat:
      return fn(TypeTag<float>());
    default:
      return cudaErrorNotSupported;
  }
}
/// The same for all floating-point types.
template <typename Fn>
cudaError_t VisitFloating(Number type, Fn fn) {
  return type == Number::kDouble ? fn(TypeTag<double>()) : VisitSmallFloating(type, fn);
}
/// The same for float and double.
template <typename Fn>
cudaError_t VisitFloatAndDouble(Number type, Fn fn) {
  if (type == Number::kFloat) return fn(TypeTag<float>());
  if (type == Number::kDouble) return fn(TypeTag<double>());
  return cudaErrorNotSupported;
}

/// The same for the signed integers that live in a card's memory: int32 is on the host.
template <typename Fn>
cudaError_t VisitSigned(Number type, Fn fn) {
  switch (type) {
    case Number::kInt8:
      return fn(TypeTag<int8_t>());
    case Number::kInt16:
      return fn(TypeTag<int16_t>());
    case Number::kInt64:
      return fn(TypeTag<int64_t>());
    default:
      return cudaErrorNotSupported;
  }
}
/// With the unsigned type of the size of an integer type that lives in a card's memory.
template <typename Fn>
cudaError_t VisitUnsigned(Number type, Fn fn) {
  switch (type) {
    case Number::kInt8:
    case Number::kUint8:
      return fn(TypeTag<uint8_t>());
    case Number::kInt16:
    case Number::kUint16:
      return fn(TypeTag<uint16_t>());
    case Number::kUint32:
      return fn(TypeTag<uint32_t>());
    case Number::kInt64:
    case Number::kUint64:
      return fn(TypeTag<uint64_t>());
    default:
      return cudaErrorNotSupported;
  }
}
/// With the integer type itself, int32 too.
template <typename Fn>
cudaError_t VisitInteger(Number type, Fn fn) {
  if (type == Number::kInt32) return fn(TypeTag<int32_t>());
  const cudaError_t error = VisitSigned(type, fn);
  return error == cudaErrorNotSupported ? VisitUnsigned(type, fn) : error;
}

/// For kernels that only move elements: calls fn with an unsigned type of `bytes` bytes.
template <typename Fn>
cudaError_t VisitSize(int64_t bytes, Fn fn) {
  switch (bytes) {
    case 1:
      return fn(TypeTag<uint8_t>());
    case 2:
      return fn(TypeTag<uint16_t>());
    case 4:
      return fn(TypeTag<uint32_t>());
    case 8:
      return fn(TypeTag<uint64_t>());
    case 16:
      return fn(TypeTag<uint4>());
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_PARALLEL_CUH_
