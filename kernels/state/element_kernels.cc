// What the CPU has of the ops that compute with the elements of variables.
#include <complex>
#include <type_traits>
#include <utility>

#include "kernels/common/switch_number.h"
#include "kernels/simd/updates.h"
#include "kernels/state/element_ops.h"

namespace troupe {
namespace {

/// out[i] = a[i] + b[i] or a[i] - b[i]; out may be a.
template <typename T>
void Combine(bool subtract, const T* a, const T* b, T* out, int64_t n) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    (subtract ? Updates<T>().subtract : Updates<T>().add)(a, b, out, n);
  } else if constexpr (std::is_integral_v<T>) {
    // Unsigned arithmetic wraps around.
    using U = std::make_unsigned_t<T>;
    for (int64_t i = 0; i < n; ++i) {
      const U x = static_cast<U>(a[i]), y = static_cast<U>(b[i]);
      out[i] = static_cast<T>(subtract ? U(x - y) : U(x + y));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = T(subtract ? a[i] - b[i] : a[i] + b[i]);
  }
}

[[maybe_unused]] const bool registered = [] {
  const UseKernel use = [](KernelSpec spec, KernelFactory factory) {
    KernelRegistry::Global()->Register(std::move(spec), factory);
  };
  ForEachAssignUpdate(use);
  ForEachScatterOp(use);
  ForEachGatherOp(use);
  ForEachSliceAssign(use);
  return true;
}();

}  // namespace

absl::Status AddElements(KernelContext& ctx, bool subtract, const Tensor& a, const Tensor& b,
                         void* to) {
  return SwitchNumber(a.type(), [&]<typename T>() {
    const T *x = a.unchecked_data<T>(), *y = b.unchecked_data<T>();
    T* out = static_cast<T*>(to);
    ctx.ParallelFor(a.num_elements(), KernelContext::GrainFor(0.5),
                    [&](int64_t begin, int64_t end) {
                      Combine(subtract, x + begin, y + begin, out + begin, end - begin);
                    });
    return absl::OkStatus();
  });
}

}  // namespace troupe
