/// CUDA for the host's compiler: what `.cu` files are compiled with where there is no card, so that
/// kernels and what launches them are tested everywhere. Included before everything else
/// (-include).
///
/// A launch runs on the thread of a simulated device (tests/devices/simulated), whose memory only
/// launches can reach. The threads of a block take turns and switch at barriers and warp
/// operations alone; blocks come in any order, threads in a rising or falling one.
#ifndef TROUPE_TESTS_CUDA_ON_HOST_CUDA_ON_HOST_H_
#define TROUPE_TESTS_CUDA_ON_HOST_CUDA_ON_HOST_H_

#ifdef __cplusplus
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define dlopen cuda_on_host_dlopen  // The libraries of CUDA are in this one.
#include <cuda_runtime_api.h>
#include <math.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>

inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;

namespace troupe::cuda::on_host {

/// Has the stream run `thread` as often as there are threads. Refuses what a card would refuse.
cudaError_t Enqueue(dim3 blocks, dim3 threads, size_t argument_bytes, cudaStream_t stream,
                    std::function<void()> thread);
/// In `bytes` bytes at `data`, replaces addresses of device memory by those of its second mapping.
void ReachAll(void* data, size_t bytes);

template <typename T>
T Inside(T argument) {
  static_assert(std::is_trivially_copyable_v<T>, "arguments of kernels are copied as bytes");
  ReachAll(&argument, sizeof(T));
  return argument;
}

template <typename... Params>
cudaError_t Launch(void (*kernel)(Params...), dim3 blocks, dim3 threads, cudaStream_t stream,
                   std::type_identity_t<Params>... args) {
  return Enqueue(
      blocks, threads, (sizeof(Params) + ... + 0), stream,
      [kernel, arguments = std::make_tuple(Inside(args)...)] { std::apply(kernel, arguments); });
}

/// What the threads of a block do together; each waits for the others.
void BlockBarrier();
void WarpBarrier();
/// Where a lane of this thread's warp leaves up to 16 bytes for the others.
void* LaneSlot(int lane);
int Lane();

/// The value that `source` gives; every lane of the warp calls this.
template <typename T>
T Shuffle(T value, int source) {
  static_assert(sizeof(T) <= 16 && std::is_trivially_copyable_v<T>);
  std::memcpy(LaneSlot(Lane()), &value, sizeof(T));
  WarpBarrier();
  std::memcpy(&value, LaneSlot(source), sizeof(T));
  WarpBarrier();
  return value;
}

template <typename T>
T Exchange(T* at, T value) {
  const T before = *at;
  *at = value;
  return before;
}

}  // namespace troupe::cuda::on_host

inline void __syncthreads() { troupe::cuda::on_host::BlockBarrier(); }
/// What it precedes is an atomic operation.
inline void __threadfence_system() {}
inline void __syncwarp(unsigned = ~0u) { troupe::cuda::on_host::WarpBarrier(); }

template <typename T>
T __shfl_sync(unsigned, T value, int source, int width = 32) {
  const int lane = troupe::cuda::on_host::Lane();
  return troupe::cuda::on_host::Shuffle(value, lane / width * width + source % width);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask, int width = 32) {
  const int lane = troupe::cuda::on_host::Lane(), source = lane ^ mask;
  return troupe::cuda::on_host::Shuffle(value, source / width == lane / width ? source : lane);
}
template <typename T>
T __shfl_down_sync(unsigned, T value, int delta, int width = 32) {
  const int lane = troupe::cuda::on_host::Lane();
  return troupe::cuda::on_host::Shuffle(value, lane % width + delta < width ? lane + delta : lane);
}
template <typename T>
T __shfl_up_sync(unsigned, T value, int delta, int width = 32) {
  const int lane = troupe::cuda::on_host::Lane();
  return troupe::cuda::on_host::Shuffle(value, lane % width >= delta ? lane - delta : lane);
}
inline unsigned __ballot_sync(unsigned, bool predicate) {
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane) {
    ballot |= unsigned{troupe::cuda::on_host::Shuffle(predicate, lane)} << lane;
  }
  return ballot;
}

template <typename T>
T atomicAdd(T* at, T value) {
  return troupe::cuda::on_host::Exchange(at, static_cast<T>(*at + value));
}
template <typename T>
T atomicMax(T* at, T value) {
  return troupe::cuda::on_host::Exchange(at, *at < value ? value : *at);
}
template <typename T>
T atomicMin(T* at, T value) {
  return troupe::cuda::on_host::Exchange(at, value < *at ? value : *at);
}
template <typename T>
T atomicOr(T* at, T value) {
  return troupe::cuda::on_host::Exchange(at, static_cast<T>(*at | value));
}
/// The host may look at the same time.
template <typename T>
T atomicExch(T* at, T value) {
  T before;
  __atomic_exchange(at, &value, &before, __ATOMIC_ACQ_REL);
  return before;
}
template <typename T>
T atomicCAS(T* at, T expected, T value) {
  return troupe::cuda::on_host::Exchange(at, *at == expected ? value : *at);
}

inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
float erfinv(float x);
double erfinv(double x);
float normcdfinv(float x);
double normcdfinv(double x);
/// sin(pi x) and cos(pi x), of an angle that is reduced without rounding.
inline void sincospi(double x, double* s, double* c) {
  const double quarters = rint(2 * x), angle = 3.14159265358979323846 * (x - quarters / 2);
  const double at = quarters - 4 * floor(quarters / 4);
  const double sine = sin(angle), cosine = cos(angle);
  *s = at == 0 ? sine : at == 1 ? cosine : at == 2 ? -sine : -cosine;
  *c = at == 0 ? cosine : at == 1 ? -sine : at == 2 ? -cosine : sine;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(uint64_t{a} * b >> 32);
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(unsigned x) { return std::countl_zero(x); }
template <typename T>
T __ldg(const T* at) {
  return *at;
}

#endif  // __cplusplus
#endif  // TROUPE_TESTS_CUDA_ON_HOST_CUDA_ON_HOST_H_
