// A block for each matrix, which stays in global memory. By rotations of pairs of columns, as many
// at once as have no column in common (Golub and Van Loan, "Matrix Computations", 4th edition,
// sections 8.5 and 8.6.3).
#include "kernels/cuda/decompositions.h"
#include "kernels/cuda/householder.cuh"

namespace troupe::cuda {
namespace {

/// All off-diagonal elements vanish long before.
constexpr int kMostSweeps = 40;

template <typename R>
constexpr R kEpsilon = std::numeric_limits<R>::epsilon();
/// Products of columns that are not larger have lost digits. The largest element is about 1.
template <typename R>
constexpr R kLeastProduct = std::is_same_v<R, float> ? R(0x1p-100) : R(0x1p-900);

/// Pairs of n numbers: in each of `rounds` rounds every number is in one pair at most, and in all
/// of them together every two numbers meet once.
struct Tournament {
  __device__ explicit Tournament(int64_t n) : rounds(n % 2 == 0 ? n - 1 : n), pairs((n + 1) / 2) {}

  /// Pair number k of a round; false if one of the two is none.
  __device__ bool Pair(int64_t n, int64_t round, int64_t k, int64_t* p, int64_t* q) const {
    const int64_t a = k == 0 ? rounds : (round + k) % rounds;
    const int64_t b = k == 0 ? round : (round - k + rounds) % rounds;
    *p = a < b ? a : b;
    *q = a < b ? b : a;
    return *q < n && *p != *q;
  }

  int64_t rounds, pairs;
};

/// Of columns p and q: p' = cosine p - conj(sine) q and q' = sine p + cosine q, after q has been
/// given the phase that makes their product real.
template <typename T>
struct Rotation {
  RealType<T> cosine, sine;
  T phase;  ///< Of the product adjoint(p) q.

  /// For the squares of the columns and their product, the size of which is not 0.
  __device__ Rotation(RealType<T> p_square, RealType<T> q_square, T product) {
    using R = RealType<T>;
    const R size = Size(product);
    const R zeta = (q_square - p_square) / (2 * size);
    const R tangent = (zeta < 0 ? R(-1) : R(1)) / (fabs(zeta) + hypot(R(1), zeta));
    cosine = 1 / hypot(R(1), tangent);
    sine = cosine * tangent;
    phase = Scaled(product, 1 / size);
  }
  __device__ void Turn(T* p, T* q) const {
    const T x = *p, y = Product(Conjugate(phase), *q);
    *p = Scaled(x, cosine) - Scaled(y, sine);
    *q = Scaled(x, sine) + Scaled(y, cosine);
  }
};

/// The size of the largest part of all elements; infinity if one is not finite.
template <typename T, typename Element>
__device__ RealType<T> LargestPart(int64_t elements, Element element, RealType<T>* of_warps) {
  using R = RealType<T>;
  R largest = 0;
  for (int64_t at = threadIdx.x; at < elements; at += blockDim.x) {
    const T x = element(at);
    R size;
    if constexpr (kIsComplex<T>) {
      size = fmax(fabs(x.real), fabs(x.imag));
      if (isnan(x.real) || isnan(x.imag)) size = kInfinity<R>;
    } else {
      size = isnan(x) ? kInfinity<R> : fabs(x);
    }
    largest = fmax(largest, size);
  }
  return JoinGroup(largest, static_cast<int>(blockDim.x), of_warps,
                   [](R a, R b) { return fmax(a, b); });
}

/// A power of two by which elements are multiplied, so that no square overflows or vanishes.
template <typename R>
__device__ R ScaleFor(R largest) {
  const int most = std::is_same_v<R, float> ? 126 : 1022;
  if (!(largest > 0)) return 1;
  const int exponent = -ilogb(largest);
  return ldexp(R(1), exponent > most ? most : exponent);
}

/// Makes `columns` rows of `length` elements orthogonal, each by a warp; rows of `right`, if it is
/// not nullptr, are turned likewise.
template <typename T>
__device__ void MakeOrthogonal(T* rows, int64_t columns, int64_t length, T* right, int* turned) {
  using R = RealType<T>;
  const Tournament tournament(columns);
  const int64_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const R tolerance = kEpsilon<R> * sqrt(static_cast<R>(length));
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    __syncthreads();
    if (threadIdx.x == 0) *turned = 0;
    __syncthreads();
    for (int64_t round = 0; round < (columns > 1 ? tournament.rounds : 0); ++round) {
      for (int64_t k = warp; k < tournament.pairs; k += warps) {
        int64_t p, q;
        if (!tournament.Pair(columns, round, k, &p, &q)) continue;
        T *const x = rows + p * length, *const y = rows + q * length;
        R x_square = 0, y_square = 0;
        T product = FromReal<T>(0);
        for (int64_t i = lane; i < length; i += kWarp) {
          x_square += SquareOf(x[i]);
          y_square += SquareOf(y[i]);
          product = Sum(product, Product(Conjugate(x[i]), y[i]));
        }
        x_square = SumOfWarp(x_square);
        y_square = SumOfWarp(y_square);
        product = SumOfWarp(product);
        const R size = Size(product);
        if (!(size > tolerance * sqrt(x_square) * sqrt(y_square) && size > kLeastProduct<R>)) {
          continue;
        }
        const Rotation<T> rotation(x_square, y_square, product);
        for (int64_t i = lane; i < length; i += kWarp) rotation.Turn(x + i, y + i);
        for (int64_t i = lane; i < (right != nullptr ? columns : 0); i += kWarp) {
          rotation.Turn(right + p * columns + i, right + q * columns + i);
        }
        if (lane == 0) *turned = 1;
      }
      __syncthreads();
    }
    if (*turned == 0) return;
  }
}

/// How many of n numbers come before number i: larger ones, or smaller ones if `ascending`, and
/// equal ones before it.
template <typename T>
__device__ int64_t RankOf(const T* numbers, int64_t n, int64_t i, bool ascending) {
  const RealType<T> own = RealPart(numbers[i]);
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j) {
    const RealType<T> other = RealPart(numbers[j]);
    rank += (ascending ? other < own : other > own) || (other == own && j < i) ? 1 : 0;
  }
  return rank;
}

template <typename T>
__device__ void FillNan(T* to, int64_t elements) {
  for (int64_t at = threadIdx.x; at < elements; at += blockDim.x) {
    to[at] = FromReal<T>(RealType<T>(NAN));
  }
}

template <typename T>
struct SvdMemory {
  HouseholderMemory<T> householder;
  int turned;
};

/// One matrix; of a wide one, the adjoint. `left` are the vectors of the longer side, `right` of
/// the shorter one.
template <typename T>
__device__ void DecomposeOne(const SvdCall& call, const T* a, T* s, T* left, T* right, T* work,
                             SvdMemory<T>* memory) {
  using R = RealType<T>;
  const bool tall = call.m >= call.n;
  const int64_t m = tall ? call.m : call.n, n = tall ? call.n : call.m;
  const int64_t left_columns = call.full ? m : n;
  T *const columns = work, *const norms = columns + m * n, *const taus = norms + n;
  T *const sorted = taus + n, *const turns = sorted + m * n;
  const R largest = LargestPart<T>(
      m * n, [a](int64_t at) { return a[at]; }, memory->householder.of_warps);
  if (!isfinite(largest)) {
    FillNan(s, n);
    FillNan(left, left != nullptr ? m * left_columns : 0);
    FillNan(right, right != nullptr ? n * n : 0);
    return;
  }
  const R scale = ScaleFor(largest);
  for (int64_t at = threadIdx.x; at < m * n; at += blockDim.x) {
    const int64_t i = at / call.n, j = at % call.n;
    columns[tall ? j * m + i : at] = Scaled(tall ? a[at] : Conjugate(a[at]), scale);
  }
  for (int64_t at = threadIdx.x; at < (left != nullptr ? n * n : 0); at += blockDim.x) {
    turns[at] = FromReal<T>(at / n == at % n ? 1 : 0);
  }
  MakeOrthogonal(columns, n, m, left != nullptr ? turns : nullptr, &memory->turned);
  __syncthreads();
  const int64_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  for (int64_t j = warp; j < n; j += warps) {
    R square = 0;
    for (int64_t i = lane; i < m; i += kWarp) square += SquareOf(columns[j * m + i]);
    square = SumOfWarp(square);
    if (lane == 0) norms[j] = FromReal<T>(sqrt(square));
  }
  __syncthreads();
  for (int64_t j = warp; j < n; j += warps) {
    const int64_t rank = RankOf(norms, n, j, /*ascending=*/false);
    if (lane == 0) s[rank] = Scaled(norms[j], 1 / scale);
    if (left == nullptr) continue;
    for (int64_t i = lane; i < m; i += kWarp) sorted[i * n + rank] = columns[j * m + i];
    for (int64_t i = lane; i < n; i += kWarp) right[i * n + rank] = turns[j * n + i];
  }
  if (left == nullptr) return;
  __syncthreads();
  // Columns of zeros, and those that a full matrix has more, are completed by reflections; the
  // diagonal of the triangular factor has the singular values, with any sign.
  FactorQr(sorted, m, n, taus, &memory->householder);
  FormQ(sorted, m, n, taus, left, left_columns, &memory->householder);
  for (int64_t at = threadIdx.x; at < m * n; at += blockDim.x) {
    const int64_t i = at / n, j = at % n;
    if (RealPart(sorted[j * n + j]) >= 0) continue;
    left[i * left_columns + j] = Scaled(left[i * left_columns + j], R(-1));
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) Svd(SvdCall call) {
  __shared__ SvdMemory<T> memory;
  const int64_t m = call.m, n = call.n, p = m < n ? m : n;
  const int64_t u_size = m * (call.full ? m : p), v_size = n * (call.full ? n : p);
  const bool vectors = call.u != nullptr;
  const int64_t work_size = m * n + 2 * p + (vectors ? m * n + p * p : 0);
  for (int64_t i = blockIdx.x; i < call.count; i += gridDim.x) {
    T* const u = vectors ? static_cast<T*>(call.u) + i * u_size : nullptr;
    T* const v = vectors ? static_cast<T*>(call.v) + i * v_size : nullptr;
    DecomposeOne(call, static_cast<const T*>(call.a) + i * m * n, static_cast<T*>(call.s) + i * p,
                 m >= n ? u : v, m >= n ? v : u, static_cast<T*>(call.work) + i * work_size,
                 &memory);
    __syncthreads();
  }
}

/// The rotations of a round, a pair each; those that need none have a sine of 0.
template <typename T>
__device__ bool RotationsOf(const T* a, int64_t n, const Tournament& tournament, int64_t round,
                            RealType<T> least, T* cosines, T* sines) {
  bool turns = false;
  for (int64_t k = threadIdx.x; k < tournament.pairs; k += blockDim.x) {
    int64_t p, q;
    cosines[k] = sines[k] = FromReal<T>(0);
    if (!tournament.Pair(n, round, k, &p, &q)) continue;
    const T product = a[p * n + q];
    if (!(Size(product) > least)) continue;
    const Rotation<T> rotation(RealPart(a[p * n + p]), RealPart(a[q * n + q]), product);
    cosines[k] = FromReal<T>(rotation.cosine);
    sines[k] = Scaled(rotation.phase, rotation.sine);
    turns = true;
  }
  return turns;
}

/// p' = cosine p - sine q, q' = conj(sine) p + cosine q.
template <typename T>
__device__ void TurnBy(T cosine, T sine, T* p, T* q) {
  const T x = *p, y = *q;
  *p = Scaled(x, RealPart(cosine)) - Product(sine, y);
  *q = Product(Conjugate(sine), x) + Scaled(y, RealPart(cosine));
}

/// Makes the Hermitian matrix diagonal; rows of `vectors`, if it is not nullptr, are turned.
template <typename T>
__device__ void Diagonalize(T* a, int64_t n, RealType<T> least, T* vectors, T* cosines, T* sines,
                            int* turned) {
  const Tournament tournament(n);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    __syncthreads();
    if (threadIdx.x == 0) *turned = 0;
    __syncthreads();
    for (int64_t round = 0; round < (n > 1 ? tournament.rounds : 0); ++round) {
      if (RotationsOf(a, n, tournament, round, least, cosines, sines)) *turned = 1;
      __syncthreads();
      // Columns, then rows. Neighbouring threads have neighbouring pairs, or columns.
      for (int64_t at = threadIdx.x; at < n * tournament.pairs; at += blockDim.x) {
        const int64_t i = at / tournament.pairs, k = at % tournament.pairs;
        int64_t p, q;
        if (RealPart(cosines[k]) == 0 || !tournament.Pair(n, round, k, &p, &q)) continue;
        TurnBy(cosines[k], Conjugate(sines[k]), a + i * n + p, a + i * n + q);
      }
      __syncthreads();
      for (int64_t at = threadIdx.x; at < n * tournament.pairs; at += blockDim.x) {
        const int64_t k = at / n, i = at % n;
        int64_t p, q;
        if (RealPart(cosines[k]) == 0 || !tournament.Pair(n, round, k, &p, &q)) continue;
        TurnBy(cosines[k], sines[k], a + p * n + i, a + q * n + i);
        if (i == q) a[p * n + q] = FromReal<T>(0);
        if (i == p) a[q * n + p] = FromReal<T>(0);
        if (vectors == nullptr) continue;
        TurnBy(cosines[k], Conjugate(sines[k]), vectors + p * n + i, vectors + q * n + i);
      }
      __syncthreads();
    }
    if (*turned == 0) return;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) Eigen(EigenCall call, unsigned long long* first) {
  using R = RealType<T>;
  __shared__ R of_warps[kWarps];
  __shared__ int turned;
  const int64_t n = call.n, work_size = n * n + 2 * n + 2 + (call.v != nullptr ? n * n : 0);
  for (int64_t m = blockIdx.x; m < call.count; m += gridDim.x) {
    const T* const from = static_cast<const T*>(call.a) + m * n * n;
    T* const a = static_cast<T*>(call.work) + m * work_size;
    T *const cosines = a + n * n, *const sines = cosines + n / 2 + 1;
    T* const values = sines + n / 2 + 1;
    T* const vectors = call.v != nullptr ? values + n : nullptr;
    const auto element = [from, n](int64_t at) {
      const int64_t i = at / n, j = at % n;
      if (i == j) return FromReal<T>(RealPart(from[at]));
      return i > j ? from[at] : Conjugate(from[j * n + i]);
    };
    const R largest = LargestPart<T>(n * n, element, of_warps);
    if (!isfinite(largest)) {
      if (threadIdx.x == 0) atomicMin(first, static_cast<unsigned long long>(m));
      continue;
    }
    const R scale = ScaleFor(largest);
    R square = 0;
    for (int64_t at = threadIdx.x; at < n * n; at += blockDim.x) {
      a[at] = Scaled(element(at), scale);
      square += SquareOf(a[at]);
      if (vectors != nullptr) vectors[at] = FromReal<T>(at / n == at % n ? 1 : 0);
    }
    square =
        JoinGroup(square, static_cast<int>(blockDim.x), of_warps, [](R x, R y) { return x + y; });
    // Together they are not larger than what rounding makes of the matrix.
    const R least = kEpsilon<R> * sqrt(square) / static_cast<R>(2 * n);
    Diagonalize(a, n, least, vectors, cosines, sines, &turned);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) values[i] = a[i * n + i];
    __syncthreads();
    const int64_t lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    for (int64_t j = threadIdx.x / kWarp; j < n; j += warps) {
      const int64_t rank = RankOf(values, n, j, /*ascending=*/true);
      if (lane == 0) {
        static_cast<T*>(call.e)[m * n + rank] = FromReal<T>(RealPart(values[j]) / scale);
      }
      for (int64_t i = lane; i < (vectors != nullptr ? n : 0); i += kWarp) {
        static_cast<T*>(call.v)[(m * n + i) * n + rank] = vectors[j * n + i];
      }
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t LaunchSvd(const SvdCall& call, cudaStream_t stream) {
  return VisitField(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&Svd<T>, GridOf(call.count), ThreadsFor(std::max(call.m, call.n)), stream, call);
  });
}

cudaError_t LaunchHermitianEigen(const EigenCall& call, unsigned long long* first, LateCheck check,
                                 cudaStream_t stream) {
  cudaError_t error = cudaMemsetAsync(first, 0xff, sizeof(*first), stream);
  if (error != cudaSuccess) return error;
  error = VisitField(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&Eigen<T>, GridOf(call.count), ThreadsFor(call.n), stream, call, first);
  });
  if (error != cudaSuccess) return error;
  return ForEach(1, stream, ReportFirst{first, call.count, check});
}

}  // namespace troupe::cuda
