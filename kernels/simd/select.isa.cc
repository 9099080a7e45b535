#include "kernels/simd/select.h"

namespace troupe::TROUPE_ISA {
namespace {

// Masks instead of branches, and bytes instead of bools: the compiler makes vectors of it.
template <typename T, bool kOneX, bool kOneY>
void Choose(const bool* condition, const T* x, const T* y, T* out, int64_t n) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(condition);
  const T one_x = n > 0 ? *x : 0, one_y = n > 0 ? *y : 0;
  for (int64_t i = 0; i < n; ++i) {
    const T mask = static_cast<T>(0 - static_cast<T>(bytes[i]));
    const T u = kOneX ? one_x : x[i], v = kOneY ? one_y : y[i];
    out[i] = static_cast<T>(v ^ ((u ^ v) & mask));
  }
}

template <typename T>
void ChooseByStep(const bool* condition, const T* x, int64_t x_step, const T* y, int64_t y_step,
                  T* out, int64_t n) {
  if (x_step == 1) {
    return y_step == 1 ? Choose<T, false, false>(condition, x, y, out, n)
                       : Choose<T, false, true>(condition, x, y, out, n);
  }
  return y_step == 1 ? Choose<T, true, false>(condition, x, y, out, n)
                     : Choose<T, true, true>(condition, x, y, out, n);
}

}  // namespace

#define TROUPE_DEFINE_SELECT(T)                                                              \
  void Select(const bool* condition, const T* x, int64_t x_step, const T* y, int64_t y_step, \
              T* out, int64_t n) {                                                           \
    ChooseByStep(condition, x, x_step, y, y_step, out, n);                                   \
  }
TROUPE_DEFINE_SELECT(uint8_t)
TROUPE_DEFINE_SELECT(uint16_t)
TROUPE_DEFINE_SELECT(uint32_t)
TROUPE_DEFINE_SELECT(uint64_t)
#undef TROUPE_DEFINE_SELECT

}  // namespace troupe::TROUPE_ISA
