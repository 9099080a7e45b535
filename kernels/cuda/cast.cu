// Conversions. Integers of a size that only lose bits are converted once for both signs; complex
// numbers are pairs of real ones.
#include "kernels/cuda/cast.h"
#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

/// The unsigned type of an integer's size; other types are what they are.
template <typename T, bool kIsInteger = std::is_integral_v<T>>
struct Unsign {
  using Type = T;
};
template <typename T>
struct Unsign<T, true> {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct Unsign<bool, true> {
  using Type = bool;
};
template <typename T>
using UnsignedType = typename Unsign<T>::Type;

template <typename From, typename To>
struct Convert {
  uint64_t kept;  ///< The bits of floating-point numbers that are.

  __device__ To operator()(From value) const {
    const auto x = Kept(static_cast<WideType<From>>(value));
    if constexpr (std::is_same_v<To, bool>) return x != 0;
    if constexpr (kIsFloating<From> && std::is_integral_v<To>) {
      if constexpr (sizeof(To) < 4) return static_cast<To>(static_cast<int32_t>(x));
      // Like the CPU's, by way of the next wider signed type.
      if constexpr (std::is_same_v<To, uint32_t>) return static_cast<To>(static_cast<int64_t>(x));
    }
    if constexpr (sizeof(WideType<To>) == sizeof(To)) return static_cast<To>(x);
    return static_cast<To>(static_cast<WideType<To>>(x));
  }

 private:
  template <typename W>
  __device__ W Kept(W x) const {
    if constexpr (std::is_same_v<From, float>) {
      return __uint_as_float(__float_as_uint(x) & static_cast<uint32_t>(kept));
    } else if constexpr (std::is_same_v<From, double>) {
      return __longlong_as_double(
          static_cast<long long>(static_cast<uint64_t>(__double_as_longlong(x)) & kept));
    } else {
      return x;
    }
  }
};

/// With a complex number on either side: the real part counts, the imaginary one becomes 0.
template <typename From, typename To>
struct RealPart {
  Convert<From, To> convert;
  __device__ To operator()(Complex<From> x) const { return convert(x.real); }
};
template <typename From, typename To>
struct WithoutImaginaryPart {
  Convert<From, To> convert;
  __device__ Complex<To> operator()(From x) const { return {convert(x), 0}; }
};

Number PartOf(Number type) {
  return type == Number::kComplex64    ? Number::kFloat
         : type == Number::kComplex128 ? Number::kDouble
                                       : type;
}
bool IsComplex(Number type) { return PartOf(type) != type; }

struct CastCall {
  bool from_complex, to_complex;
  uint64_t kept;
  const void* x;
  void* y;
  int64_t n;
  cudaStream_t stream;
};

template <typename From, typename To>
cudaError_t Run(const CastCall& c) {
  const Convert<From, To> convert{c.kept};
  auto* const to = static_cast<To*>(c.y);
  const auto* const from = static_cast<const From*>(c.x);
  if constexpr (std::is_same_v<From, float> || std::is_same_v<From, double>) {
    if (c.from_complex) {
      return MapFlat(RealPart<From, To>{convert}, FlatWalk(), c.n, c.stream, to,
                     static_cast<const Complex<From>*>(c.x));
    }
  }
  if constexpr (std::is_same_v<To, float> || std::is_same_v<To, double>) {
    if (c.to_complex) {
      return MapFlat(WithoutImaginaryPart<From, To>{convert}, FlatWalk(), c.n, c.stream,
                     static_cast<Complex<To>*>(c.y), from);
    }
  }
  return MapFlat(convert, FlatWalk(), c.n, c.stream, to, from);
}

/// bool is 0 or 1.
template <typename Fn>
cudaError_t VisitSource(Number type, Fn fn) {
  const cudaError_t error = VisitFloating(type, fn);
  if (error != cudaErrorNotSupported) return error;
  return VisitInteger(type == Number::kBool ? Number::kUint8 : type, fn);
}
template <typename Fn>
cudaError_t VisitTarget(Number type, Fn fn) {
  return type == Number::kBool ? fn(TypeTag<bool>()) : VisitSource(type, fn);
}

/// The bits that `to` has of a mantissa; only floats are truncated to bfloat16, as in TensorFlow.
uint64_t KeptBits(Number from, Number to) {
  int lost = 0;
  if (PartOf(from) == Number::kFloat) {
    lost = to == Number::kHalf ? 13 : to == Number::kBfloat16 && !IsComplex(from) ? 16 : 0;
  } else if (PartOf(from) == Number::kDouble) {
    lost = to == Number::kHalf ? 42 : PartOf(to) == Number::kFloat ? 29 : 0;
  }
  return ~uint64_t{0} << lost;
}

}  // namespace

cudaError_t LaunchCast(Number from, Number to, bool truncate, const void* x, void* y, int64_t n,
                       cudaStream_t stream) {
  CastCall call{
      IsComplex(from), IsComplex(to), truncate ? KeptBits(from, to) : ~uint64_t{0}, x, y, n,
      stream};
  if (call.from_complex && call.to_complex) {
    call.from_complex = call.to_complex = false;
    call.n = 2 * n;
  }
  return VisitSource(PartOf(from), [&](auto source) {
    using From = typename decltype(source)::Type;
    return VisitTarget(PartOf(to), [&](auto target) {
      using To = typename decltype(target)::Type;
      // Only the sign differs, or bits are lost: once for both signs.
      if constexpr (std::is_integral_v<From> && std::is_integral_v<To> &&
                    !std::is_same_v<To, bool>) {
        using Unsigned = UnsignedType<To>;
        if constexpr (sizeof(To) <= sizeof(From)) {
          return Run<UnsignedType<From>, Unsigned>(call);
        } else {
          return Run<From, Unsigned>(call);
        }
      } else if constexpr (std::is_integral_v<From> && std::is_same_v<To, bool>) {
        return Run<UnsignedType<From>, To>(call);
      } else {
        return Run<From, To>(call);
      }
    });
  });
}

}  // namespace troupe::cuda
