/// Functions of float and double that Eigen computes on packets (exponentials and the like), for
/// code that is compiled for several instruction sets.
///
/// An element's result does not depend on where it stands: the rest at the end of an array goes
/// through the same packet code, padded.
#ifndef TROUPE_KERNELS_SIMD_PACKET_OPS_H_
#define TROUPE_KERNELS_SIMD_PACKET_OPS_H_

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

template <typename T>
using Packet = typename Eigen::internal::packet_traits<T>::type;
template <typename T>
constexpr int kPacketSize = Eigen::internal::unpacket_traits<Packet<T>>::size;

template <typename T>
Packet<T> Set1(double value) {
  return Eigen::internal::pset1<Packet<T>>(static_cast<T>(value));
}

// out[i] = Op(in[i]), packet by packet.
template <typename Op, typename T>
void PacketLoop(const void* in, void* out, int64_t n) {
  using P = Packet<T>;
  constexpr int kSize = kPacketSize<T>;
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + kSize <= n; i += kSize) {
    Eigen::internal::pstoreu(y + i, Op::template Run<T>(Eigen::internal::ploadu<P>(x + i)));
  }
  if (i < n) {
    T rest[kSize] = {};
    for (int64_t j = i; j < n; ++j) rest[j - i] = x[j];
    Eigen::internal::pstoreu(rest, Op::template Run<T>(Eigen::internal::ploadu<P>(rest)));
    for (int64_t j = i; j < n; ++j) y[j] = rest[j - i];
  }
}

template <typename Op, typename T>
uint32_t PacketLoop2(const void* a, const void* b, void* out, int64_t n) {
  using P = Packet<T>;
  constexpr int kSize = kPacketSize<T>;
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + kSize <= n; i += kSize) {
    Eigen::internal::pstoreu(z + i, Op::template Run<T>(Eigen::internal::ploadu<P>(x + i),
                                                        Eigen::internal::ploadu<P>(y + i)));
  }
  if (i < n) {
    T u[kSize] = {}, v[kSize] = {};
    for (int64_t j = i; j < n; ++j) u[j - i] = x[j], v[j - i] = y[j];
    Eigen::internal::pstoreu(
        u, Op::template Run<T>(Eigen::internal::ploadu<P>(u), Eigen::internal::ploadu<P>(v)));
    for (int64_t j = i; j < n; ++j) z[j] = u[j - i];
  }
  return 0;
}

// x where x is NaN, y elsewhere: Eigen's clamps may lose NaN.
template <typename P>
P KeepNan(const P& x, const P& y) {
  return Eigen::internal::pselect(Eigen::internal::pcmp_eq(x, x), y, x);
}

struct ExpOp {
  template <typename T>
  static Packet<T> Run(const Packet<T>& x) {
    return KeepNan(x, Eigen::internal::pexp(x));
  }
};
struct LogOp {
  template <typename T>
  static Packet<T> Run(const Packet<T>& x) {
    return Eigen::internal::plog(x);
  }
};
struct Log1pOp {
  template <typename T>
  static Packet<T> Run(const Packet<T>& x) {
    return Eigen::internal::generic_plog1p(x);
  }
};
struct SigmoidOp {
  template <typename T>
  static Packet<T> Run(const Packet<T>& x) {
    using Eigen::internal::padd, Eigen::internal::pdiv, Eigen::internal::pnegate;
    const Packet<T> one = Set1<T>(1);
    return pdiv(one, padd(one, ExpOp::Run<T>(pnegate(x))));
  }
};
struct SoftplusOp {
  // Where exp(x) is lost beside 1, or 1 beside it, the result is exp(x) or x.
  template <typename T>
  static Packet<T> Run(const Packet<T>& x) {
    using Eigen::internal::pcmp_lt, Eigen::internal::pselect;
    constexpr double kThreshold = sizeof(T) == 4 ? -13.942385 : -34.04365;
    const Packet<T> exp_x = ExpOp::Run<T>(x);
    const Packet<T> middle =
        pselect(pcmp_lt(x, Set1<T>(kThreshold)), exp_x, Eigen::internal::generic_plog1p(exp_x));
    return pselect(pcmp_lt(Set1<T>(-kThreshold), x), x, middle);
  }
};
struct SoftplusGradOp {
  template <typename T>
  static Packet<T> Run(const Packet<T>& g, const Packet<T>& x) {
    using Eigen::internal::padd, Eigen::internal::pdiv, Eigen::internal::pnegate;
    return pdiv(g, padd(ExpOp::Run<T>(pnegate(x)), Set1<T>(1)));
  }
};

// Functions without packet code: one element at a time.
#define TROUPE_SCALAR_OP(NAME, FUNCTION) \
  struct NAME {                          \
    template <typename T>                \
    static T Run(T x) {                  \
      return FUNCTION(x);                \
    }                                    \
  };
TROUPE_SCALAR_OP(ScalarTanOp, std::tan)
#undef TROUPE_SCALAR_OP

}  // namespace
}  // namespace troupe::simd::TROUPE_ISA

#endif  // TROUPE_KERNELS_SIMD_PACKET_OPS_H_
