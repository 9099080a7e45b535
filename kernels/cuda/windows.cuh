/// Where windows that slide over images have their elements.
#ifndef TROUPE_KERNELS_CUDA_WINDOWS_CUH_
#define TROUPE_KERNELS_CUDA_WINDOWS_CUH_

#include "kernels/cuda/coordinates.cuh"
#include "kernels/cuda/windows.h"

namespace troupe::cuda {

class Slide : public WindowAxis {
 public:
  explicit Slide(const WindowAxis& axis)
      : WindowAxis(axis), by_stride_(axis.stride, axis.input + axis.pad_before) {}

  /// The element of the input at a window's tap; -1 if that lies in the padding.
  __device__ int64_t ElementAt(int64_t window, int64_t tap) const {
    const int64_t at = window * stride - pad_before + tap * dilation;
    return at >= 0 && at < input ? at : -1;
  }
  /// The window that has an element of the input at a tap; -1 if there is none.
  __device__ int64_t WindowWith(int64_t element, int64_t tap) const {
    const int64_t at = element + pad_before - tap * dilation;
    if (at < 0) return -1;
    int64_t rest;
    const int64_t window = by_stride_.Divide(at, &rest);
    return rest == 0 && window < output ? window : -1;
  }

  struct Range {
    int64_t begin, end;
    __device__ int64_t size() const { return end - begin; }
  };
  /// The elements of the input in a window without dilation,
  __device__ Range ElementsOf(int64_t window) const {
    const int64_t first = window * stride - pad_before, last = first + size;
    const int64_t begin = first < 0 ? 0 : first, end = last < input ? last : input;
    return {begin, end < begin ? begin : end};
  }
  /// and the windows that an element is in.
  __device__ Range WindowsOf(int64_t element) const {
    const int64_t at = element + pad_before;
    int64_t rest;
    const int64_t end = by_stride_.Divide(at, &rest) + 1;
    const int64_t begin = at < size ? 0 : by_stride_.Divide(at - size, &rest) + 1;
    return {begin, end < output ? end : output};
  }

 private:
  Division by_stride_;
};

/// How far elements of images are apart, of either data format.
struct ImageSteps {
  int64_t image, row, column, channel;

  ImageSteps(int64_t rows, int64_t columns, int64_t depth, bool channels_first)
      : image(rows * columns * depth),
        row(channels_first ? columns : columns * depth),
        column(channels_first ? 1 : depth),
        channel(channels_first ? rows * columns : 1) {}
  __device__ int64_t At(int64_t i, int64_t y, int64_t x, int64_t c) const {
    return i * image + y * row + x * column + c * channel;
  }
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_WINDOWS_CUH_
