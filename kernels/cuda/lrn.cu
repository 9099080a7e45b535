// Local response normalization: a thread for each channel of a pixel, which reads its neighbours.
#include "kernels/cuda/lrn.h"

#include "kernels/cuda/coordinates.cuh"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

/// The sum of value(element) over an element, of all pixels, and its neighbours in its pixel.
template <typename Value>
__device__ float SumNeighbours(const LrnForm& form, const Coordinates<2>& items, int64_t i,
                               Value value) {
  int64_t at[2];
  items.Split(i, at);
  const int64_t pixel = at[0] * form.depth, first = at[1] - form.radius;
  const int64_t end = at[1] + form.radius + 1;
  float sum = 0;
  for (int64_t c = first < 0 ? 0 : first; c < (end < form.depth ? end : form.depth); ++c) {
    sum += value(pixel + c);
  }
  return sum;
}

template <typename T>
__device__ float Norm(const LrnForm& form, const Coordinates<2>& items, const T* x, int64_t i) {
  return form.bias + form.alpha * SumNeighbours(form, items, i, [=](int64_t k) {
                       const auto value = static_cast<float>(x[k]);
                       return value * value;
                     });
}
__device__ float Power(const LrnForm& form, float norm) {
  return form.beta == 0.5f ? 1.0f / sqrtf(norm) : expf(-form.beta * logf(norm));
}

template <typename T>
struct Normalize {
  LrnForm form;
  Coordinates<2> items;
  const T* x;
  T* y;
  __device__ void operator()(int64_t i) const {
    y[i] = static_cast<T>(static_cast<float>(x[i]) * Power(form, Norm(form, items, x, i)));
  }
};

/// An output depends on its own input by the power, and on all neighbours by the norm.
template <typename T>
struct GradParts {
  LrnForm form;
  Coordinates<2> items;
  const T *dy, *x, *y;
  float *own, *by_norm;
  __device__ void operator()(int64_t i) const {
    const float norm = Norm(form, items, x, i), grad = static_cast<float>(dy[i]);
    own[i] = grad * Power(form, norm);
    by_norm[i] = -2 * form.alpha * form.beta * grad * static_cast<float>(y[i]) / norm;
  }
};
template <typename T>
struct JoinGradParts {
  LrnForm form;
  Coordinates<2> items;
  const T* x;
  const float *own, *by_norm;
  T* dx;
  __device__ void operator()(int64_t i) const {
    const float sum = SumNeighbours(form, items, i, [this](int64_t k) { return by_norm[k]; });
    dx[i] = static_cast<T>(own[i] + sum * static_cast<float>(x[i]));
  }
};

}  // namespace

cudaError_t LaunchLrn(Number type, const LrnForm& form, int64_t pixels, const void* x, void* y,
                      cudaStream_t stream) {
  return VisitSmallFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach(pixels * form.depth, stream,
                   Normalize<T>{form, Coordinates<2>(pixels, form.depth), static_cast<const T*>(x),
                                static_cast<T*>(y)});
  });
}

cudaError_t LaunchLrnGrad(Number type, const LrnForm& form, int64_t pixels, const void* dy,
                          const void* x, const void* y, float* scratch, void* dx,
                          cudaStream_t stream) {
  return VisitSmallFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const Coordinates<2> items(pixels, form.depth);
    const int64_t n = pixels * form.depth;
    float *const own = scratch, *const by_norm = scratch + n;
    const auto* const input = static_cast<const T*>(x);
    const cudaError_t error = ForEach(n, stream,
                                      GradParts<T>{form, items, static_cast<const T*>(dy), input,
                                                   static_cast<const T*>(y), own, by_norm});
    if (error != cudaSuccess) return error;
    return ForEach(n, stream,
                   JoinGradParts<T>{form, items, input, own, by_norm, static_cast<T*>(dx)});
  });
}

}  // namespace troupe::cuda
