/// FFT, IFFT, RFFT, IRFFT and their two- and three-dimensional forms, for every type of device:
/// what they take and refuse, and the order in which dimensions are transformed. The transforms of
/// lines are an engine's. A type of devices with a memory of its own has its own engine, which
/// enqueues, and compiles fft_ops.cc for it.
#ifndef TROUPE_KERNELS_FFT_FFT_OPS_H_
#define TROUPE_KERNELS_FFT_FFT_OPS_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"

namespace troupe::fft {

/// The lines along one dimension of a tensor of shape [outer, n, inner]. Of one element of a line
/// to the next it is `inner` elements.
struct Lines {
  /// Dimension d of `dims`.
  static Lines Along(absl::Span<const int64_t> dims, int d);

  int64_t outer = 1, inner = 1;
};

/// Transforms of lines, none of which is empty. Thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Of n numbers of `type`, complex64 or complex128; `out` may be `in`. The inverse ones are
  /// divided by n.
  virtual absl::Status Complex(KernelContext& ctx, ElementType type, const Lines& lines, int64_t n,
                               bool forward, const void* in, void* out) const = 0;
  /// `count` lines of n numbers of `type`, float or double, to n / 2 + 1 complex ones.
  virtual absl::Status Real(KernelContext& ctx, ElementType type, int64_t count, int64_t n,
                            const void* in, void* out) const = 0;
  /// The inverse, to n numbers of `type`. Imaginary parts of the first complex number, and, for an
  /// even n, of the last one, are not read.
  virtual absl::Status InverseReal(KernelContext& ctx, ElementType type, int64_t count, int64_t n,
                                   const void* in, void* out) const = 0;
};

/// The kernel of the op that is constructed.
absl::StatusOr<std::unique_ptr<Kernel>> Make(KernelConstruction& construction,
                                             std::unique_ptr<const Engine> engine);

/// Calls `add` for each op and each pair of types of one precision.
void ForEachSpec(absl::FunctionRef<void(const KernelSpec& spec)> add);

}  // namespace troupe::fft

#endif  // TROUPE_KERNELS_FFT_FFT_OPS_H_
