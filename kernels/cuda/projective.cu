// Projective transforms of images: a thread for each channel of a new pixel. Compiled without fused
// operations, so that the nearest pixels are those that the CPU finds.
#include "kernels/cuda/projective.h"

#include "kernels/cuda/coordinates.cuh"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
struct Project {
  Coordinates<4> items;  ///< Images, rows, columns, channels.
  Projection p;
  const T* images;
  T* out;

  __device__ void operator()(int64_t i) const {
    int64_t at[4];
    items.Split(i, at);
    const T fill = ToPixel<T>(p.fill_value);
    const ProjectedPixels<T> pixels{images + at[0] * p.from_height * p.from_width * p.channels,
                                    p.from_height, p.from_width, p.channels, fill};
    const Projected from = Projected::Of(p.transforms + at[0] * p.transform_step, at[1], at[2],
                                         p.from_height, p.from_width, p.outside);
    out[i] = !from.there  ? fill
             : p.bilinear ? pixels.Between(from.y, from.x, at[3])
                          : pixels.Nearest(from.y, from.x, at[3]);
  }
};

template <typename T>
cudaError_t Run(const Projection& p, const void* images, void* out, cudaStream_t stream) {
  return ForEach(p.batch * p.height * p.width * p.channels, stream,
                 Project<T>{Coordinates<4>(p.batch, p.height, p.width, p.channels), p,
                            static_cast<const T*>(images), static_cast<T*>(out)});
}

}  // namespace

cudaError_t LaunchProjection(Number type, const Projection& p, const void* images, void* out,
                             cudaStream_t stream) {
  switch (type) {
    case Number::kUint8:
      return Run<uint8_t>(p, images, out, stream);
    case Number::kInt32:
      return Run<int32_t>(p, images, out, stream);
    case Number::kInt64:
      return Run<int64_t>(p, images, out, stream);
    case Number::kHalf:
      return Run<__half>(p, images, out, stream);
    case Number::kFloat:
      return Run<float>(p, images, out, stream);
    case Number::kDouble:
      return Run<double>(p, images, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace troupe::cuda
