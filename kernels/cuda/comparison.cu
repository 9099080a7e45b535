// Element-wise functions that give bool.
#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

/// One kernel for all relations: what it compares costs less than what it reads.
struct Holds {
  Relation relation;
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    const auto x = static_cast<WideType<T>>(a), y = static_cast<WideType<T>>(b);
    return ((relation.less && x < y) || (relation.equal && x == y)) != relation.negated;
  }
};

struct EqualParts {
  bool negated;
  template <typename R>
  __device__ bool operator()(Complex<R> a, Complex<R> b) const {
    return (a == b) != negated;
  }
};

template <typename T, typename Fn>
cudaError_t Run(Fn fn, const BinaryCall& call, cudaStream_t stream) {
  return MapStrided(fn, call.broadcast, call.n, stream, static_cast<bool*>(call.out),
                    static_cast<const T*>(call.a), static_cast<const T*>(call.b));
}

template <Kind kKind>
struct IsOfKind {
  template <typename T>
  __device__ bool operator()(T value) const {
    const auto x = static_cast<WideType<T>>(value);
    if constexpr (kKind == Kind::kFinite) return x - x == 0;
    if constexpr (kKind == Kind::kInfinite) return x == x && x - x != 0;
    if constexpr (kKind == Kind::kNan) return x != x;
  }
};

template <Kind kKind>
cudaError_t Run(Number type, const void* x, bool* y, int64_t n, cudaStream_t stream) {
  return VisitFloating(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(IsOfKind<kKind>(), FlatWalk(), n, stream, y, static_cast<const T*>(x));
  });
}

struct IsNear {
  float tolerance;
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return fabs(a - b) <= static_cast<T>(tolerance);
  }
};

struct Not {
  __device__ bool operator()(bool x) const { return !x; }
};

}  // namespace

cudaError_t LaunchComparison(Relation relation, Number type, const BinaryCall& call,
                             cudaStream_t stream) {
  const auto run = [&](auto tag) {
    return Run<typename decltype(tag)::Type>(Holds{relation}, call, stream);
  };
  cudaError_t error = VisitFloating(type, run);
  if (error == cudaErrorNotSupported) {
    error = VisitComplex(type, [&](auto tag) {
      return Run<Complex<typename decltype(tag)::Type>>(EqualParts{relation.negated}, call, stream);
    });
  }
  if (error == cudaErrorNotSupported) {
    error = VisitInteger(type == Number::kBool ? Number::kUint8 : type, run);
  }
  return error;
}

cudaError_t LaunchApproximateEqual(float tolerance, Number type, const void* a, const void* b,
                                   bool* out, int64_t n, cudaStream_t stream) {
  return VisitFloatAndDouble(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(IsNear{tolerance}, FlatWalk(), n, stream, out, static_cast<const T*>(a),
                   static_cast<const T*>(b));
  });
}

cudaError_t LaunchIsOfKind(Kind kind, Number type, const void* x, bool* y, int64_t n,
                           cudaStream_t stream) {
  switch (kind) {
    case Kind::kFinite:
      return Run<Kind::kFinite>(type, x, y, n, stream);
    case Kind::kInfinite:
      return Run<Kind::kInfinite>(type, x, y, n, stream);
    case Kind::kNan:
      return Run<Kind::kNan>(type, x, y, n, stream);
  }
  return cudaErrorNotSupported;
}

cudaError_t LaunchNot(const bool* x, bool* y, int64_t n, cudaStream_t stream) {
  return MapFlat(Not(), FlatWalk(), n, stream, y, x);
}

}  // namespace troupe::cuda
