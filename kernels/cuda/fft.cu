// A block reads some sums of a pass into shared memory, computes them there by passes of small
// radices, and writes them: a line that is not too long is read and written once, longer ones as
// often as there are passes. Neighbouring threads read, and write, neighbours where there are some.
#include "kernels/cuda/fft.h"

#include "kernels/cuda/complex.cuh"

namespace troupe::cuda {
namespace {

/// Numbers in shared memory, twice: 40 KiB together.
template <typename R>
constexpr int kRoom = 20480 / (2 * sizeof(R));
/// The longest line of one pass, and the largest radix if there are several: 8 of these sums are
/// computed at once.
template <typename R>
constexpr int kLongest = 16384 / (2 * sizeof(R));
template <typename R>
constexpr int kLargestRadix = kLongest<R> / 8;
/// The largest prime factor.
constexpr int kLargestFactor = 31;

/// exp(-2 pi i k / n) for 0 <= k < n.
template <typename R>
__device__ Complex<R> Root(int64_t k, int64_t n) {
  double s, c;
  sincospi(-2.0 * static_cast<double>(k) / static_cast<double>(n), &s, &c);
  return {static_cast<R>(c), static_cast<R>(s)};
}

template <typename R>
__device__ Complex<R> Swapped(Complex<R> x, bool swap) {
  return swap ? Complex<R>{x.imag, x.real} : x;
}
/// -i x.
template <typename R>
__device__ Complex<R> Turned(Complex<R> x) {
  return {x.imag, -x.real};
}

template <typename R>
__device__ void Transform2(Complex<R>& a, Complex<R>& b) {
  const Complex<R> sum = a + b;
  b = a - b;
  a = sum;
}

/// In place: x[k] = sum over j of x[j] w(j k / kRadix).
template <int kRadix>
struct Butterfly;

template <>
struct Butterfly<2> {
  template <typename R>
  __device__ static void Run(Complex<R> (&x)[2]) {
    Transform2(x[0], x[1]);
  }
};
template <>
struct Butterfly<3> {
  template <typename R>
  __device__ static void Run(Complex<R> (&x)[3]) {
    const Complex<R> sum = x[1] + x[2];
    const Complex<R> turned = Times(R(0.866025403784438646763), Turned(x[1] - x[2]));
    const Complex<R> half = x[0] + Times(R(-0.5), sum);
    x[0] = x[0] + sum;
    x[1] = half + turned;
    x[2] = half - turned;
  }
};
template <>
struct Butterfly<4> {
  template <typename R>
  __device__ static void Run(Complex<R> (&x)[4]) {
    Transform2(x[0], x[2]);
    Transform2(x[1], x[3]);
    x[3] = Turned(x[3]);
    Transform2(x[0], x[1]);
    Transform2(x[2], x[3]);
    const Complex<R> second = x[2];
    x[2] = x[1];
    x[1] = second;
  }
};
template <>
struct Butterfly<5> {
  template <typename R>
  __device__ static void Run(Complex<R> (&x)[5]) {
    constexpr R kCos1 = R(0.309016994374947424102), kCos2 = R(-0.809016994374947424102);
    constexpr R kSin1 = R(0.951056516295153572116), kSin2 = R(0.587785252292473129169);
    const Complex<R> a = x[1] + x[4], b = x[2] + x[3];
    const Complex<R> c = Turned(x[1] - x[4]), d = Turned(x[2] - x[3]);
    const Complex<R> even1 = x[0] + Times(kCos1, a) + Times(kCos2, b);
    const Complex<R> even2 = x[0] + Times(kCos2, a) + Times(kCos1, b);
    const Complex<R> odd1 = Times(kSin1, c) + Times(kSin2, d);
    const Complex<R> odd2 = Times(kSin2, c) - Times(kSin1, d);
    x[0] = x[0] + a + b;
    x[1] = even1 + odd1;
    x[2] = even2 + odd2;
    x[3] = even2 - odd2;
    x[4] = even1 - odd1;
  }
};
template <>
struct Butterfly<8> {
  template <typename R>
  __device__ static void Run(Complex<R> (&x)[8]) {
    Complex<R> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    Butterfly<4>::Run(even);
    Butterfly<4>::Run(odd);
    constexpr R kRoot = R(0.707106781186547524401);
    odd[1] = Times(kRoot, odd[1] + Turned(odd[1]));
    odd[2] = Turned(odd[2]);
    odd[3] = Times(kRoot, Turned(odd[3]) - odd[3]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      x[k] = even[k] + odd[k];
      x[k + 4] = even[k] - odd[k];
    }
  }
};

/// The sums of a tile, in shared memory: number j of sum t is at j * pitch + t.
template <typename R>
struct Tile {
  const Complex<R>* roots;  ///< For k / length.
  int length, bits, pitch;

  __device__ int count() const { return length << bits; }
  __device__ int At(int j, int t) const { return j * pitch + t; }
};

/// A pass within shared memory, for `size` numbers that are left, `stride` apart.
template <int kRadix, typename R>
__device__ void SmallPass(const Tile<R>& tile, int size, int stride, const Complex<R>* from,
                          Complex<R>* to) {
  const int rest = size / kRadix;
  for (int i = threadIdx.x; i < tile.count() / kRadix; i += kThreads) {
    const int t = i & ((1 << tile.bits) - 1), m = i >> tile.bits;
    const int p = static_cast<unsigned>(m) / static_cast<unsigned>(stride), q = m - p * stride;
    Complex<R> x[kRadix];
#pragma unroll
    for (int j = 0; j < kRadix; ++j) x[j] = from[tile.At(q + stride * (p + rest * j), t)];
    Butterfly<kRadix>::Run(x);
#pragma unroll
    for (int k = 0; k < kRadix; ++k) {
      if (k > 0 && p > 0) x[k] = PlainProduct(x[k], tile.roots[p * k * stride]);
      to[tile.At(q + stride * (kRadix * p + k), t)] = x[k];
    }
  }
}

/// The same for any radix: a thread for each sum.
template <typename R>
__device__ void PassOfAny(const Tile<R>& tile, int radix, int size, int stride,
                          const Complex<R>* from, Complex<R>* to) {
  const int rest = size / radix, step = tile.length / radix;
  for (int i = threadIdx.x; i < tile.count(); i += kThreads) {
    const int t = i & ((1 << tile.bits) - 1), m = i >> tile.bits;
    const int q = m % stride, k = m / stride % radix, p = m / stride / radix;
    Complex<R> sum = from[tile.At(q + stride * p, t)];
    for (int j = 1; j < radix; ++j) {
      const Complex<R> x = from[tile.At(q + stride * (p + rest * j), t)];
      sum = sum + PlainProduct(x, tile.roots[j * k % radix * step]);
    }
    to[tile.At(m, t)] = PlainProduct(sum, tile.roots[p * k * stride]);
  }
}

template <typename R>
__global__ void __launch_bounds__(kThreads)
    RunPass(FftPass pass, const Complex<R>* roots, const Complex<R>* in, Complex<R>* out) {
  __shared__ Complex<R> first[kRoom<R>];
  __shared__ Complex<R> second[kRoom<R>];
  const int wide = 1 << pass.tile_bits;
  const Tile<R> tile{roots, pass.radix, pass.tile_bits, wide | 1};
  const int64_t columns = pass.rest * pass.stride, sums = pass.outer * columns;
  const int64_t size = pass.radix * pass.rest;
  const R scale = static_cast<R>(pass.scale);
  for (int64_t begin = int64_t{blockIdx.x} << pass.tile_bits; begin < sums;
       begin += int64_t{gridDim.x} << pass.tile_bits) {
    // Number j of sum t. Numbers of a sum are neighbours only if it is a whole line.
    for (int i = threadIdx.x; i < tile.count(); i += kThreads) {
      const int t = columns == 1 ? i / pass.radix : i & (wide - 1);
      const int j = columns == 1 ? i - t * pass.radix : i >> pass.tile_bits;
      const int64_t sum = begin + t;
      if (sum >= sums) continue;
      const int64_t line = columns == 1 ? sum : sum / columns, column = sum - line * columns;
      first[tile.At(j, t)] = Swapped(in[(line * pass.radix + j) * columns + column], pass.swap_in);
    }
    __syncthreads();
    Complex<R>*from = first, *to = second;
    int left = pass.radix, stride = 1;
    for (int f = 0; f < pass.num_factors; ++f) {
      const int radix = pass.factors[f];
      if (radix == 8) {
        SmallPass<8>(tile, left, stride, from, to);
      } else if (radix == 5) {
        SmallPass<5>(tile, left, stride, from, to);
      } else if (radix == 4) {
        SmallPass<4>(tile, left, stride, from, to);
      } else if (radix == 3) {
        SmallPass<3>(tile, left, stride, from, to);
      } else if (radix == 2) {
        SmallPass<2>(tile, left, stride, from, to);
      } else {
        PassOfAny(tile, radix, left, stride, from, to);
      }
      __syncthreads();
      Complex<R>* const other = from;
      from = to;
      to = other;
      left /= radix;
      stride *= radix;
    }
    for (int i = threadIdx.x; i < tile.count(); i += kThreads) {
      const int t = pass.stride == 1 ? i / pass.radix : i & (wide - 1);
      const int k = pass.stride == 1 ? i - t * pass.radix : i >> pass.tile_bits;
      const int64_t sum = begin + t;
      if (sum >= sums) continue;
      const int64_t line = columns == 1 ? sum : sum / columns, column = sum - line * columns;
      const int64_t p = pass.rest == 1 ? 0 : column / pass.stride, q = column - p * pass.stride;
      Complex<R> value = from[tile.At(k, t)];
      if (pass.rest > 1) value = PlainProduct(value, Root<R>(p * k, size));
      out[line * size * pass.stride + q + pass.stride * (p * pass.radix + k)] =
          Times(scale, Swapped(value, pass.swap_out));
    }
    __syncthreads();
  }
}

/// The radices of passes within shared memory; false if a prime factor is too large.
bool FactorsOf(int64_t n, std::vector<int>* factors) {
  for (const int factor : {8, 4, 2, 5, 3}) {
    for (; n % factor == 0; n /= factor) factors->push_back(factor);
  }
  for (int factor = 7; factor <= kLargestFactor; factor += 2) {
    for (; n % factor == 0; n /= factor) factors->push_back(factor);
  }
  return n == 1;
}

/// n as a product of `count` numbers up to `most`, which differ little; false if there are none.
bool SplitInto(int64_t n, int count, int64_t most, std::vector<int64_t>* parts) {
  if (count == 1) {
    if (n > most) return false;
    parts->push_back(n);
    return true;
  }
  const auto all_not_above = [&](int64_t part) {
    int64_t product = 1;
    for (int i = 0; i < count && product < n; ++i) product *= part;
    return product >= n;
  };
  for (int64_t part = 2; part <= most; ++part) {
    if (n % part != 0 || !all_not_above(part)) continue;
    parts->push_back(part);
    if (SplitInto(n / part, count - 1, most, parts)) return true;
    parts->pop_back();
  }
  return false;
}

/// The radices of passes for a line of n numbers without a large prime factor.
template <typename R>
std::vector<int64_t> RadicesOf(int64_t n, int64_t inner) {
  // Numbers that are apart are read together with those of the neighbouring lines.
  if (n <= (inner == 1 ? kLongest<R> : 2 * kLargestRadix<R>)) return {n};
  std::vector<int64_t> radices;
  for (int count = 2; !SplitInto(n, count, kLargestRadix<R>, &radices); ++count) {
  }
  return radices;
}

template <typename Fn>
cudaError_t VisitParts(bool wide, Fn fn) {
  return wide ? fn(TypeTag<double>()) : fn(TypeTag<float>());
}

/// Calls body(i, line, k, q) with the indices of element i of [lines, n, inner].
template <typename Body>
struct ByIndices {
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / inner, line = row / n;
    body(i, line, row - line * n, i - row * inner);
  }
  int64_t n, inner;
  Body body;
};
template <typename Body>
cudaError_t ForEachOf(int64_t lines, int64_t n, int64_t inner, cudaStream_t stream, Body body) {
  return ForEach(lines * n * inner, stream, ByIndices<Body>{n, inner, body});
}

template <typename R>
struct Roots {
  __device__ void operator()(int64_t k) const { roots[k] = Root<R>(k, n); }
  int64_t n;
  Complex<R>* roots;
};
template <typename R>
struct ToComplex {
  __device__ void operator()(int64_t i) const { out[i] = {in[i], 0}; }
  const R* in;
  Complex<R>* out;
};
template <typename R>
struct ToReal {
  __device__ void operator()(int64_t i) const { out[i] = in[i].real; }
  const Complex<R>* in;
  R* out;
};

template <typename R>
struct ChirpIn {
  __device__ void operator()(int64_t i, int64_t line, int64_t k, int64_t q) const {
    if (k >= chirp.n) {
      work[i] = {0, 0};
      return;
    }
    const Complex<R> x = in[(line * chirp.n + k) * chirp.inner + q];
    work[i] = PlainProduct(Swapped(x, swap), Root<R>(k * k % (2 * chirp.n), 2 * chirp.n));
  }
  Chirp chirp;
  bool swap;
  const Complex<R>* in;
  Complex<R>* work;
};

template <typename R>
struct ChirpFilter {
  __device__ void operator()(int64_t i) const {
    const int64_t k = i < chirp.n ? i : chirp.length - i;
    if (k >= chirp.n) {
      filter[i] = {0, 0};
      return;
    }
    const Complex<double> root = Root<double>(k * k % (2 * chirp.n), 2 * chirp.n);
    const double scale = 1 / static_cast<double>(chirp.length);
    filter[i] = {static_cast<R>(root.real * scale), static_cast<R>(-root.imag * scale)};
  }
  Chirp chirp;
  Complex<R>* filter;
};

template <typename R>
struct ChirpOut {
  __device__ void operator()(int64_t i, int64_t line, int64_t k, int64_t q) const {
    const Complex<R> x = work[(line * chirp.length + k) * chirp.inner + q];
    const Complex<R> y = PlainProduct(x, Root<R>(k * k % (2 * chirp.n), 2 * chirp.n));
    out[i] = Times(scale, Swapped(y, swap));
  }
  Chirp chirp;
  bool swap;
  R scale;
  const Complex<R>* work;
  Complex<R>* out;
};

template <typename R>
struct TimesFilter {
  __device__ void operator()(int64_t i, int64_t, int64_t k, int64_t) const {
    work[i] = PlainProduct(work[i], filter[k]);
  }
  const Complex<R>* filter;
  Complex<R>* work;
};

template <typename R>
struct JoinHalves {
  __device__ void operator()(int64_t i, int64_t line, int64_t k, int64_t) const {
    const Complex<R>* const from = in + line * half;
    const Complex<R> a = from[k == half ? 0 : k], b = from[k == 0 ? 0 : half - k];
    const Complex<R> even{a.real + b.real, a.imag - b.imag}, odd{a.imag + b.imag, b.real - a.real};
    out[i] = Times(R(0.5), even + PlainProduct(Root<R>(k, 2 * half), odd));
  }
  int64_t half;
  const Complex<R>* in;
  Complex<R>* out;
};

template <typename R>
struct SplitHalves {
  __device__ void operator()(int64_t i, int64_t line, int64_t k, int64_t) const {
    const Complex<R>* const from = in + line * (half + 1);
    Complex<R> a = from[k], b = from[half - k];
    if (k == 0) a.imag = b.imag = 0;
    const Complex<R> w = Root<R>(k, 2 * half);
    const Complex<R> even{a.real + b.real, a.imag - b.imag};
    const Complex<R> odd =
        PlainProduct({a.real - b.real, a.imag + b.imag}, Complex<R>{w.real, -w.imag});
    out[i] = {even.real - odd.imag, even.imag + odd.real};
  }
  int64_t half;
  const Complex<R>* in;
  Complex<R>* out;
};

template <typename R>
struct BothHalves {
  __device__ void operator()(int64_t i, int64_t line, int64_t k, int64_t) const {
    const bool mirrored = k > n / 2;
    Complex<R> x = in[line * (n / 2 + 1) + (mirrored ? n - k : k)];
    if (k == 0) x.imag = 0;
    out[i] = {x.real, mirrored ? -x.imag : x.imag};
  }
  int64_t n;
  const Complex<R>* in;
  Complex<R>* out;
};

template <typename R>
struct FirstHalf {
  __device__ void operator()(int64_t i, int64_t line, int64_t k, int64_t) const {
    out[i] = in[line * n + k];
  }
  int64_t n;
  const Complex<R>* in;
  Complex<R>* out;
};

template <typename R>
const Complex<R>* In(const void* numbers) {
  return static_cast<const Complex<R>*>(numbers);
}
template <typename R>
Complex<R>* Out(void* numbers) {
  return static_cast<Complex<R>*>(numbers);
}

}  // namespace

int64_t SmoothSize(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t fives = 1; fives < best; fives *= 5) {
    for (int64_t size = fives; size < best; size *= 3) {
      int64_t twos = size;
      while (twos < n) twos *= 2;
      best = std::min(best, twos);
    }
  }
  return best;
}

std::vector<FftPass> PlanFft(int64_t outer, int64_t n, int64_t inner, bool wide) {
  std::vector<int> factors;
  if (!FactorsOf(n, &factors)) return {};
  std::vector<FftPass> passes;
  int64_t left = n, stride = inner;
  for (const int64_t radix : wide ? RadicesOf<double>(n, inner) : RadicesOf<float>(n, inner)) {
    left /= radix;
    FftPass pass;
    pass.outer = outer;
    pass.rest = left;
    pass.stride = stride;
    pass.radix = static_cast<int>(radix);
    factors.clear();
    FactorsOf(radix, &factors);
    for (const int factor : factors) pass.factors[pass.num_factors++] = factor;
    const int64_t sums = outer * left * stride, room = wide ? kRoom<double> : kRoom<float>;
    const auto fits = [&](int bits) { return radix * ((int64_t{1} << bits) | 1) <= room; };
    while (pass.tile_bits < 8 && int64_t{1} << pass.tile_bits < sums && fits(pass.tile_bits + 1)) {
      ++pass.tile_bits;
    }
    passes.push_back(pass);
    stride *= radix;
  }
  return passes;
}

cudaError_t LaunchFftPass(bool wide, const FftPass& pass, const void* roots, const void* in,
                          void* out, cudaStream_t stream) {
  const int64_t sums = pass.outer * pass.rest * pass.stride;
  const int64_t tiles = (sums + (int64_t{1} << pass.tile_bits) - 1) >> pass.tile_bits;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(tiles, 1 << 20));
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return Launch(&RunPass<R>, blocks, kThreads, stream, pass, In<R>(roots), In<R>(in),
                  Out<R>(out));
  });
}

cudaError_t LaunchRoots(bool wide, int64_t n, void* roots, cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEach(n, stream, Roots<R>{n, Out<R>(roots)});
  });
}

cudaError_t LaunchChirpIn(bool wide, const Chirp& chirp, bool swap, const void* in, void* work,
                          cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEachOf(chirp.outer, chirp.length, chirp.inner, stream,
                     ChirpIn<R>{chirp, swap, In<R>(in), Out<R>(work)});
  });
}

cudaError_t LaunchChirpFilter(bool wide, const Chirp& chirp, void* filter, cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEach(chirp.length, stream, ChirpFilter<R>{chirp, Out<R>(filter)});
  });
}

cudaError_t LaunchTimesFilter(bool wide, const Chirp& chirp, const void* filter, void* work,
                              cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEachOf(chirp.outer, chirp.length, chirp.inner, stream,
                     TimesFilter<R>{In<R>(filter), Out<R>(work)});
  });
}

cudaError_t LaunchChirpOut(bool wide, const Chirp& chirp, bool swap, double scale, const void* work,
                           void* out, cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEachOf(chirp.outer, chirp.n, chirp.inner, stream,
                     ChirpOut<R>{chirp, swap, static_cast<R>(scale), In<R>(work), Out<R>(out)});
  });
}

cudaError_t LaunchJoinHalves(bool wide, int64_t count, int64_t n, const void* in, void* out,
                             cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEachOf(count, n / 2 + 1, 1, stream, JoinHalves<R>{n / 2, In<R>(in), Out<R>(out)});
  });
}

cudaError_t LaunchSplitHalves(bool wide, int64_t count, int64_t n, const void* in, void* out,
                              cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEachOf(count, n / 2, 1, stream, SplitHalves<R>{n / 2, In<R>(in), Out<R>(out)});
  });
}

cudaError_t LaunchToComplex(bool wide, int64_t elements, const void* in, void* out,
                            cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEach(elements, stream, ToComplex<R>{static_cast<const R*>(in), Out<R>(out)});
  });
}

cudaError_t LaunchFirstHalf(bool wide, int64_t count, int64_t n, const void* in, void* out,
                            cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEachOf(count, n / 2 + 1, 1, stream, FirstHalf<R>{n, In<R>(in), Out<R>(out)});
  });
}

cudaError_t LaunchBothHalves(bool wide, int64_t count, int64_t n, const void* in, void* out,
                             cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEachOf(count, n, 1, stream, BothHalves<R>{n, In<R>(in), Out<R>(out)});
  });
}

cudaError_t LaunchToReal(bool wide, int64_t elements, const void* in, void* out,
                         cudaStream_t stream) {
  return VisitParts(wide, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return ForEach(elements, stream, ToReal<R>{In<R>(in), static_cast<R*>(out)});
  });
}

}  // namespace troupe::cuda
