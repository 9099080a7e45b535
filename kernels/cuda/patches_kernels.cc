// ExtractImagePatches and ExtractVolumePatches of GPUs.
#include <initializer_list>
#include <vector>

#include "kernels/common/strided_copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/rearrange.h"
#include "kernels/image/extract_patches.h"
#include "kernels/nn/volume_patches.h"

namespace troupe {
namespace {

/// Fills `out` with the windows over the dimensions of `in` between the batch and the channels.
absl::Status CopyWindows(KernelContext& ctx, std::initializer_list<const Window*> windows,
                         const Tensor& in, Tensor* out) {
  const DimVector strides = RowMajorStrides(in.shape().dims());
  cuda::WindowDims dims;
  dims.AddLoop(in.dim(0), strides[0]);
  int d = 0;
  for (const Window* w : windows) {
    const int64_t stride = strides[++d];
    const int axis = dims.AddAxis(-w->pad_before, w->input, stride);
    dims.AddLoop(w->output, axis, w->stride, stride);
  }
  d = 0;
  for (const Window* w : windows) {
    dims.AddLoop(w->size, d, w->dilation, strides[d + 1]);
    ++d;
  }
  dims.AddLoop(in.dim(in.rank() - 1), 1);
  return cuda::CudaStatus(
      cuda::LaunchWindows(static_cast<int64_t>(ElementSize(in.type())), dims, /*to_near=*/true,
                          out->mutable_raw_data(), in.raw_data(), cuda::StreamOf(ctx)),
      "taking patches");
}

}  // namespace

absl::Status FillPatches(KernelContext& ctx, const Window& rows, const Window& columns,
                         const Tensor& images, Tensor* out) {
  return CopyWindows(ctx, {&rows, &columns}, images, out);
}

absl::Status FillVolumePatches(KernelContext& ctx, const VolumeWindows& w, const Tensor& in,
                               Tensor* out) {
  return CopyWindows(ctx, {&w.planes, &w.rows, &w.columns}, in, out);
}

namespace cuda {

void RegisterPatches(Extension& extension) {
  std::vector<ElementType> volume = RealNumberTypes();
  std::erase(volume, ElementType::kInt32);
  extension.Kernel(KernelSpec("ExtractImagePatches").Device("GPU").Types("T", MovedTypes()),
                   ExtractImagePatches);
  extension.Kernel(KernelSpec("ExtractVolumePatches").Device("GPU").Types("T", volume),
                   ExtractVolumePatches);
}

}  // namespace cuda
}  // namespace troupe
