// A thread makes the outputs of a block of words at a time. Compiled without contraction of
// products and sums: floats get the bits of the CPU's formulas (kernels/simd/random.isa.cc).
#include "kernels/cuda/random.h"

#include "kernels/cuda/group.cuh"
#include "kernels/cuda/random.cuh"
#include "kernels/cuda/scan.h"

namespace troupe::cuda {
namespace {

// Natural logarithm of positive normal numbers: polynomial of Cephes' logf.
__device__ float Log(float x) {
  uint32_t bits = __float_as_uint(x) + (0x3f800000u - 0x3f3504f3u);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127);
  bits = (bits & 0x007fffffu) + 0x3f3504f3u;
  const float m = __uint_as_float(bits) - 1.0f;
  const float z = m * m;
  float y = 7.0376836292e-2f;
  y = y * m + -1.1514610310e-1f;
  y = y * m + 1.1676998740e-1f;
  y = y * m + -1.2420140846e-1f;
  y = y * m + 1.4249322787e-1f;
  y = y * m + -1.6668057665e-1f;
  y = y * m + 2.0000714765e-1f;
  y = y * m + -2.4999993993e-1f;
  y = y * m + 3.3333331174e-1f;
  y = y * m * z;
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  return m + y + e * 0.693359375f;
}

// Sine and cosine for x in [0, 2 pi]: polynomials of Cephes' sinf and cosf.
__device__ void SineCosine(float x, float* sine, float* cosine) {
  const int quadrant = static_cast<int>(x * 0.636619772f + 0.5f);
  const float q = static_cast<float>(quadrant);
  float r = x - q * 1.5703125f;
  r = r - q * 4.837512969970703125e-4f;
  r = r - q * 7.54978995489188216e-8f;
  const float z = r * r;
  float s = -1.9515295891e-4f;
  s = s * z + 8.3321608736e-3f;
  s = s * z + -1.6666654611e-1f;
  s = s * z * r + r;
  float c = 2.443315711809948e-5f;
  c = c * z + -1.388731625493765e-3f;
  c = c * z + 4.166664568298827e-2f;
  c = c * z * z - 0.5f * z + 1.0f;
  const bool swap = (quadrant & 1) != 0;
  const float first = swap ? c : s, second = swap ? s : c;
  *sine = (quadrant & 2) != 0 ? -first : first;
  *cosine = ((quadrant + 1) & 2) != 0 ? -second : second;
}

using cuda::BoxMuller;
/// The same for floats.
__device__ void BoxMuller(float u, float v, float* out) {
  const float radius = sqrtf(-2.0f * Log(fmaxf(u, 1.0e-7f)));
  SineCosine(static_cast<float>(v * kTwoPi), &out[0], &out[1]);
  out[0] *= radius;
  out[1] *= radius;
}

/// The normal numbers of a block, in the type in which they are made.
template <typename T>
__device__ Packed<WideType<T>, kPerBlock<T>> Normal(const Words& words) {
  using W = WideType<T>;
  Packed<W, kPerBlock<T>> pack;
  for (int j = 0; j < kPerBlock<T>; j += 2) {
    BoxMuller(Uniform<W>(words, j), Uniform<W>(words, j + 1), &pack.values[j]);
  }
  return pack;
}

template <typename T, typename Pack>
__device__ void Put(const Pack& pack, int64_t first, int64_t n, T* out) {
  constexpr int kN = kPerBlock<T>;
  Packed<T, kN> made;
  for (int j = 0; j < kN; ++j) made.values[j] = static_cast<T>(pack.values[j]);
  if (first + kN <= n) {
    StorePacked(made, out, first);
    return;
  }
  for (int j = 0; j < kN; ++j) {
    if (first + j < n) out[first + j] = made.values[j];
  }
}

template <typename T>
struct FillUniform {
  __device__ void operator()(int64_t block) const {
    const Words words = BlockAt(start, static_cast<uint64_t>(block));
    Packed<T, kPerBlock<T>> pack;
    for (int j = 0; j < kPerBlock<T>; ++j) pack.values[j] = Uniform<T>(words, j);
    Put(pack, block * kPerBlock<T>, n, out);
  }
  PhiloxStart start;
  T* out;
  int64_t n;
};

template <typename T>
struct FillNormal {
  __device__ void operator()(int64_t block) const {
    Put(Normal<T>(BlockAt(start, static_cast<uint64_t>(block))), block * kPerBlock<T>, n, out);
  }
  PhiloxStart start;
  T* out;
  int64_t n;
};

/// The outputs that would have been made of one block have 256 blocks an output in which those that
/// are too large are replaced.
template <typename T>
struct FillTruncated {
  __device__ void operator()(int64_t group) const {
    constexpr int kN = kPerBlock<T>;
    constexpr uint64_t kBlocks = uint64_t{kN} * 256 / 4;
    Packed<WideType<T>, kN> kept{};
    int found = 0;
    for (uint64_t block = static_cast<uint64_t>(group) * kBlocks; found < kN; ++block) {
      const auto pack = Normal<T>(BlockAt(start, block));
      for (int j = 0; j < kN; ++j) {
        if (found < kN && fabs(pack.values[j]) < 2) kept.values[found++] = pack.values[j];
      }
    }
    Put(kept, group * kN, n, out);
  }
  PhiloxStart start;
  T* out;
  int64_t n;
};

template <typename T>
struct FillInt {
  using U = std::make_unsigned_t<T>;
  __device__ void operator()(int64_t block) const {
    const Words words = BlockAt(start, static_cast<uint64_t>(block));
    Packed<T, kPerBlock<T>> pack;
    for (int j = 0; j < kPerBlock<T>; ++j) {
      U x;
      if constexpr (sizeof(T) == 4) {
        x = words.w[j];
      } else {
        x = static_cast<U>(words.w[2 * j + 1]) << 32 | words.w[2 * j];
      }
      pack.values[j] = static_cast<T>(low + (range == 0 ? x : x % range));
    }
    Put(pack, block * kPerBlock<T>, n, out);
  }
  PhiloxStart start;
  U low, range;
  T* out;
  int64_t n;
};

/// A state is a counter's two halves and a key.
struct Advance {
  __device__ void operator()(int64_t) const {
    const auto low = static_cast<uint64_t>(state[0]), high = static_cast<uint64_t>(state[1]);
    position[0] = static_cast<uint64_t>(state[2]);
    position[1] = low;
    position[2] = high;
    const uint64_t after = low + blocks;
    next[0] = static_cast<int64_t>(after);
    next[1] = static_cast<int64_t>(high + (after < low ? 1 : 0));
  }
  const int64_t* state;
  int64_t* next;
  uint64_t blocks;
  uint64_t* position;
};

template <template <typename> typename Fill>
cudaError_t Run(Number type, PhiloxStart start, void* out, int64_t n, cudaStream_t stream) {
  return VisitFloating(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach((n + kPerBlock<T> - 1) / kPerBlock<T>, stream,
                   Fill<T>{start, static_cast<T*>(out), n});
  });
}

template <typename T>
cudaError_t RunInt(PhiloxStart start, int64_t low, uint64_t range, void* out, int64_t n,
                   cudaStream_t stream) {
  using U = std::make_unsigned_t<T>;
  return ForEach(
      (n + kPerBlock<T> - 1) / kPerBlock<T>, stream,
      FillInt<T>{start, static_cast<U>(low), static_cast<U>(range), static_cast<T*>(out), n});
}

/// What `Shares` subtracts where no logit is finite.
template <typename T>
inline constexpr double kLeastLogit =
    std::is_same_v<T, double> ? kLowest<double> : double{kLowest<float>};

template <typename T>
__device__ double Wider(T logit) {
  return static_cast<WideType<T>>(logit);
}
template <typename T>
__device__ bool IsFinite(T logit) {
  const double x = Wider(logit);
  return x - x == 0;
}

/// A block for each row: exp(logit - largest); 0 for what is not finite.
template <typename T>
__global__ void __launch_bounds__(kThreads) Shares(MultinomialCall call) {
  __shared__ double of_warps[kWarps];
  for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const T* const logits = static_cast<const T*>(call.logits) + row * call.classes;
    double largest = kLeastLogit<T>;
    for (int64_t c = threadIdx.x; c < call.classes; c += kThreads) {
      if (IsFinite(logits[c])) largest = fmax(largest, Wider(logits[c]));
    }
    largest = JoinGroup(largest, kThreads, of_warps, [](double a, double b) { return fmax(a, b); });
    for (int64_t c = threadIdx.x; c < call.classes; c += kThreads) {
      call.sums[row * call.classes + c] = IsFinite(logits[c]) ? exp(Wider(logits[c]) - largest) : 0;
    }
  }
}

/// The first class whose running sum is beyond a share of the total.
template <typename T, typename Index>
struct Draw {
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / call.samples;
    const Words words = BlockAt(call.start, static_cast<uint64_t>(i) / 2);
    const double* const sums = call.sums + row * call.classes;
    const double at = Uniform<double>(words, static_cast<int>(i % 2)) * sums[call.classes - 1];
    int64_t first = 0, last = call.classes;
    while (first < last) {
      const int64_t middle = first + (last - first) / 2;
      if (sums[middle] > at) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    // Sums of several threads need not be the same where nothing is added.
    const T* const logits = static_cast<const T*>(call.logits) + row * call.classes;
    while (first > 0 && first < call.classes && !IsFinite(logits[first])) --first;
    static_cast<Index*>(call.out)[i] = static_cast<Index>(first);
  }
  MultinomialCall call;
};

}  // namespace

cudaError_t LaunchUniform(Number type, PhiloxStart start, void* out, int64_t n,
                          cudaStream_t stream) {
  return Run<FillUniform>(type, start, out, n, stream);
}

cudaError_t LaunchNormal(Number type, PhiloxStart start, void* out, int64_t n,
                         cudaStream_t stream) {
  return Run<FillNormal>(type, start, out, n, stream);
}

cudaError_t LaunchTruncatedNormal(Number type, PhiloxStart start, void* out, int64_t n,
                                  cudaStream_t stream) {
  return Run<FillTruncated>(type, start, out, n, stream);
}

cudaError_t LaunchUniformInt(Number type, PhiloxStart start, int64_t low, uint64_t range, void* out,
                             int64_t n, cudaStream_t stream) {
  switch (type) {
    case Number::kInt32:
    case Number::kUint32:
      return RunInt<int32_t>(start, low, range, out, n, stream);
    case Number::kInt64:
    case Number::kUint64:
      return RunInt<int64_t>(start, low, range, out, n, stream);
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t LaunchAdvance(const int64_t* state, int64_t* next, uint64_t blocks, uint64_t* position,
                          cudaStream_t stream) {
  return ForEach(1, stream, Advance{state, next, blocks, position});
}

int64_t MultinomialScratch(int64_t rows, int64_t classes) {
  return PlanScan(rows, classes, 1).totals();
}

cudaError_t LaunchMultinomial(const MultinomialCall& call, cudaStream_t stream) {
  return VisitFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(call.rows, 8192));
    cudaError_t error = Launch(&Shares<T>, blocks, kThreads, stream, call);
    if (error == cudaSuccess) {
      error = LaunchScan(ScanOp::kSum, Number::kDouble, call.sums, call.sums,
                         PlanScan(call.rows, call.classes, 1), call.scratch, stream);
    }
    if (error != cudaSuccess) return error;
    const int64_t n = call.rows * call.samples;
    return call.wide ? ForEach(n, stream, Draw<T, int64_t>{call})
                     : ForEach(n, stream, Draw<T, int32_t>{call});
  });
}

}  // namespace troupe::cuda
