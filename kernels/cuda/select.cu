#include "kernels/cuda/select.h"

#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

struct Choose {
  template <typename T>
  __device__ T operator()(bool condition, T x, T y) const {
    return condition ? x : y;
  }
};

struct Same {
  template <typename T>
  __device__ T operator()(T x) const {
    return x;
  }
};

struct Clip {
  template <typename T>
  __device__ T operator()(T x, T low, T high) const {
    using W = WideType<T>;
    const T below = static_cast<W>(x) > static_cast<W>(high) ? high : x;
    return static_cast<W>(below) < static_cast<W>(low) ? low : below;
  }
};

template <typename Fn>
cudaError_t VisitSmallOrInt64(Number type, Fn fn) {
  if (type == Number::kUint8) return fn(TypeTag<uint8_t>());
  if (type == Number::kUint16) return fn(TypeTag<uint16_t>());
  const cudaError_t error = VisitSigned(type, fn);
  return error == cudaErrorNotSupported ? VisitFloating(type, fn) : error;
}

/// Sums wrap around, so that the sign does not matter. Parts of complex numbers count for
/// themselves.
template <typename Fn>
cudaError_t VisitSummed(Number type, Fn fn) {
  if (type == Number::kComplex64) return fn(TypeTag<float>());
  if (type == Number::kComplex128) return fn(TypeTag<double>());
  const cudaError_t error = VisitUnsigned(type, fn);
  return error == cudaErrorNotSupported ? VisitFloating(type, fn) : error;
}
int PartsOf(Number type) {
  return type == Number::kComplex64 || type == Number::kComplex128 ? 2 : 1;
}

/// Adds the packs of addends [first, first + kCount) to `sums`: all are read before one is used.
template <int kCount, typename T, int kSize>
__device__ void AddPacks(const Addends& addends, int first, const FlatWalk& walk, int64_t i,
                         int count, WideType<T> (&sums)[kSize]) {
  Packed<T, kSize> packs[kCount];
#pragma unroll
  for (int a = 0; a < kCount; ++a) {
    packs[a] = Load<kSize>(static_cast<const T*>(addends.data[first + a]), walk, 0, i, count);
  }
#pragma unroll
  for (int a = 0; a < kCount; ++a) {
#pragma unroll
    for (int k = 0; k < kSize; ++k) sums[k] += static_cast<WideType<T>>(packs[a].values[k]);
  }
}

/// Of kCount addends, or, if that is 0, of any number.
template <typename T, int kCount>
__global__ void __launch_bounds__(kThreads)
    AddNKernel(Addends addends, T* out, int64_t n, bool packed) {
  using W = WideType<T>;
  constexpr int kSize = kPackSize<T>;
  FlatWalk walk;
  walk.packed = packed;
  const int64_t packs = (n + kSize - 1) / kSize, step = int64_t{gridDim.x} * kThreads;
  for (int64_t p = int64_t{blockIdx.x} * kThreads + threadIdx.x; p < packs; p += step) {
    const int64_t i = p * kSize;
    const int count = n - i < kSize ? static_cast<int>(n - i) : kSize;
    W sums[kSize];
    // The sum of negative zeros is one.
    for (int k = 0; k < kSize; ++k) sums[k] = -W(0);
    if constexpr (kCount > 0) {
      AddPacks<kCount, T>(addends, 0, walk, i, count, sums);
    } else {
      int a = 0;
      for (; a + 4 <= addends.count; a += 4) AddPacks<4, T>(addends, a, walk, i, count, sums);
      for (; a < addends.count; ++a) AddPacks<1, T>(addends, a, walk, i, count, sums);
    }
    Packed<T, kSize> result;
    for (int k = 0; k < kSize; ++k) result.values[k] = static_cast<T>(sums[k]);
    Store(result, walk, out, i, count);
  }
}

template <typename T>
struct Terms {
  T start, delta;
  T* out;
  /// Products of small types are rounded, as TensorFlow's are.
  __device__ void operator()(int64_t i) const {
    using W = WideType<T>;
    if constexpr (std::is_integral_v<T>) {
      out[i] = static_cast<T>(static_cast<uint64_t>(start) +
                              static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
    } else {
      const T at = static_cast<T>(static_cast<W>(i));
      const T product = static_cast<T>(static_cast<W>(at) * static_cast<W>(delta));
      out[i] = static_cast<T>(static_cast<W>(start) + static_cast<W>(product));
    }
  }
};

template <typename T>
cudaError_t Range(const void* start, const void* delta, void* out, int64_t n, cudaStream_t stream) {
  return ForEach(
      n, stream,
      Terms<T>{*static_cast<const T*>(start), *static_cast<const T*>(delta), static_cast<T*>(out)});
}

/// Rows may be the same: one thread takes an element of all of them.
template <RowUpdate kUpdate, typename T>
struct UpdateColumn {
  T* x;
  const T* v;
  int64_t width;
  RowNumbers rows;
  __device__ void operator()(int64_t i) const {
    using W = WideType<T>;
    for (int k = 0; k < rows.count; ++k) {
      T* const at = x + rows.rows[k] * width + i;
      const T value = v[k * width + i];
      if constexpr (kUpdate == RowUpdate::kAssign) *at = value;
      if constexpr (kUpdate == RowUpdate::kAdd) {
        *at = static_cast<T>(static_cast<W>(*at) + static_cast<W>(value));
      }
      if constexpr (kUpdate == RowUpdate::kSub) {
        *at = static_cast<T>(static_cast<W>(*at) - static_cast<W>(value));
      }
    }
  }
};

template <RowUpdate kUpdate, typename T>
cudaError_t UpdateRows(void* x, const RowNumbers& rows, const void* v, int64_t width,
                       cudaStream_t stream) {
  return ForEach(
      width, stream,
      UpdateColumn<kUpdate, T>{static_cast<T*>(x), static_cast<const T*>(v), width, rows});
}

}  // namespace

cudaError_t LaunchSelect(int64_t element, const bool* condition, const void* x, const void* y,
                         void* out, int64_t n, const Broadcast& broadcast, cudaStream_t stream) {
  return VisitSize(element, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapStrided(Choose(), broadcast, n, stream, static_cast<T*>(out), condition,
                      static_cast<const T*>(x), static_cast<const T*>(y));
  });
}

cudaError_t LaunchClip(Number type, const void* x, const void* low, bool low_is_scalar,
                       const void* high, bool high_is_scalar, void* out, int64_t n,
                       cudaStream_t stream) {
  FlatWalk walk;
  walk.steps[1] = low_is_scalar ? 0 : 1;
  walk.steps[2] = high_is_scalar ? 0 : 1;
  return VisitSmallOrInt64(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(Clip(), walk, n, stream, static_cast<T*>(out), static_cast<const T*>(x),
                   static_cast<const T*>(low), static_cast<const T*>(high));
  });
}

cudaError_t LaunchAddN(Number type, const Addends& addends, void* out, int64_t n,
                       cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  n *= PartsOf(type);
  return VisitSummed(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int kSize = kPackSize<T>;
    bool packed = CanPack<kSize>(static_cast<T*>(out), 1);
    for (int a = 0; a < addends.count; ++a) {
      packed = packed && CanPack<kSize>(static_cast<const T*>(addends.data[a]), 1);
    }
    auto* const kernel = addends.count == 2   ? &AddNKernel<T, 2>
                         : addends.count == 3 ? &AddNKernel<T, 3>
                                              : &AddNKernel<T, 0>;
    return Launch(kernel, Blocks((n + kSize - 1) / kSize), kThreads, stream, addends,
                  static_cast<T*>(out), n, packed);
  });
}

cudaError_t LaunchSpread(int64_t element, const void* value, void* out, int64_t n,
                         cudaStream_t stream) {
  FlatWalk walk;
  walk.steps[0] = 0;
  return VisitSize(element, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(Same(), walk, n, stream, static_cast<T*>(out), static_cast<const T*>(value));
  });
}

cudaError_t LaunchRange(Number type, const void* start, const void* delta, void* out, int64_t n,
                        cudaStream_t stream) {
  if (type == Number::kInt64) return Range<int64_t>(start, delta, out, n, stream);
  return VisitFloating(type, [=](auto tag) {
    return Range<typename decltype(tag)::Type>(start, delta, out, n, stream);
  });
}

cudaError_t LaunchUpdateRows(RowUpdate update, Number type, void* x, const RowNumbers& rows,
                             const void* v, int64_t width, cudaStream_t stream) {
  const int64_t parts = PartsOf(type);
  return VisitSummed(type == Number::kBool ? Number::kUint8 : type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    switch (update) {
      case RowUpdate::kAssign:
        return UpdateRows<RowUpdate::kAssign, T>(x, rows, v, width * parts, stream);
      case RowUpdate::kAdd:
        return UpdateRows<RowUpdate::kAdd, T>(x, rows, v, width * parts, stream);
      case RowUpdate::kSub:
        return UpdateRows<RowUpdate::kSub, T>(x, rows, v, width * parts, stream);
    }
    return cudaErrorNotSupported;
  });
}

}  // namespace troupe::cuda
