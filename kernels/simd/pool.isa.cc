#include "kernels/simd/pool.h"

#include "kernels/simd/half_blocks.h"
#include "kernels/simd/pool_loops.h"

namespace troupe {
namespace TROUPE_ISA {
namespace {

using simd::TROUPE_ISA::BF16;
using simd::TROUPE_ISA::F16;

// A stored half or bfloat16.
template <typename H>
struct Narrow {
  uint16_t bits;
  explicit operator float() const { return H::ToFloat(bits); }
};

// Found beside Narrow by the loops.
template <typename H>
void WidenLine(const Narrow<H>* in, float* out, int64_t n) {
  H::Load(&in->bits, out, n);
}
template <typename H>
void NarrowLine(const float* in, Narrow<H>* out, int64_t n) {
  H::Store(in, &out->bits, n);
}

}  // namespace
}  // namespace TROUPE_ISA

namespace {
template <typename H>
struct PoolType<TROUPE_ISA::Narrow<H>> {
  typedef float Type;
};
}  // namespace

namespace TROUPE_ISA {
namespace {

template <typename T>
void MaxRows(const PoolForm& form, const void* in, void* out, int64_t begin, int64_t end) {
  MaxPoolRows(form, static_cast<const T*>(in), static_cast<T*>(out), begin, end);
}
template <typename T>
void AverageRows(const PoolForm& form, const void* in, void* out, int64_t begin, int64_t end) {
  AvgPoolRows(form, static_cast<const T*>(in), static_cast<T*>(out), begin, end);
}
template <typename T, typename Index>
void MaxGradient(const PoolForm& form, const void* in, const void* gradient, void* out,
                 int64_t begin, int64_t end) {
  MaxPoolGradImages<T, Index>(form, static_cast<const T*>(in), static_cast<const T*>(gradient),
                              static_cast<T*>(out), begin, end);
}
template <typename T>
void AverageGradient(const PoolForm& form, const void* gradient, void* out) {
  AvgPoolGradImage(form, static_cast<const T*>(gradient), static_cast<T*>(out));
}

}  // namespace

PoolFunctions PoolTable(simd::Type type) {
  switch (type) {
    case simd::kF32:
      return {MaxRows<float>, AverageRows<float>, MaxGradient<float, int32_t>,
              AverageGradient<float>};
    case simd::kF64:
      return {MaxRows<double>, AverageRows<double>, MaxGradient<double, int64_t>,
              AverageGradient<double>};
    case simd::kF16:
      return {MaxRows<Narrow<F16>>, AverageRows<Narrow<F16>>};
    case simd::kBF16:
      return {MaxRows<Narrow<BF16>>, AverageRows<Narrow<BF16>>};
    default:
      return {};
  }
}

}  // namespace TROUPE_ISA
}  // namespace troupe
