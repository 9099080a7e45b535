/// Windows that slide over images, for kernels of CUDA. Plain types only: nvcc reads no header of
/// Troupe's own.
#ifndef TROUPE_KERNELS_CUDA_WINDOWS_H_
#define TROUPE_KERNELS_CUDA_WINDOWS_H_

#include <cstdint>

namespace troupe::cuda {

/// One dimension of a window: its taps are `dilation` apart, and it moves by `stride`.
struct WindowAxis {
  int64_t input, output, size, stride, dilation, pad_before;
};

/// From `troupe::Window`.
template <typename Window>
WindowAxis AxisOf(const Window& w) {
  return {w.input, w.output, w.size, w.stride, w.dilation, w.pad_before};
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_WINDOWS_H_
